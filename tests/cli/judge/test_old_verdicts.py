"""Verdicts of an earlier run are gone before anything is measured, and nothing else is overwritten."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
from pathlib import Path

import pytest

from evaltools.result.result import Result
from evaltools.runs.gate_runs import Run
from tests.cli.judge.test_never_green import MADE, OUTPUTS, written
from tests.command import evaltools_here
from tests.limits import worst_in
from tests.results import earlier

FILES = (*OUTPUTS, "--report=p.html")
RUN = "[runs.live]\ncommand = 'diff m.tflite'\n[[gates]]\nlimits = ['max_error <= 1']\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which a gate has passed."""
    written(tmp_path, new=MADE)
    done = evaltools_here("gate", "new.json", "--limit=top1 >= 50 %", *FILES, cwd=tmp_path)
    assert (done.code, green(tmp_path)) == (0, ["b.json", "j.xml", "m.md", "o.json", "p.html"])
    return tmp_path


def green(folder: Path) -> list[str]:
    """The files that tell of a limit that is kept."""
    kept = {
        "b.json": "brightgreen",
        "j.xml": 'failures="0" errors="0"',
        "m.md": "The limit is kept",
        "o.json": '"kind": "pass"',
        "p.html": "The limit is kept",
    }
    return [name for name, text in kept.items() if text in (folder / name).read_text()]


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, None])
def test_a_run_that_is_ended_leaves_no_earlier_verdict(
    ended_by: signal.Signals | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a killed run leaves is what is there while it measures."""
    during: list[object] = []

    def measure(run: Run, output: Path) -> Result:
        during.append(green(folder))
        during.append(worst_in(folder / "o.json"))
        if ended_by is None:
            raise RuntimeError("a fault")
        os.kill(os.getpid(), ended_by)
        raise AssertionError("the signal was not heard")

    monkeypatch.setattr("evaltools.cli.judge.gate_run.result_of", measure)
    shutil.copy(folder / "new.json", folder / "m.tflite")
    (folder / "gates.toml").write_text(RUN)
    done = evaltools_here("gate", *FILES, cwd=folder)
    assert done.code == (70 if ended_by is None else 130)
    assert during == [[], "not measured"]
    assert green(folder) == []


@pytest.mark.parametrize(
    ("words", "flag"),
    [
        ("new.json '--limit=top1 >= 200 %'", "--json"),
        ("new.json '--limit=top1 <= 99 %'", "--json"),
        ("new.json --gates=none.toml", "--json"),
        ("new.json --against=none.json", "--json"),
        ("new.json --against=new.json --margin=0.5", "--json"),
        ("new.json --no_such_flag=1", "--output"),
        ("limits.toml", "--output-file-path"),
        ("none.json '--limit=top1 >= 50 %'", "--output"),
    ],
)
def test_a_command_that_is_wrong_leaves_no_earlier_verdict(words: str, flag: str, folder: Path) -> None:
    files = [file.replace("--json", flag) for file in FILES]
    assert evaltools_here("gate", *shlex.split(words), *files, cwd=folder).code == 2
    assert (worst_in(folder / "o.json"), green(folder)) == ("not measured", [])
    assert json.loads((folder / "b.json").read_text())["message"] == "1 not measured"
    assert 'errors="1"' in (folder / "j.xml").read_text()
    assert "not measured" in (folder / "m.md").read_text()


def test_a_file_that_cannot_be_written_leaves_no_earlier_verdict_in_another(folder: Path) -> None:
    words = ("new.json", "--junit=nowhere/j.xml", "--limit=top1 >= 50 %", "--json=o.json")
    assert evaltools_here("gate", *words, cwd=folder).code == 2
    assert worst_in(folder / "o.json") == "not measured"


def test_two_flags_with_one_file_leave_no_earlier_verdict(folder: Path) -> None:
    words = ("new.json", "--limit=top1 >= 50 %", "--json=o.json", "--junit=new", "--markdown=new")
    assert evaltools_here("gate", *words, cwd=folder).code == 2
    assert worst_in(folder / "o.json") == "not measured"
    assert not (folder / "new").exists()


@pytest.mark.parametrize(
    "flag",
    ["--json=old.json", "--markdown=pyproject.toml", "--report=old.md", "--badge=old.json", "--markdown=labels.txt"],
)
def test_what_a_file_of_gates_names_is_never_overwritten(flag: str, tmp_path: Path) -> None:
    written(tmp_path, new=MADE, old=earlier(MADE))
    shutil.copy(tmp_path / "old.json", tmp_path / "old.md")
    (tmp_path / "labels.txt").write_text("labels")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.evaltools.runs.new]\nresult = "new.json"\nagainst = "old.json"\n'
        '[tool.evaltools.runs.other]\nresult = "old.md"\n'
        '[[tool.evaltools.gates]]\nrun = "[no]*e*"\nlimits = ["top1 >= 50 %"]\n'
        '[tool.evaltools.runs.live]\ncommand = "diff --model_file=labels.txt"\n'
        '[[tool.evaltools.gates]]\nrun = "live"\nlimits = ["max_error <= 1"]\n'
    )
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = evaltools_here("gate", flag, cwd=tmp_path)
    assert (done.code, "would overwrite an input of this run" in done.err) == (2, True), done.err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
