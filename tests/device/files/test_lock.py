"""The lock of a device's folder: one process at a time."""

from __future__ import annotations

import getpass
import os
import re
import threading
from pathlib import Path

import pytest

from evaltools.adb.client import DeviceError, Link
from evaltools.adb.store import DeviceFolder
from tests.device.fault_proxy import FaultProxy
from tests.device.shared_folder import SHARED_ROOT


def test_the_owner_stands_in_a_lock_and_nothing_is_left_of_it(first: Link, shared: Path) -> None:
    with DeviceFolder(first, SHARED_ROOT) as lock:
        owner = (shared / "lock" / "owner").read_text().splitlines()[0]
        assert re.fullmatch(
            rf"{getpass.getuser()}@{os.uname().nodename} \(process {os.getpid()}\) since [-0-9]+T[:0-9]+\+00:00", owner
        )
        with pytest.raises(
            DeviceError, match=f"^device {first.serial} is in use by {re.escape(owner)}; --force takes it"
        ):
            DeviceFolder(first, SHARED_ROOT).take()
        lock.take()
    assert not shared.exists()


def test_of_many_that_begin_at_once_one_gets_it(first: Link, shared: Path) -> None:
    got, refused, together = list[DeviceFolder](), list[DeviceError](), threading.Barrier(8)

    def take() -> None:
        lock = DeviceFolder(first, SHARED_ROOT)
        together.wait()
        try:
            got.append(lock.__enter__())
        except DeviceError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), len(refused)) == (1, 7)
    got[0].__exit__()


@pytest.mark.parametrize("is_file", [True, False])
def test_a_lock_without_an_owner_is_held_until_it_is_taken_by_force(first: Link, shared: Path, is_file: bool) -> None:
    """As one that was cut off while it was made, or of another version."""
    shared.mkdir()
    (shared / ".evaltools").touch()
    if is_file:
        (shared / "lock").write_text("{}")
    else:
        (shared / "lock").mkdir()
    with pytest.raises(DeviceError, match="is in use by another process"):
        DeviceFolder(first, SHARED_ROOT).take()
    with DeviceFolder(first, SHARED_ROOT, force=True) as lock:
        lock.take()


def test_a_lock_whose_answer_was_lost_is_one_s_own(breaking: Link, shared: Path, proxy: FaultProxy) -> None:
    with DeviceFolder(breaking, SHARED_ROOT) as lock:
        proxy.cut()
        lock.take()
        assert (shared / "lock" / "owner").exists()


def test_a_folder_that_cannot_be_written_is_said_with_what_to_do(first: Link) -> None:
    with pytest.raises(DeviceError, match="/proc/none cannot be made or written.*--device_folder"):
        DeviceFolder(first, "/proc/none").take()


def test_the_lock_of_a_process_of_this_computer_that_was_killed_is_taken(first: Link, shared: Path) -> None:
    (shared / "lock").mkdir(parents=True)
    (shared / ".evaltools").touch()
    owner = f"somebody@{os.uname().nodename} (process {4_194_305}) since 2026-01-01T00:00:00+00:00"
    (shared / "lock" / "owner").write_text(f"{owner}\n0123\n")
    with DeviceFolder(first, SHARED_ROOT):
        assert "4194305" not in (shared / "lock" / "owner").read_text()
