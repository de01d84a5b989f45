"""Results as a page: which sections there are, and in which order."""

from __future__ import annotations

import gzip
import io
import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, get_args

from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.gates.outcome import GateOutcome
from evaltools.gates.suite_result import SuiteResult
from evaltools.report.page.content.page import (
    Download,
    Page,
    Part,
    bounded,
    bounded_section,
    bounded_table,
    each_step_once,
)
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.sections import benchmarks, first_screen, gates, layers, suite
from evaltools.report.page.sections.accuracy import accuracy
from evaltools.report.page.sections.in_short import answer_of, summary_of
from evaltools.report.page.sections.proof import proof
from evaltools.report.page.sections.run import capture, devices, origin, pipeline
from evaltools.report.page.sections.several_results import together
from evaltools.report.page.sections.speed import speed
from evaltools.report.page.sections.tradeoff import benchmark_tradeoff
from evaltools.report.tables.benchmark import label
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.capture import ModelsCapture, RunCapture
from evaltools.result.evaluation import EvaluationResult, models_in_words, other_models
from evaltools.result.json_file import encode_json
from evaltools.result.locate import LocateResult
from evaltools.result.places import machine_of
from evaltools.result.section import Block, Cell, Number, Place, Section, Table, Word
from evaltools.task_kind import TaskKind, kind_of, tree_kinds

_LARGEST_DOWNLOAD: Final = 1_000_000
"""In bytes, as gzip; larger ones are left out of the page."""


def page_of(sources: Sources) -> Page:
    """All that a page says; sections without data are left out."""
    parts = [_of_gates(name, outcome, sources) for name, outcome in sources.outcomes.items()]
    parts += [_of_suite(name, result, sources) for name, result in sources.suites.items()]
    parts += [_of_evaluation(name, result, sources) for name, result in sources.evaluations.items()]
    parts += [_of_benchmark(name, result, sources) for name, result in sources.benchmarks.items()]
    parts += [_of_search(name, result, sources) for name, result in sources.searches.items()]
    parts += [_of_capture(name, captured, sources) for name, captured in sources.captures.items()]
    sections = together(sources.evaluations, sources.benchmarks)
    shown = tuple(map(bounded_section, sections))
    summary = summary_of(sources.evaluations)
    return Page(
        _title(parts, sources),
        tuple(map(bounded, parts)),
        shown,
        _below(sources),
        answer_of(sources.evaluations),
        None if summary is None else bounded_table(summary),
    )


def _below(sources: Sources) -> str:
    """Which evaltools measured, where and when."""
    found = [
        *((each.environment, None) for each in sources.suites.values()),
        *((each.environment, each.device_run) for each in sources.evaluations.values()),
        *((each.environment, each.device_run) for each in sources.benchmarks.values()),
        *((each.environment, None) for each in sources.searches.values()),
    ]
    if not found:
        return ""
    versions = dict.fromkeys(environment.evaltools for environment, _ in found)
    machines = dict.fromkeys(machine_of(environment, run) for environment, run in found)
    when = _from_to([environment.started_at for environment, _ in found])
    return f"evaltools {' and '.join(versions)}; {'; '.join(machines)}; {when}"


def _from_to(moments: Sequence[str]) -> str:
    """The first and the last of moments in ISO 8601, to the minute.

    >>> _from_to(["2026-11-25T19:32:30+00:00", "2026-11-25T19:30:57+00:00"])
    '2026-11-25T19:30+00:00 to 2026-11-25T19:32+00:00'
    """
    ordered = [moment[:16] + moment[19:] for moment in sorted(moments)]
    return " to ".join(dict.fromkeys((ordered[0], ordered[-1])))


def _title(parts: Sequence[Part], sources: Sources) -> str:
    """What the only result is of, or the gates; then how many other results there are of what."""
    by_name = parts[:1] if len(parts) == 1 or sources.outcomes else []
    kinds = Counter(part.about.rpartition(": ")[2] for part in parts[len(by_name) :])
    others = [f"{count} x {kind}" if count > 1 else kind for kind, count in kinds.items()]
    return ", ".join([*(part.about for part in by_name), *others])


