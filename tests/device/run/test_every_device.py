"""The same work on several devices: what is tried again, who is left out, and that it always comes to its end."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from evaltools.adb.client import CommandFailed, ConnectionLost, DeviceAway, DeviceError, DeviceStopped, DeviceTimeout
from evaltools.device.device import Device, DevicesUsed, do_on_each, require_any, run_on_each
from evaltools.errors import UsageError
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceLeftOut, DeviceRun, DeviceWork, LostAttempt
from evaltools.text import last_lines

LONGEST_S = 30.0
"""What is not at its end by then never comes to it."""


def used(
    serials: Sequence[str],
    is_back: Callable[[str], bool] = lambda _serial: True,
    stop: threading.Event | None = None,
) -> DevicesUsed:
    """The devices of a run, of which nothing is known but their serial numbers."""

    devices: dict[str, Any] = {
        serial: SimpleNamespace(serial=serial, is_back=partial(is_back, serial), facts=DeviceFacts(serial))
        for serial in serials
    }
    return DevicesUsed(devices, stop=stop or threading.Event())


def done_by(
    devices: DevicesUsed, do: Callable[[Device], str], text: io.StringIO | None = None
) -> tuple[dict[str, str], list[DeviceLeftOut]]:
    return do_on_each(devices, [*devices.by_serial], do, Console(file=text or io.StringIO(), width=200))


def test_every_device_does_everything_at_the_same_time() -> None:
    together = threading.Barrier(3, timeout=LONGEST_S)

    def do(device: Device) -> str:
        together.wait()
        return f"by {device.serial}"

    done, left_out = done_by(used(["A", "B", "C"]), do)
    assert done == {"A": "by A", "B": "by B", "C": "by C"}
    assert left_out == []


@pytest.mark.parametrize("kind", [ConnectionLost, DeviceTimeout, DeviceAway, CommandFailed])
def test_what_may_pass_is_tried_again_on_the_same_device_and_told(kind: type[DeviceError]) -> None:
    """In a line that cannot move the cursor."""
    tries: Counter[str] = Counter()
    told: dict[str, list[tuple[str, str]]] = {}
    text = io.StringIO()

    def do(device: Device) -> str:
        tries[device.serial] += 1
        if device.serial == "A" and tries["A"] < 3:
            raise kind("A: the \x1b[2J[red]\nlink broke")
        told[device.serial] = [(each.kind, each.reason) for each in device.lost]
        return "done"

    done, left_out = done_by(used(["A", "B"]), do, text)
    assert (done, left_out) == ({"A": "done", "B": "done"}, [])
    assert tries == {"A": 3, "B": 1}
    assert told == {"A": [(kind.kind, "A: the \x1b[2J[red]\nlink broke")] * 2, "B": []}
    assert f"A: the \\x1b[2J[red]\\nlink broke [{kind.kind}]\n" in text.getvalue()


@pytest.mark.parametrize(
    ("error", "is_back", "tries"),
    [
        (CommandFailed("broken again"), True, 3),
        (ConnectionLost("away for good"), False, 1),
        (DeviceError("full"), True, 1),
    ],
)
def test_a_device_that_cannot_go_on_is_left_out_and_the_others_are_not(
    error: DeviceError, is_back: bool, tries: int
) -> None:
    begun: Counter[str] = Counter()

    def do(device: Device) -> str:
        begun[device.serial] += 1
        if device.serial == "A":
            raise error
        return "done"

    done, left_out = done_by(used(["A", "B"], lambda _serial: is_back), do)
    assert done == {"B": "done"}
    assert left_out == [DeviceLeftOut("A", str(error))]
    assert begun == {"A": tries, "B": 1}


def test_an_error_that_is_no_devices_stops_all_and_is_raised() -> None:
    b_is_at_work, stop = threading.Event(), threading.Event()

    def do(device: Device) -> str:
        if device.serial == "A":
            assert b_is_at_work.wait(LONGEST_S)
            raise UsageError("A: the command was refused")
        b_is_at_work.set()
        assert stop.wait(LONGEST_S)
        raise DeviceStopped("B: stopped as asked")

    with pytest.raises(UsageError, match="A: the command was refused"):
        done_by(used(["A", "B"], stop=stop), do)


def test_ctrl_c_stops_the_devices_and_waits_for_them(tmp_path: Path) -> None:
    """In a process of its own: the interrupt is the user's, to the thread that waits for the devices."""
    script = f"""
import signal, threading, os
from pathlib import Path
from evaltools.adb.client import DeviceStopped
from evaltools.device.device import do_on_each
from rich.console import Console
from tests.device.run.test_every_device import used
stop, both = threading.Event(), threading.Barrier(2)
def do(device):
    if both.wait() == 0:
        os.kill(os.getpid(), signal.SIGINT)
    if not stop.wait({LONGEST_S}):
        os._exit(9)
    Path({str(tmp_path)!r}, device.serial).write_text("ended")
    raise DeviceStopped("stopped", device.serial)
try:
    do_on_each(used(["A", "B"], stop=stop), ["A", "B"], do, Console())
except KeyboardInterrupt:
    print("interrupted", sorted(os.listdir({str(tmp_path)!r})), threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=3 * LONGEST_S)
    assert (done.stdout, done.stderr) == ("interrupted ['A', 'B'] 1\n", "")


def test_where_no_device_did_its_work_the_reasons_are_said() -> None:
    left_out = [DeviceLeftOut("A", "A is full"), DeviceLeftOut("B", "B has no Python"), DeviceLeftOut("C", "A is full")]
    with pytest.raises(DeviceError, match="^no device did its work: A is full; B has no Python; go on$"):
        require_any([], left_out, "; go on")
    require_any(["D"], left_out)


def test_the_result_names_the_devices_that_did_their_work_with_what_they_lost() -> None:
    nothing, tries = DeviceConditions(), Counter[str]()

    def do(device: Device) -> tuple[DeviceWork, str]:
        tries[device.serial] += 1
        if device.serial == "C" or (device.serial == "B" and tries["B"] == 1):
            raise (DeviceError if device.serial == "C" else CommandFailed)(f"{device.serial} is full")
        lost = tuple(device.lost)
        return DeviceWork(device.serial, "", 0.0, 1.5, nothing, nothing, lost=lost), f"by {device.serial}"

    done, run = run_on_each(do, "native", used(["C", "B", "A"]), Console(file=io.StringIO()))
    assert done == {"B": "by B", "A": "by A"}
    (lost,) = run.work[0].lost
    assert lost == LostAttempt("command", "B is full", lost.elapsed_s)
    second = DeviceWork("A", "", 0.0, 1.5, nothing, nothing)
    first = DeviceWork("B", "", 0.0, 1.5, nothing, nothing, lost=(lost,))
    left_out = (DeviceLeftOut("C", "C is full"),)
    assert run == DeviceRun("native", (DeviceFacts("B"), DeviceFacts("A")), (first, second), left_out)


@pytest.mark.parametrize(
    ("text", "leave_out", "words"),
    [
        ("\n \n", "", "nothing"),
        ("one\ntwo\n\n three \nfour\n", "", "two | three | four"),
        ('one\n{"phase": 1}\ntwo\n{"phase": 2}', '{"phase"', "one | two"),
        ('{"phase": 1}', '{"phase"', "nothing"),
        ("one\x1b[2J\n\x07two\n", "", "one\\x1b[2J | \\x07two"),
    ],
)
def test_the_last_lines_of_a_program_are_quoted(text: str, leave_out: str, words: str) -> None:
    assert last_lines(text, leave_out) == words
