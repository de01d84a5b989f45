"""Commands that go on over links that break: the real client and daemon, with a proxy between them."""

from __future__ import annotations

import os
import threading
from functools import partial
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from evaltools.adb import detached
from evaltools.adb.client import DeviceStopped, DeviceTimeout, Link
from tests.device.fault_proxy import Direction, FaultProxy
from tests.device.faults import FAULTS, Fault
from tests.device.real_device import wait_until

LINES = 6
COUNTING = f"""\
i=0
while [ $i -lt {LINES} ]; do
  i=$((i+1))
  echo line $i; echo error $i >&2; sleep 0.05
  while [ $i = {LINES // 2} ] && [ ! -e happened ]; do sleep 0.1; done
done
exit 5
"""
"""The second half of its lines comes when there is a file."""
OUT = "".join(f"line {number}\n" for number in range(1, LINES + 1)).encode()
ERR = "".join(f"error {number}\n" for number in range(1, LINES + 1)).encode()
TMP = "/data/local/tmp"


def outside(proxy: FaultProxy, folder: str) -> Path:
    """The folder of a run, as the outside sees it."""
    return proxy.device.folder / Path(folder).name


def processes(word: str) -> list[str]:
    """The commands that run with this word as an argument, whatever session and environment they have."""
    found = []
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
        except psutil.Error:  # it has ended, and so has none
            continue
        if word in command:
            found.append(command[0])
    return found


@pytest.mark.parametrize("fault", FAULTS)
def test_the_output_is_whole_and_there_once_whatever_happens(breaking: Link, proxy: FaultProxy, fault: Fault) -> None:
    """Something happens between the lines of the command."""
    run, told = f"{TMP}/counting", list[bytes]()
    detached.start(breaking, COUNTING, run)

    def happen() -> None:
        try:
            fault(proxy, breaking.adb)
        finally:
            (outside(proxy, run) / "happened").touch()

    happening = threading.Thread(target=happen)

    def seen(line: bytes) -> None:
        told.append(line)
        if happening.ident is None:
            happening.start()

    answer = detached.wait(breaking, run, 60.0, seen)
    happening.join()
    assert (answer.code, answer.out, answer.err) == (5, OUT, ERR)
    assert told == ERR.splitlines()
    detached.remove(breaking, run)
    assert not outside(proxy, run).exists()


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_command_runs_once_wherever_the_link_breaks(
    breaking: Link, proxy: FaultProxy, direction: Direction, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in the middle of the answer, when it has been started."""
    monkeypatch.setattr("evaltools.adb.client._BETWEEN_TRIES_S", 0.1)
    ran = proxy.device.folder / "runs"
    ran.unlink(missing_ok=True)
    for place in (0, 50, 800):
        command = f"echo {place} >> {TMP}/runs; printf out; printf err >&2; exit 3"
        run = f"{TMP}/run{place}{direction}"
        proxy.cut_after(direction, place)
        breaking.patiently(partial(detached.start, breaking, command, run))
        answer = detached.wait(breaking, run, 60.0)
        assert (answer.code, answer.out, answer.err) == (3, b"out", b"err"), place
    assert ran.read_text() == "0\n50\n800\n"


def test_of_two_starts_at_once_one_command_runs(breaking: Link, proxy: FaultProxy) -> None:
    run = f"{TMP}/together"
    begin = partial(detached.start, breaking, f"echo ran >> {TMP}/ran; sleep 1", run)
    starters = [threading.Thread(target=begin) for _ in range(4)]
    for starter in starters:
        starter.start()
    for starter in starters:
        starter.join()
    assert detached.wait(breaking, run, 60.0).code == 0
    assert (proxy.device.folder / "ran").read_text() == "ran\n"
    detached.remove(breaking, run)


CHILDREN = (
    "sleep {0} & (sleep {0} &) ; nohup sh -c 'trap \"\" HUP INT TERM; sleep {0}; true' & echo begun >&2; sleep {0}"
)


def word(number: int) -> str:
    """Seconds to sleep, by which a process is found: no other tests have it, and the code under test does not look."""
    return f"{300 + number}.{os.getpid()}"


def begun(link: Link, number: int) -> str:
    run = f"{TMP}/run{number}"
    detached.start(link, CHILDREN.format(word(number)), run)
    wait_until(lambda: len(processes(word(number))) == 4, "the children do not begin")
    return run


def test_what_a_command_left_behind_ends_with_the_run(breaking: Link) -> None:
    run = f"{TMP}/leaving"
    detached.start(breaking, f"sleep {word(2)} > /dev/null 2>&1 & exit 4", run)
    assert detached.wait(breaking, run, 60.0).code == 4
    wait_until(lambda: processes(word(2)) == ["sleep"], "the child does not begin")
    detached.remove(breaking, run)
    assert processes(word(2)) == []


def test_a_time_out_ends_all_of_it(breaking: Link) -> None:
    with pytest.raises(DeviceTimeout, match="printed nothing for 0.5 s and was ended"):
        detached.wait(breaking, begun(breaking, 5), 0.5)
    assert processes(word(5)) == []


def test_a_stop_ends_all_of_it_at_once(breaking: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.adb.detached._POLL_S", 30.0)
    run = begun(breaking, 6)
    with pytest.raises(DeviceStopped, match=f"{breaking.serial}: stopped as asked; run it again to go on") as caught:
        detached.wait(breaking, run, 60.0, lambda _line: breaking.stop.set())
    assert caught.value.exit_code == 130
    assert processes(word(6)) == []


def test_a_stop_while_the_device_is_away_says_what_becomes_of_the_command(breaking: Link, proxy: FaultProxy) -> None:
    run, away = begun(breaking, 7), replace(breaking, patience_s=2.0, stop=threading.Event())
    proxy.go_away()
    threading.Timer(1.0, away.stop.set).start()
    with pytest.raises(DeviceStopped, match=f"The command in {run} could not be ended: .*; it ends itself"):
        detached.wait(away, run, 60.0)
    assert len(processes(word(7))) == 4
    proxy.go_on()
    proxy.device.network.connect(proxy)
    detached.remove(breaking, run)
    assert processes(word(7)) == []
