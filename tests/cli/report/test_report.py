"""``evaltools report`` and ``--report``: one page from files, or from the run itself."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.exit_codes import NOT_WRITTEN
from evaltools.report.page.rendering import drawing
from evaltools.result.json_file import encode_json
from tests.command import evaltools_here, one_test
from tests.evaluation_set import make_evaluation_set
from tests.limits import outcome
from tests.report.benchmark_samples import benchmark, row
from tests.report.page.reading import PageRead, at
from tests.report.page.samples import STORED, classifier, search

IMAGENET = str(STORED / "imagenet.json")


def page_at(path: Path) -> PageRead:
    return PageRead(path.read_bytes())


def test_a_page_from_a_result_file_offers_that_file(tmp_path: Path) -> None:
    done = evaltools_here("report", IMAGENET, f"--output={tmp_path}/r.html")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"{tmp_path}/r.html written (0.")
    assert page_at(tmp_path / "r.html").results == [json.loads(Path(IMAGENET).read_text())]


def test_results_of_every_kind_are_distinguished_by_what_they_hold(tmp_path: Path) -> None:
    made = classifier()
    for name, content in {
        "evaluation": made,
        "timed": benchmark(row("a", 10)),
        "layers": search(),
        "limits": outcome("gates.toml"),
    }.items():
        (tmp_path / f"{name}.json").write_bytes(encode_json(content))
    files = [str(tmp_path / f"{name}.json") for name in ("evaluation", "timed", "layers", "limits")]
    assert evaltools_here("report", *files, f"--output={tmp_path}/r.html").code == 0
    page = page_at(tmp_path / "r.html")
    assert page.all("h1")[0].text == "gates.toml: evaltools gate, imagenet, benchmark"
    assert "Layer by layer: xnnpack" in page.headings


def test_without_the_extra_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "jinja2" else found(name, *more)
    )
    done = evaltools_here("report", IMAGENET, f"--output={tmp_path}/r.html")
    assert done.code == 2
    assert 'pip install "evaltools[report]"' in done.err
    assert evaltools_here("report", IMAGENET, f"--output={tmp_path}/r.md").code == 0
    flags = make_evaluation_set(tmp_path / "set", count=2, wrong=0).flags()
    for flag in ("report", "output_file_path"):
        done = evaltools_here(*flags, f"--{flag}={tmp_path}/r.html")
        assert (done.code, done.out) == (2, "")
        assert 'pip install "evaltools[report]"' in done.err


def test_a_run_writes_its_page_with_the_pictures_that_changed(tmp_path: Path) -> None:
    saved, page = tmp_path / "r.json", tmp_path / "r.html"
    flags = make_evaluation_set(tmp_path / "set", count=4, wrong=1).flags()
    assert evaltools_here(*flags, f"--output={saved}", f"--report={page}").code == 0
    read = page_at(page)
    (offered,) = read.results
    assert offered == json.loads(saved.read_text())
    assert read.figures == {path: at(offered, path) for path in read.figures}


def test_one_page_about_several_models(tmp_path: Path) -> None:
    models = [str(sample.model_file(name)) for name in ("int8", "float32")]
    flags = ("--num_runs=2", "--noise_floor_runs=0", "--use_xnnpack=true", f"--report={tmp_path}/r.html")
    assert evaltools_here("diff", *models, *flags).code == 0
    read = page_at(tmp_path / "r.html")
    assert [result["models"][0]["file"] for result in read.results] == models
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


INT8 = str(sample.model_file("int8"))


def test_limits_and_the_results_behind_them_share_a_page(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(encode_json(classifier()))
    (tmp_path / "gates.toml").write_text('[[gates]]\nconfiguration = "xnnpack"\nlimits = ["top1 >= 90 %"]\n')
    done = evaltools_here(
        "gate", f"{tmp_path}/result.json", f"--gates={tmp_path}/gates.toml", f"--report={tmp_path}/r.html"
    )
    assert done.code == 1
    page = page_at(tmp_path / "r.html")
    assert page.of_class("answer")[0].text == "The limit is broken."
    assert "xnnpack" in page.of_class("answer")[1].text


def report_on(folder: Path, *files: Path) -> PageRead:
    done = evaltools_here("report", *map(str, files), f"--output={folder}/page.html")
    assert (done.code, done.out) == (0, ""), done.err
    return page_at(folder / "page.html")


def test_a_result_comes_from_a_pipe_or_begins_with_a_byte_order_mark(tmp_path: Path) -> None:
    content = encode_json(classifier())
    (tmp_path / "marked.json").write_bytes(b"\xef\xbb\xbf" + content)
    reading, writing = os.pipe()

    def write() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(content)

    writer = threading.Thread(target=write)
    writer.start()
    results = report_on(tmp_path, tmp_path / "marked.json", Path(f"/dev/fd/{reading}")).results
    writer.join()
    os.close(reading)
    assert results == [json.loads(content)] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v limits nothing elsewhere")
def test_where_no_chart_can_be_drawn_the_result_is_there_and_the_page_says_so(tmp_path: Path) -> None:
    """Below 64 GiB of addresses, what draws charts ends its process."""
    result, page = tmp_path / "result.json", tmp_path / "page.html"
    command = one_test("diff", str(sample.model_file("int8")), "--num_runs=2", "--quiet")
    files = (f"--output={result}", f"--plot={tmp_path}/plot.png", f"--report={page}")
    limited = ("sh", "-c", 'ulimit -v 50000000; exec "$@"', "sh", sys.executable, "-m", "evaltools.cli.main")
    done = subprocess.run([*limited, *command, *files], capture_output=True, text=True)
    assert "evaltools: no chart can be drawn: the process that draws them ended with SIGTRAP" in done.stderr
    assert done.returncode == NOT_WRITTEN
    assert json.loads(result.read_text())["examples_done"] == 2
    assert not (tmp_path / "plot.png").exists()
    assert "no chart can be drawn" in page.read_text()
    assert page_at(page).results == [json.loads(result.read_text())]


def test_a_process_that_draws_and_was_killed_is_started_again(tmp_path: Path) -> None:
    first, second = tmp_path / "a.html", tmp_path / "b.html"
    assert evaltools_here("report", IMAGENET, f"--output={first}").code == 0
    drawing._drawing(os.getpid()).kill()
    assert evaltools_here("report", IMAGENET, f"--output={second}").code == 0
    assert "no chart can be drawn" in second.read_text()
    assert evaltools_here("report", IMAGENET, f"--output={second}").code == 0
    assert first.read_text().count("<svg") == second.read_text().count("<svg") > 0