def _of_evaluation(name: str, result: EvaluationResult, sources: Sources) -> Part:
    kind = kind_of(result.task)
    searches = sources.located.get(name, ())
    located = {f"{name}.locate{f'-{number}' * (number > 1)}": each for number, each in enumerate(searches, 1)}
    names = [entry.name for entry in result.configurations]
    paths = [f"configurations/{place}" for place in range(len(names))]
    own = own_sections(kind, result)
    chart, advice = first_screen.overview(result)
    sections = [
        proof(result.configurations, names, paths, [result.model, *other_models(result)]),
        accuracy(result),
        *_at(own, "accuracy"),
        *_at(own, "numerics"),
        *(layers.layers(search, source) for source, search in located.items()),
        *_at(own, "task"),
        *(found for found in (speed(result), pipeline(result), devices(result.device_run)) if found is not None),
        *_at(own, "changes"),
        origin(result.environment, result.failed),
    ]
    stopped = [f"the run ended early: {result.stopped}"] if result.stopped else []
    return Part(
        source=name,
        folders=_folders(name, result.environment.folder, sources),
        about=f"{models_in_words(result)}: {_subject(kind, result)}",
        sayings=each_step_once([*first_screen.sayings(result, is_located=bool(searches)), *layers.faults(searches)]),
        sections=tuple(sections),
        overview=chart,
        advice=advice,
        warnings=(*stopped, *result.warnings),
        hints=tuple(_hints(result, bool(located))),
        downloads=(
            _download(name, result, sources),
            *(_download(source, search, sources) for source, search in located.items()),
        ),
    )


def _subject(kind: TaskKind, result: EvaluationResult) -> str:
    """The task, as it is typed."""
    subject = kind.evidence.subject(result)
    return kind.command if subject == kind.name else subject


def _at(sections: Sequence[Section], place: Place) -> list[Section]:
    return [section for section in sections if section.place == place]


def _hints(result: EvaluationResult, is_located: bool) -> list[str]:
    """What is not known, and what brings it."""
    hints = []
    kind = kind_of(result.task)
    if not any(entry.verdict for entry in result.configurations):
        hints.append("how far a configuration is from another one: --config='NAME: flags' adds one to compare")
    if not any(
        kind.evidence.judged(result, entry).times_us for entry in result.configurations if entry.status == "measured"
    ):
        hints.append("the time of each single run: --record_examples=true with one worker, or evaltools benchmark")
    if "locate" in kind.parameters and not is_located:
        hints.append("which operator makes a difference: --locate=true")
    if "locate" not in kind.parameters:
        hints.append(
            f"how far the outputs are apart: evaltools diff {shlex.quote(result.model.file)} --report=FILE.html"
        )
    hints.append(
        f"memory, load time, operators: evaltools benchmark {shlex.quote(result.model.file)} --report=FILE.html"
    )
    return hints


def _of_benchmark(name: str, result: BenchmarkResult, sources: Sources) -> Part:
    fast = tuple(benchmarks.speed(result))
    drawn = benchmark_tradeoff(result)
    about = Path(result.models[0].file).name if len(result.models) == 1 else f"{len(result.models)} models"
    names = [label(result, row) for row in result.rows]
    hints = []
    if not any(row.profile for row in result.rows):
        hints.append("which operators take how long: --enable_op_profiling=true")
    if all(len(row.rounds) < 2 for row in result.rows):
        hints.append("how much processes differ: --rounds=5")
    return Part(
        source=name,
        folders=_folders(name, result.environment.folder, sources),
        about=f"{about}: benchmark",
        sayings=benchmarks.sayings(result, is_brief=sources.count > 1),
        sections=(
            proof(result.rows, names, [f"rows/{place}" for place in range(len(names))], result.models),
            *([] if drawn is None else [Section("Accuracy against speed", [drawn])]),
            *fast,
            *(found for found in [devices(result.device_run)] if found is not None),
            origin(result.environment),
        ),
        warnings=(
            *([f"stopped: {result.stopped}"] if result.stopped else []),
            *result.warnings,
            *benchmarks.not_quiet(result),
        ),
        hints=tuple(hints),
        downloads=(_download(name, result, sources),),
        tables=fast[:1],
    )


def _of_search(name: str, result: LocateResult, sources: Sources) -> Part:
    entry = result.configuration
    return Part(
        source=name,
        folders=_folders(name, result.environment.folder, sources),
        about=f"{Path(result.model.file).name}: layer by layer",
        sayings=(layers.saying(result),),
        sections=(
            proof([entry], [entry.name], ["configuration"], [result.model]),
            layers.layers(result),
            origin(result.environment),
        ),
        warnings=result.warnings,
        downloads=(_download(name, result, sources),),
    )


