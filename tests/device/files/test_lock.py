"""The lock of a device's folder: one process at a time, and none for ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import DeviceBusy, NoSpace
from evaltools.device.files import lock as lock_module
from evaltools.device.files.lock import DeviceLock
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.real_device import wait_until
from tests.device.shared_folder import SHARED_ROOT

LATER_S = 1081
"""After which a holder of whom nothing was heard is gone."""


@pytest.fixture
def serial(devices: Devices) -> str:
    return devices[0].serial


def holder(shared: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((shared / "lock").read_text())
    return found


def held_by(shared: Path, **changed: object) -> None:
    """Let the lock be another's."""
    text = json.dumps(holder(shared) | {"lock_id": "0" * 32} | changed)
    (shared / "lock").write_text(text)


def grow_old(shared: Path, age_s: float) -> None:
    then = (shared / "lock").stat().st_mtime - age_s
    os.utime(shared / "lock", (then, then))


@pytest.fixture
def left(client: Adb, serial: str, shared: Path) -> Iterator[Path]:
    """A folder whose lock another holds."""
    DeviceLock(client, serial, SHARED_ROOT).take()
    held_by(shared, host="board-7", pid=4711, since="2026-01-02T03:04:05+00:00")
    yield shared
    (shared / "lock").unlink(missing_ok=True)


def test_a_lock_is_there_while_it_is_held_and_nothing_afterwards(client: Adb, serial: str, shared: Path) -> None:
    with DeviceLock(client, serial, SHARED_ROOT) as lock:
        assert (holder(shared)["pid"], holder(shared)["host"]) == (os.getpid(), os.uname().nodename)
        lock.take()
        lock.require()
    assert not shared.exists()


def test_a_second_holder_is_told_who_holds_it_and_what_to_do(client: Adb, serial: str, left: Path) -> None:
    lock = DeviceLock(client, serial, SHARED_ROOT, cleaning="evaltools device clean --serials=A")
    with pytest.raises(DeviceBusy) as caught, lock:
        pass
    said = str(caught.value)
    assert said.startswith(
        f"{serial}: {SHARED_ROOT} is in use by process 4711 on board-7 (since 2026-01-02T03:04:05+00:00), which was "
    )
    assert said.endswith(
        " s ago; wait until it has ended, give another --device_folder, or take it with evaltools device clean "
        "--serials=A --force, which ends that run"
    )
    assert holder(left)["pid"] == 4711


def test_two_of_one_process_exclude_each_other(client: Adb, serial: str, shared: Path) -> None:
    with DeviceLock(client, serial, SHARED_ROOT):
        with pytest.raises(DeviceBusy), DeviceLock(client, serial, SHARED_ROOT):
            pass
        assert (shared / "lock").exists()


def test_of_many_that_begin_at_once_one_gets_it(client: Adb, serial: str, shared: Path) -> None:
    got, refused, together = list[DeviceLock](), list[DeviceBusy](), threading.Barrier(8)

    def take() -> None:
        lock = DeviceLock(client, serial, SHARED_ROOT)
        together.wait()
        try:
            got.append(lock.__enter__())
        except DeviceBusy as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 7)
    got[0].__exit__()


def test_a_lock_whose_process_was_killed_is_taken_over_with_a_word(client: Adb, serial: str, left: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    held_by(left, pid=process.pid, host=os.uname().nodename)
    said: list[str] = []
    with DeviceLock(client, serial, SHARED_ROOT, tell=said.append):
        assert holder(left)["pid"] == os.getpid()
    (line,) = said
    assert line.startswith(f"{serial}: {SHARED_ROOT} is taken over from process {process.pid} on ")
    assert line.endswith(", which has ended without giving it back")


def test_a_lock_that_this_process_could_not_give_back_is_taken_over(client: Adb, serial: str, left: Path) -> None:
    held_by(left, pid=os.getpid(), host=os.uname().nodename)
    with DeviceLock(client, serial, SHARED_ROOT):
        pass
    assert not left.exists()


def test_a_number_of_another_computer_or_container_says_nothing_of_a_process(
    client: Adb, serial: str, left: Path
) -> None:
    held_by(left, pid=2**22 + 1, host=os.uname().nodename, processes="pid:[1]")
    with pytest.raises(DeviceBusy):
        DeviceLock(client, serial, SHARED_ROOT).take()


@pytest.mark.parametrize(("age_s", "stale_after_s", "is_held"), [
    (900, 0.0, True), (LATER_S, 1080.0, False), (LATER_S, 3600.0, True),
])  # fmt: skip
def test_a_holder_of_which_nothing_was_heard_for_its_time_is_gone(
    client: Adb, serial: str, left: Path, age_s: int, stale_after_s: float, is_held: bool
) -> None:
    held_by(left, stale_after_s=max(stale_after_s, 1080.0))
    grow_old(left, age_s)
    said: list[str] = []
    lock = DeviceLock(client, serial, SHARED_ROOT, tell=said.append)
    if is_held:
        with pytest.raises(DeviceBusy):
            lock.take()
    else:
        lock.take()
        assert "of which nothing was heard for 18 minutes" in said[0]
    assert bool(said) != is_held


@pytest.mark.parametrize("text", ["", "{", "null", '{"pid": 3}', "it's\n'mine'\n"])
def test_a_damaged_lock_is_held_until_it_is_old(client: Adb, serial: str, left: Path, text: str) -> None:
    (left / "lock").write_text(text)
    with pytest.raises(DeviceBusy, match="is in use by another process, which was heard of"):
        DeviceLock(client, serial, SHARED_ROOT).take()
    grow_old(left, LATER_S)
    DeviceLock(client, serial, SHARED_ROOT).take()
    assert holder(left)["pid"] == os.getpid()


def test_a_lock_can_be_taken_by_force_and_its_holder_is_told(
    client: Adb, serial: str, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_module, "_RENEW_S", 0.05)
    with DeviceLock(client, serial, SHARED_ROOT) as first:
        with DeviceLock(client, serial, SHARED_ROOT, force=True):
            wait_until(lambda: first._lost is not None, "the first holder does not look")
            with pytest.raises(DeviceBusy, match="was taken over by process"):
                first.require()
            grow_old(shared, 500.0)
            old = (shared / "lock").stat().st_mtime
            wait_until(lambda: (shared / "lock").stat().st_mtime > old, "the second holder does not renew it")
        assert first._lost is not None


def test_a_lock_whose_answer_was_lost_is_one_s_own(client: Adb, serial: str, shared: Path, proxy: FaultProxy) -> None:
    with DeviceLock(client, proxy.serial, SHARED_ROOT, patience_s=30.0) as lock:
        proxy.cut()
        lock.take()
        assert holder(shared)["pid"] == os.getpid()


def test_a_full_device_is_said_as_such(client: Adb, serial: str, shared: Path) -> None:
    root = "/data/local/tmp/lock-small"
    mounted = f"mkdir -p {root} && mount -t tmpfs -o size=4k tmpfs {root} && touch {root}/.evaltools"
    assert client.shell(serial, f"{mounted} && head -c 4096 /dev/zero > {root}/all").code == 0
    try:
        with pytest.raises(NoSpace, match="nothing fits into .*/lock-small, which has 0 bytes free"):
            DeviceLock(client, serial, root).take()
    finally:
        assert client.shell(serial, f"umount {root}").code == 0
