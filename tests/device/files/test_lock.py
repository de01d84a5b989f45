"""The lock of a device's folder: one process at a time."""

from __future__ import annotations

import getpass
import os
import re
import threading
from pathlib import Path

import pytest

from evaltools.device.adb import Adb
from evaltools.device.errors import DeviceBusy, NoSpace
from evaltools.device.lock import DeviceLock
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices
from tests.device.shared_folder import SHARED_ROOT


@pytest.fixture
def serial(devices: Devices) -> str:
    return devices[0].serial


def test_the_owner_stands_in_a_lock_and_nothing_is_left_of_it(client: Adb, serial: str, shared: Path) -> None:
    with DeviceLock(client, serial, SHARED_ROOT) as lock:
        owner = (shared / "lock" / "owner").read_text().splitlines()[0]
        assert re.fullmatch(rf"{getpass.getuser()}@{os.uname().nodename} since [-0-9]+T[:0-9]+\+00:00", owner)
        with pytest.raises(DeviceBusy, match=f"^device {serial} is in use by {re.escape(owner)}; --force takes it"):
            DeviceLock(client, serial, SHARED_ROOT).take()
        lock.take()
    assert not shared.exists()


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


def test_a_lock_that_was_taken_by_force_is_lost_to_its_first_owner(client: Adb, serial: str, shared: Path) -> None:
    first = DeviceLock(client, serial, SHARED_ROOT)
    first.take()
    with DeviceLock(client, serial, SHARED_ROOT, force=True) as second:
        with pytest.raises(DeviceBusy):
            first.take()
        second.take()
    assert not shared.exists()


@pytest.mark.parametrize("is_file", [True, False])
def test_a_lock_without_an_owner_is_held_until_it_is_taken_by_force(
    client: Adb, serial: str, shared: Path, is_file: bool
) -> None:
    """As one that was cut off while it was made, or of another version."""
    shared.mkdir()
    (shared / ".evaltools").touch()
    if is_file:
        (shared / "lock").write_text("{}")
    else:
        (shared / "lock").mkdir()
    with pytest.raises(DeviceBusy, match="is in use by another process"):
        DeviceLock(client, serial, SHARED_ROOT).take()
    with DeviceLock(client, serial, SHARED_ROOT, force=True) as lock:
        lock.take()


def test_a_lock_whose_answer_was_lost_is_one_s_own(client: Adb, serial: str, shared: Path, proxy: FaultProxy) -> None:
    with DeviceLock(client, proxy.serial, SHARED_ROOT, patience_s=30.0) as lock:
        proxy.cut()
        lock.take()
        assert (shared / "lock" / "owner").exists()


def test_a_full_device_is_said_as_such(client: Adb, serial: str, shared: Path) -> None:
    root = "/data/local/tmp/lock-small"
    mounted = f"mkdir -p {root} && mount -t tmpfs -o size=4k tmpfs {root} && touch {root}/.evaltools"
    assert client.shell(serial, f"{mounted} && head -c 4096 /dev/zero > {root}/all").code == 0
    try:
        with pytest.raises(NoSpace, match=r"lock-small, which has 0 bytes free"):
            DeviceLock(client, serial, root).take()
    finally:
        assert client.shell(serial, f"umount {root}").code == 0
