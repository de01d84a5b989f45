"""The work of a device: what its command prints about its progress, and what is left when the device leaves."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from evaltools.cli.shared.progress import show_progress
from evaltools.device.adb import Adb, Answer
from evaltools.device.records import progress_of
from evaltools.device.work import SentFiles, StderrLines, Work
from evaltools.engine.ledger import Tally
from evaltools.result.device import DeviceConditions
from tests.device.fixtures import Devices, device_at


def line_of(done: object, phase: str = "evaluation") -> str:
    return json.dumps({"phase": phase, "done": done, "total": 50, "per_second": 3.5})


@pytest.mark.parametrize(
    ("line", "done"),
    [
        (line_of(20), 20),
        (line_of(0), 0),
        ("", None),
        ("WARNING: something", None),
        (line_of(20, "latency"), None),
        (line_of(20)[:-1], None),
        ('{"phase": "evaluation"}', None),
        (line_of([20]), None),
        (line_of(float("nan")), None),
        ('{"phase": "evaluation", "done": 1e999}', None),
        ('{"phase": "evaluation", "done": ' + "[" * 100_000, None),
    ],
)
def test_only_a_line_about_examples_says_how_many_are_done(line: str, done: int | None) -> None:
    """Whatever else a device prints is no reason to end the run."""
    found = progress_of(line.encode())
    assert (found and found.done) == done


def reading(*pieces: bytes) -> list[int]:
    lines: list[bytes] = []
    reader = StderrLines(lines.append)
    for piece in pieces:
        reader(b"", piece)
    return [progress.done for progress in map(progress_of, lines) if progress]


def test_each_line_is_told_when_it_is_whole() -> None:
    text = f"{line_of(1)}\n{line_of(2)}\n".encode()
    assert reading(text) == [1, 2]
    assert reading(text[:-1]) == [1], "the last line may still go on"
    assert reading(text[:-1], b"\n") == [1, 2]


def test_lines_may_be_cut_anywhere() -> None:
    """Also within a character."""
    lines = [line_of(1), "Größe: 漢字", line_of(2), "", line_of(30), "end"]
    text = "".join(f"{line}\n" for line in lines).encode()
    for size in range(1, 12):
        assert reading(*(text[start : start + size] for start in range(0, len(text), size))) == [1, 2, 30]


@pytest.mark.parametrize("phase", ["", "latency"])
def test_what_an_evaluation_prints_is_understood(phase: str) -> None:
    """The lines are those that ``--progress=json`` really gives; those of other phases say nothing of examples."""
    text = io.StringIO()
    with show_progress(phase, 3, Console(file=text), "json") as on_progress:
        on_progress(Tally(done=3))
    assert text.getvalue().count("\n") == 1
    assert reading(text.getvalue().encode()) == ([] if phase else [3])


class Leaving(Adb):
    """A device that answers everything with nothing, until a program has ended; then it is away."""

    def __init__(self) -> None:
        super().__init__("/bin/true")
        self._is_away = False

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> Answer:
        if arguments == ["devices"]:
            return Answer(0, b"List of devices attached\n", b"")
        end = re.search("printf %s (evaltools-[0-9a-f]{32})e >&2", arguments[-1])
        if self._is_away or end is None:
            return Answer(0, b"", b"")
        marks = re.findall("printf %s (evaltools-[0-9a-f]{32})(?!e)", arguments[-1])
        self._is_away = len(marks) == 2
        looked = f"{marks[0]}{marks[1]}1 0" if marks else ""
        return Answer(0, f"{looked}{end[1]}-0.".encode(), f"{end[1]}e".encode())


WORK = Work(files={})


class Leaves:
    """A program after which the device is away."""

    def command(self, sent: SentFiles, taskset: str) -> str:
        return "true"


def test_what_a_device_did_before_it_left_counts(tmp_path: Path) -> None:
    device = device_at(Leaving(), "R58M", patience_s=0.1)
    done = device.do(WORK, Leaves(), tmp_path)
    assert (done.code, done.work.after) == (0, DeviceConditions())


class Adding:
    """A program of many lines, which leaves with 3."""

    def __init__(self, lines: int) -> None:
        self._lines = lines

    def command(self, sent: SentFiles, taskset: str) -> str:
        return "\n".join(["n='0'", *["n=$((n + 1))"] * self._lines, 'echo "é $n" > count; exit 3'])


@pytest.mark.parametrize("lines", [1, 20_000])
def test_a_command_of_any_length_is_run(lines: int, client: Adb, devices: Devices, tmp_path: Path) -> None:
    """Those of native benchmarks have some lines for each start."""
    device = device_at(client, devices[0].serial)
    with device.lock:
        done = device.do(replace(WORK, results=("count",)), Adding(lines), tmp_path)
    assert (done.code, (tmp_path / "count").read_text()) == (3, f"é {lines}\n")
