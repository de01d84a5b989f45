# make demo: try evaltools on the embedded sample.   make test: what a change must pass, in minutes.
# make test-all: every test.   make hostile: damaged inputs by the thousand.   make docs: the pages as a site in build/site.
# make mutants: which planted mistakes the tests notice; takes an hour.
# They need Python 3.10 or newer and make, nothing else; a C compiler adds the example delegate.
PYTHON ?= python3
VENV ?= .venv
DEMO_VENV ?= .venv-demo
DOCS_VENV ?= .venv-docs
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 bin/python -m pip install --quiet

PYTEST = $(VENV)/bin/python -m pytest --numprocesses=auto --dist=loadfile --no-loadscope-reorder

# Tests start many processes: a module is compiled when the first of them needs it, and not again, and none needs threads
# of NumPy's own.
unexport PYTHONDONTWRITEBYTECODE
export OPENBLAS_NUM_THREADS = 1

.PHONY: demo test test-all hostile mutants lint types docs bench generate recordings screenshot clean

DELEGATE := examples/external_delegate/rounding_delegate.so

demo: $(DEMO_VENV)/ready
	@if command -v $(CC) >/dev/null; then $(MAKE) --silent -C examples/external_delegate; \
	else echo "no C compiler ($(CC)): the demo goes on without the example delegate"; fi
	@$(DEMO_VENV)/bin/evaltools demo $$(test -f $(DELEGATE) && echo --external_delegate_path=$(DELEGATE))

test: $(VENV)/ready lint types
	$(PYTEST) -m "not once"

test-all: $(VENV)/ready lint types
	$(PYTEST)

# Each property says what it was tried with where it fails.
hostile: $(VENV)/ready
	EVALTOOLS_HOSTILE_EXAMPLES=2000 $(PYTEST) --dist=load tests/hostile

# Of single rooms, or other mistakes: python scripts/mutation --room=metrics --count=100 --seed=2
mutants: $(VENV)/ready
	cd $(VENV) && $(PIP) --editable '..[dev,mutants]'
	$(VENV)/bin/python scripts/mutation

lint: $(VENV)/ready
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

# mypy resolves evaltools.tasks and evaltools.datasets only where they lie inside the package, as in a wheel. What it found
# is kept in .mypy_cache there, for each environment: the next time it reads what has changed.
TYPES = build/types/$(VENV)
TYPED ?= evaltools tests benchmarks scripts/generate.py scripts/mutation/__main__.py scripts/sample/draw_*.py scripts/sample/screenshot.py
types: $(VENV)/ready
	@mkdir -p $(TYPES) && cd $(TYPES) && rm -rf evaltools tests scripts benchmarks
	@tar -c --exclude=__pycache__ evaltools tests scripts benchmarks pyproject.toml | tar -x -C $(TYPES)
	@tar -c --exclude=__pycache__ tasks datasets | tar -x -C $(TYPES)/evaltools
	cd $(TYPES) && MYPYPATH=scripts/sample:scripts/mutation "$(CURDIR)/$(VENV)/bin/mypy" $(TYPED)

# The site has the tree's folders, so that links between pages are the same there as here; one that leads nowhere is an error.
docs: $(DOCS_VENV)/ready
	@rm -rf build/docs && mkdir -p build/docs/benchmarks build/docs/scripts/sample
	@cp -Rp README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md LICENSE action.yml docs examples build/docs/
	@mkdir -p build/docs/evaltools/skill && cp -p evaltools/skill/SKILL.md build/docs/evaltools/skill/
	@mkdir -p build/docs/datasets/sample && cp -p datasets/sample/gates.toml build/docs/datasets/sample/
	@cp -p benchmarks/README.md build/docs/benchmarks/ && cp -p scripts/sample/README.md build/docs/scripts/sample/
	@sed -i.bak 's/^```console .*/```console/' build/docs/docs/*.md && rm build/docs/docs/*.bak
	NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict

bench: $(VENV)/ready
	$(VENV)/bin/python -m benchmarks throughput
	$(VENV)/bin/python -m benchmarks throughput --task=coco
	$(VENV)/bin/python -m benchmarks coco_metrics
	$(VENV)/bin/python -m benchmarks coco_bootstrap
	$(VENV)/bin/python -m benchmarks inference_diff_overhead
	$(VENV)/bin/python -m benchmarks benchmark_tool

generate: $(VENV)/ready
	$(VENV)/bin/python scripts/generate.py

# Whatever a terminal, a page or a result shows: the picture of the README, screens, pages and the contract.
recordings: generate screenshot
	$(VENV)/bin/python -m tests.report.tables.screens
	$(VENV)/bin/python -m tests.report.page.pages
	$(VENV)/bin/python -m tests.contract.record
	$(VENV)/bin/python -m tests.refusals.record

screenshot: $(VENV)/ready
	$(VENV)/bin/python scripts/sample/screenshot.py

$(VENV)/ready: pyproject.toml
	@echo "installing into $(VENV), which takes a minute"
	$(PYTHON) -m venv $(VENV)
	cd $(VENV) && $(PIP) --editable '..[dev]'
	touch $@

$(DEMO_VENV)/ready: pyproject.toml $(shell find evaltools tasks datasets -type f -not -name '*.pyc' 2>/dev/null)
	@echo "installing into $(DEMO_VENV), which takes half a minute"
	$(PYTHON) -m venv $(DEMO_VENV)
	cd $(DEMO_VENV) && $(PIP) ..
	touch $@

$(DOCS_VENV)/ready:
	$(PYTHON) -m venv $(DOCS_VENV)
	cd $(DOCS_VENV) && $(PIP) 'mkdocs-material>=9.5,<10'
	touch $@

clean:
	rm -rf $(VENV) $(DEMO_VENV) $(DOCS_VENV) build *.egg-info
	$(MAKE) -C examples/external_delegate clean
