"""The work of a device: what its command prints about its progress, and what is left when the device leaves."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from evaltools.adb.client import Adb, Answer
from evaltools.cli.shared.progress import show_progress
from evaltools.engine.ledger import Tally
from evaltools.result.device import DeviceConditions
from evaltools.runs.places import progress_of
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


@pytest.mark.parametrize("phase", ["", "latency"])
def test_what_an_evaluation_prints_is_understood(phase: str) -> None:
    """The lines are those that ``--progress=json`` really gives; those of other phases say nothing of examples."""
    text = io.StringIO()
    with show_progress(phase, 3, Console(file=text), "json") as on_progress:
        on_progress(Tally(done=3))
    assert text.getvalue().count("\n") == 1
    found = progress_of(text.getvalue().encode())
    assert (found and found.done) == (None if phase else 3)


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


def test_what_a_device_did_before_it_left_counts(tmp_path: Path) -> None:
    device = device_at(Leaving(), "R58M", patience_s=0.1)
    work, answer = device.do(lambda: "true", (), tmp_path)
    assert (answer.code, work.after) == (0, DeviceConditions())


@pytest.mark.parametrize("lines", [1, 20_000])
def test_a_command_of_any_length_is_run(lines: int, client: Adb, devices: Devices, tmp_path: Path) -> None:
    """Those of native benchmarks have some lines for each start."""
    device = device_at(client, devices[0].serial)
    command = "\n".join(["n='0'", *["n=$((n + 1))"] * lines, 'echo "é $n" > count; exit 3'])
    with device.folder:
        _, done = device.do(lambda: command, ("count",), tmp_path)
    assert (done.code, (tmp_path / "count").read_text()) == (3, f"é {lines}\n")


def test_each_line_is_told_when_it_is_whole(client: Adb, devices: Devices, tmp_path: Path) -> None:
    """Also one that is printed in pieces, cut within a character."""
    told: list[bytes] = []
    device = device_at(client, devices[0].serial)
    cut = r"printf 'one\nGr\303' >&2; sleep 1.2; printf '\266\303\237e\n\nlast' >&2"
    with device.folder:
        _, done = device.do(lambda: cut, (), tmp_path, told.append)
    assert (told, done.complaints) == ([b"one", "Größe".encode(), b""], "one\nGröße\n\nlast")
