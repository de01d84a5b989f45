"""Files on devices that several desks use: none is deleted under another, and a desk alone keeps nothing."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from evaltools.device.adb.adb import Adb
from evaltools.device.adb.process import AdbRun
from evaltools.device.files.store import DeviceStore, clear, clear_unused
from evaltools.device.programs import detached
from tests.device.fixtures import Devices
from tests.device.real_device import Network
from tests.device.shared_folder import SHARED_ROOT, inside


def written(folder: Path, name: str, content: bytes = b"model") -> Path:
    (folder / name).write_bytes(content)
    return folder / name


def test_nothing_is_deleted_where_the_run_of_another_desk_goes_on(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial, runs = devices[0].serial, f"{SHARED_ROOT}/runs"
    other, own = (DeviceStore(client, serial, SHARED_ROOT) for _ in range(2))
    remote = other.put(written(tmp_path, "m"))
    other.release()
    run = detached.start(client, serial, "sleep 300", runs, "0-of-1-0123abcd0123abcd")
    assert not clear_unused(client, serial, SHARED_ROOT, own.lease)
    assert detached.look(client, run).code is None
    assert not detached.look(client, run).is_gone
    assert inside(shared, remote).exists()
    detached.end(client, run)
    assert clear_unused(client, serial, SHARED_ROOT, own.lease)
    assert not shared.exists()
    assert clear_unused(client, serial, SHARED_ROOT, own.lease)


class EndedMeanwhile(Adb):
    """adb of one desk while another, which sent a file before, ends without keeping anything."""

    def __init__(self, network: Network, other: DeviceStore) -> None:
        super().__init__(str(network.adb))
        self.other = other
        self.deleted: list[bool] = []

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> AdbRun:
        if "push" in arguments:
            other = self.other
            self.deleted.append(clear_unused(other.adb, other.serial, other.root, other.lease))
        return super().run(arguments, timeout_s, stop)


def test_nothing_is_deleted_while_another_desk_sends_or_looks(
    client: Adb, network: Network, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    """Before there is a run, and after a file was sent; a desk that died counts for an hour."""
    serial, first, second = devices[0].serial, written(tmp_path, "f", b"1"), written(tmp_path, "s", b"2")
    ending = DeviceStore(client, serial, SHARED_ROOT)
    sent = ending.put(first)
    adb = EndedMeanwhile(network, ending)
    store = DeviceStore(adb, serial, SHARED_ROOT, mark="0123abcd")
    remote = store.put(second)
    assert adb.deleted == [False]
    assert inside(shared, sent).exists()
    lease = shared / "evaltools-0123abcd.lease"
    assert [path.name for path in shared.glob("*.lease")] == [lease.name]
    os.utime(lease, (0, 0))
    assert store.has(remote)
    assert not clear_unused(client, serial, SHARED_ROOT, ending.lease)
    os.utime(lease, (0, 0))
    assert clear_unused(client, serial, SHARED_ROOT, ending.lease)
    assert not shared.exists()


def test_a_desk_s_own_lease_keeps_nothing_and_is_given_up(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial, model = devices[0].serial, written(tmp_path, "m")
    DeviceStore(client, serial, SHARED_ROOT, mark="0123abcd").put(model)
    again = DeviceStore(client, serial, SHARED_ROOT, mark="0123abcd")
    assert clear_unused(client, serial, SHARED_ROOT, again.lease), "a run that is begun again, of which one died"
    assert not shared.exists()
    again.put(model)
    assert list(shared.glob("*.lease"))
    again.release()
    assert not list(shared.glob("*.lease"))
    assert again.has(again.put(model))
    assert clear(client, serial, SHARED_ROOT) > 0, "device clean asks nobody"
    assert not shared.exists()


def test_results_that_are_being_fetched_are_not_deleted(client: Adb, devices: Devices, shared: Path) -> None:
    serial, store = devices[0].serial, DeviceStore(client, devices[0].serial, SHARED_ROOT)
    store.claim()
    store.release()
    run = detached.start(client, serial, "true", f"{SHARED_ROOT}/runs", "0-of-1-0123abcd0123abcd")
    detached.wait(client, run, timeout_s=60.0)
    assert client.shell(serial, f"touch -d '4 minutes ago' {run.folder}/code").code == 0
    assert not clear_unused(client, serial, SHARED_ROOT, store.lease), "its desk may be away for three"
    assert client.shell(serial, f"touch -d '6 minutes ago' {run.folder}/code").code == 0
    assert clear_unused(client, serial, SHARED_ROOT, store.lease)
    assert not shared.exists()
