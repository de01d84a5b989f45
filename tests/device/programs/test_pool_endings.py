"""A pool always comes to its end: when there is nothing more to do, nobody to do it, an error, or Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from evaltools.device.errors import CommandFailed, ConnectionLost, DeviceError, DeviceStopped, DeviceTimeout
from evaltools.device.pool import Job
from evaltools.errors import UsageError
from tests.device.pool_devices import LONGEST_S, Devices, awaited, by, parts, telling, to_its_end


def test_a_device_that_waits_takes_what_another_one_loses() -> None:
    waits = threading.Event()

    def act(serial: str, job: Job) -> str:
        if not devices.losses:
            awaited(waits)
            raise DeviceTimeout("too late")
        return by(serial, job)

    devices = Devices(act, away=["A", "B"])
    outcome = to_its_end(telling(waits, devices.pool(["A", "B"], parts(1))))
    (loser, _), (winner, _) = devices.begun
    assert {loser, winner} == {"A", "B"}
    assert outcome.done == {Job(0): by(winner, Job(0))}
    assert [entry.serial for entry in outcome.left_out] == [loser]


@pytest.mark.parametrize("error", [DeviceError("full"), CommandFailed("it died")])
def test_devices_that_wait_come_to_an_end_one_after_the_other(error: DeviceError) -> None:
    """Whoever has the only part loses it and is left out, while the others wait for it."""
    waits = threading.Event()

    def act(serial: str, job: Job) -> str:
        awaited(waits)
        raise error

    devices = Devices(act, away=["A", "B", "C"])
    outcome = to_its_end(telling(waits, devices.pool(["A", "B", "C"], parts(1))))
    assert outcome.done == {}
    assert sorted(entry.serial for entry in outcome.left_out) == ["A", "B", "C"]
    assert len(outcome.lost[Job(0)]) == 3


def test_a_part_is_not_kept_waiting_for_the_device_that_lost_it() -> None:
    """A device may be away for minutes before it is back or given up."""
    waits, is_done = threading.Event(), threading.Event()

    class Away(Devices):
        def is_back(self, serial: str) -> bool:
            awaited(is_done)
            return True

    def act(serial: str, job: Job) -> str:
        if not devices.losses:
            awaited(waits)
            raise ConnectionLost("away", serial)
        is_done.set()
        return by(serial, job)

    devices = Away(act)
    outcome = to_its_end(telling(waits, devices.pool(["A", "B"], parts(1))))
    assert len(outcome.done) == 1
    assert {serial for serial, _ in devices.begun} == {"A", "B"}


def test_an_error_that_is_no_devices_stops_all_and_is_raised() -> None:
    b_is_at_work = threading.Event()
    stop = threading.Event()

    def act(serial: str, job: Job) -> str:
        if serial == "A":
            awaited(b_is_at_work)
            raise UsageError("A: the command was refused")
        b_is_at_work.set()
        awaited(stop)
        raise DeviceStopped("B: stopped as asked", "B")

    devices = Devices(act, stop=stop)
    with pytest.raises(UsageError, match="A: the command was refused"):
        to_its_end(devices.pool(["A", "B"], parts(20)))
    assert len(devices.begun) == 2, "nothing is begun after that"
    assert (devices.losses, devices.waited_for) == ([], []), "what was stopped was not lost"


def test_a_device_that_is_lost_while_all_are_stopped_is_not_left_out() -> None:
    stop = threading.Event()

    def act(serial: str, job: Job) -> str:
        stop.set()
        raise ConnectionLost("away", serial)

    devices = Devices(act, away=["A"], stop=stop)
    outcome = to_its_end(devices.pool(["A"], parts(3)))
    assert (outcome.left_out, len(devices.begun)) == ([], 1)


@pytest.mark.parametrize("where", ["lost", "is_back"])
def test_an_error_between_two_parts_stops_all_too(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where losses can no longer be told of: the others must not wait for a part that nobody does any more."""
    waits = threading.Event()

    def act(serial: str, job: Job) -> str:
        awaited(waits)
        raise ConnectionLost("away", serial)

    def breaks(*_: object) -> NoReturn:
        raise OSError("nobody reads this any more")

    devices = Devices(act)
    monkeypatch.setattr(devices, where, breaks)
    pool = devices.pool(["A", "B"], parts(1))
    with pytest.raises(OSError, match="nobody reads"):
        to_its_end(telling(waits, pool))


def test_ctrl_c_stops_the_devices_and_waits_for_them(tmp_path: Path) -> None:
    """In a process of its own: the interrupt is the user's, to the thread that runs the pool."""
    script = f"""
import signal, threading, os
from pathlib import Path
from evaltools.device.errors import DeviceStopped
from evaltools.device.pool import Job, Pool
from rich.console import Console
from tests.device.pool_devices import used
stop, both = threading.Event(), threading.Barrier(2)
def do(device, job):
    if both.wait() == 0:
        os.kill(os.getpid(), signal.SIGINT)
    if not stop.wait({LONGEST_S}):
        os._exit(9)
    Path({str(tmp_path)!r}, device.serial).write_text("ended")
    raise DeviceStopped("stopped", device.serial)
try:
    devices = used(["A", "B"], lambda serial: True, stop)
    Pool(devices, [Job(index) for index in range(9)], 9, do, Console()).run()
except KeyboardInterrupt:
    print("interrupted", sorted(os.listdir({str(tmp_path)!r})), threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=3 * LONGEST_S)
    assert (done.stdout, done.stderr) == ("interrupted ['A', 'B'] 1\n", "")
