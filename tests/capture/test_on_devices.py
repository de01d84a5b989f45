"""Devices of a run that are looked at meanwhile, with a device that answers as it is told."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import psutil
import pytest

from evaltools.capture import on_devices
from evaltools.capture.on_devices import DeviceSampler, read_process, samplers_of, usage_of_runs, usage_script
from evaltools.device.adb import Adb
from evaltools.device.detached import VARIABLE
from evaltools.device.errors import CommandFailed, ConnectionLost
from evaltools.device.flags import BY_NAME
from evaltools.device.process import Answer
from evaltools.request import Options
from evaltools.result.device import ListedDevice
from tests.cli.evaluate.sample_runs import needs_proc
from tests.device.adb.test_scripts import Shell, shell

STAT = b"77 (python3) S 1 77 77 0 -1 4194560 100 0 0 0 40 10 0 0 20 0 5 0 9 9 9 @5 20480@ /usr/bin/python3 -m x"


class Told:
    """A device with one process, which is gone after so many answers."""

    def __init__(self, answers: int = 1000) -> None:
        self.left = answers
        self.asked: list[str] = []

    def shell(self, serial: str, command: str) -> Answer:
        self.asked.append(command)
        self.left -= 1
        if self.left < 0:
            raise ConnectionLost(f"{serial}: the connection was lost", serial)
        return Answer(0, STAT, b"")

    def devices(self) -> tuple[ListedDevice, ...]:
        return (ListedDevice("A", "device"), ListedDevice("B", "offline"), ListedDevice("C", "device"))

    def choose(self) -> str:
        return "A"


def test_processes_have_the_device_in_their_names_and_numbers_of_their_own() -> None:
    device = Told()
    samplers = [DeviceSampler(cast(Adb, device), serial, "/data/x", place) for place, serial in enumerate("AB")]
    for each in samplers:
        each.start()
    while len(device.asked) < 4:
        time.sleep(0.02)
    for each in samplers:
        each.stop()
    found = [used for each in samplers for used in each.used.values()]
    assert [(used.name, used.place) for used in found] == [("A: python3 (77)", "A"), ("B: python3 (77)", "B")]
    assert len({used.process_id for used in found}) == 2
    assert (found[0].use.mean_memory_mb, found[0].use.threads) == (20.0, 5)
    assert [sample.processor_s for sample in found[0].samples] == [0.5] * len(found[0].samples)
    assert len(device.asked) == sum(len(used.samples) for used in found)
    assert all("EVALTOOLS_RUN=/data/x/runs/" in command for command in device.asked)


def test_a_device_that_goes_away_ends_its_samples_and_says_why() -> None:
    sampler = DeviceSampler(cast(Adb, Told(answers=1)), "A", "/data/x", 0)
    sampler.start()
    while sampler.failure is None:
        time.sleep(0.02)
    sampler.stop()
    assert [len(used.samples) for used in sampler.used.values()] == [1]
    assert str(sampler.failure) == "A: the connection was lost"


def asked(**stated: str) -> Options:
    return Options(stated, BY_NAME)


@pytest.mark.parametrize(
    ("flags", "serials"),
    [({}, ["A"]), ({"serials": "C,B"}, ["C", "B"]), ({"serials": "all"}, ["A", "C"])],
)
def test_devices_are_those_that_the_run_was_given(
    flags: dict[str, str], serials: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_devices, "Adb", lambda _path, _port: Told())
    samplers, notes = samplers_of(asked(**flags))
    assert ([each.serial for each in samplers], notes) == (serials, [])


def test_without_adb_there_is_a_note_instead(tmp_path: Path) -> None:
    samplers, notes = samplers_of(asked(adb=str(tmp_path / "none")))
    assert samplers == []
    assert notes[0].startswith("the devices are not seen: ")


__all__ = ["shell"]
RUNS = "/data/local/tmp/evaltools a'b/runs"
HOLDS = "held = bytearray(60 << 20); sum(range(5_000_000)); print('ready', flush=True); input()"


class HereAsDevice:
    """A device whose shell is that of this machine."""

    def __init__(self, code: int = 0) -> None:
        self.code = code

    def shell(self, _serial: str, command: str) -> Answer:
        done = subprocess.run(["sh", "-c", command], capture_output=True)
        return Answer(self.code, done.stdout, done.stderr)


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
