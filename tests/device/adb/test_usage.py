"""What processes of runs use on a device, asked for in the shells of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import cast

import psutil
import pytest

from evaltools.capture.on_devices import read_process, usage_of_runs, usage_script
from evaltools.device.adb.adb import Adb
from evaltools.device.adb.detached import VARIABLE
from evaltools.device.adb.errors import CommandFailed
from evaltools.device.adb.process import ShellAnswer
from tests.cli.evaluate.sample_runs import needs_proc
from tests.device.adb.test_scripts import Shell, shell

__all__ = ["shell"]
RUNS = "/data/local/tmp/evaltools a'b/runs"
HOLDS = "held = bytearray(60 << 20); sum(range(5_000_000)); print('ready', flush=True); input()"


class HereAsDevice:
    """A device whose shell is that of this machine."""

    def __init__(self, code: int = 0) -> None:
        self.code = code

    def shell(self, _serial: str, command: str) -> ShellAnswer:
        done = subprocess.run(["sh", "-c", command], capture_output=True)
        return ShellAnswer(self.code, done.stdout, done.stderr)


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A process of a run, with three words in its command; one of another folder is there, too."""
    with (
        subprocess.Popen([sys.executable, "-c", HOLDS, "a\nb"], **of_run(f"{RUNS}/0-of-1-a/.")) as own,
        subprocess.Popen([sys.executable, "-c", HOLDS], **of_run("/data/local/tmp/other/runs/0-of-1-a/.")) as other,
    ):
        for each in (own, other):
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        yield own
        for each in (own, other):
            each.communicate("\n")


def of_run(folder: str):  # type: ignore[no-untyped-def]
    pipe = subprocess.PIPE
    return {"env": {**os.environ, VARIABLE: folder}, "stdin": pipe, "stdout": pipe, "text": True}


@needs_proc
def test_only_processes_of_runs_in_the_folder_are_listed_with_what_they_use(
    process: subprocess.Popen[str], shell: Shell
) -> None:
    (line,) = shell.run(usage_script(RUNS)).decode().splitlines()
    found, expected = read_process(line), psutil.Process(process.pid)
    assert found is not None
    assert found.process_id == process.pid
    assert found.memory_mb == pytest.approx(expected.memory_info().rss / 1024**2, rel=0.02)
    times = expected.cpu_times()
    assert found.processor_s == pytest.approx(times.user + times.system, abs=0.05)
    assert found.threads == expected.num_threads()
    assert found.command.startswith(sys.executable)
    assert found.command.endswith("a b")


@needs_proc
def test_the_moment_is_that_of_the_question(process: subprocess.Popen[str]) -> None:
    usage = usage_of_runs(cast(Adb, HereAsDevice()), "R5", RUNS)
    assert [each.process_id for each in usage.processes] == [process.pid]
    later = usage_of_runs(cast(Adb, HereAsDevice()), "R5", "/data/local/tmp/none/runs")
    assert later.processes == ()
    assert later.moment_s > usage.moment_s


def test_a_device_that_cannot_tell_is_an_error_with_the_next_step() -> None:
    with pytest.raises(CommandFailed, match="R5: its processes cannot be listed.*; look at adb shell ps"):
        usage_of_runs(cast(Adb, HereAsDevice(code=1)), "R5", RUNS)


@pytest.mark.parametrize("line", ["", "77 (x) S 1", "77 (x) S 1 @5 20@", "no process at all"])
def test_lines_that_were_cut_off_are_left_out(line: str) -> None:
    assert read_process(line) is None