def _of_capture(name: str, captured: RunCapture | ModelsCapture, sources: Sources) -> Part:
    return Part(
        source=name,
        about="capture",
        sayings=(),
        sections=(capture(captured),),
        downloads=(_download(name, captured, sources),),
        folders=_folders(name, "", sources),
    )


def _folders(name: str, asked_in: str, sources: Sources) -> tuple[Path, ...]:
    """Where relative names of a result may be meant from; the present folder where nothing else is known."""
    known = [Path(asked_in)] if asked_in else []
    known += [sources.folders[name]] if name in sources.folders else []
    return tuple(known) or (Path(),)


def _of_gates(name: str, outcome: GateOutcome, sources: Sources) -> Part:
    limits = gates.gates(outcome)
    return Part(
        source=name,
        about=f"{Path(outcome.gates).name}: {outcome.command}",
        sayings=(gates.saying(outcome),),
        sections=(limits,),
        downloads=(_download(name, outcome, sources),),
        tables=(limits,),
    )


def _of_suite(name: str, result: SuiteResult, sources: Sources) -> Part:
    folders = [entry.result for entry in result.entries if entry.result]
    return Part(
        source=name,
        about=f"{len({entry.model for entry in result.entries})} models: suite",
        sayings=suite.sayings(result),
        sections=(*suite.sections(result), origin(result.environment)),
        warnings=(f"the suite ended early: {result.stopped}",) if result.stopped else (),
        hints=("all about one of the models: evaltools report RUN_DIR/entries/NAME/result.json",) if folders else (),
        downloads=(_download(name, result, sources),),
    )


def _download(name: str, result: Any, sources: Sources) -> Download:
    """The result as it is in its file, compressed; without content where that is still too large."""
    content = sources.saved.get(name) or encode_json(result)
    compressed = _compressed(content)
    note = f"the result ({len(content) / 1e6:.1f} MB) is too large for a page; it is in its own file"
    return Download(f"{name}.json.gz", compressed, "" if compressed else note)


def _compressed(content: bytes) -> bytes | None:
    """The content as gzip; None where that is too large, which is seen before all of it is compressed."""
    found = io.BytesIO()
    with gzip.GzipFile(fileobj=found, mode="wb", mtime=0) as file:
        for start in range(0, len(content), _LARGEST_DOWNLOAD):
            file.write(content[start : start + _LARGEST_DOWNLOAD])
            if found.tell() > _LARGEST_DOWNLOAD:
                return None
    return found.getvalue() if len(found.getvalue()) <= _LARGEST_DOWNLOAD else None


def own_sections(kind: TaskKind, result: EvaluationResult) -> list[Section]:
    """Those with blocks; none of a task whose report has no ``sections``.

    Raises :class:`UsageError`, which names the task, where a task from outside fails, or gives what no section is.
    """
    if kind.name in tree_kinds():
        return [section for section in kind.report.sections(result) if section.blocks]
    try:
        make = getattr(kind.report, "sections", None)
        return [] if make is None else [_fit(section) for section in make(result) if section.blocks]
    except Exception as error:  # whatever the code of others raises
        raise UsageError(
            f"task {kind.name!r}: the sections of its report cannot be shown: {error!r}; sections(result) must give "
            "a list of evaltools.result.section.Section"
        ) from error


def _fit(section: Section) -> Section:
    blocks = [_fit_table(block) if isinstance(block, Table) else _known(block) for block in section.blocks]
    place: Place = section.place if section.place in get_args(Place) else "task"
    return replace(section, title=str(section.title), blocks=blocks, place=place)


def _known(block: Any) -> Block:
    if not isinstance(block, get_args(Block)):
        raise TypeError(f"{type(block).__name__} is no block of a section")
    found: Block = block
    return found


def _fit_table(table: Table) -> Table:
    """The table with texts and numbers as its cells, and rows of one length."""
    width = max(map(len, (table.columns, *table.rows)))
    columns = _padded([str(column) for column in table.columns], width) if table.columns else []
    rows = [_padded([_cell(cell) for cell in row], width) for row in table.rows]
    return replace(table, caption=str(table.caption), columns=columns, rows=rows)


def _padded(cells: Sequence[Any], width: int) -> list[Any]:
    return [*cells, *[""] * (width - len(cells))]


def _cell(cell: Any) -> Cell:
    return replace(cell, text=str(cell.text)) if isinstance(cell, Number | Word) else str(cell)
