"""The real adb binary against a device whose link breaks after so many bytes, or that cannot be used at all."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from evaltools.device.adb import adb as adb_module
from evaltools.device.adb import detached
from evaltools.device.adb.adb import Adb, patiently
from evaltools.device.adb.errors import MAY_PASS, ConnectionLost, DeviceError, DeviceStopped, Offline, Unauthorized
from evaltools.device.adb.process import AdbRun
from evaltools.device.files.transfer import pull, push
from tests.device.adb_server import own_server
from tests.device.fake_device import Behaviour, FakeDevice

ADB = os.environ.get("EVALTOOLS_ADB") or shutil.which("adb") or ""
pytestmark = pytest.mark.skipif(not ADB, reason="no adb binary: neither EVALTOOLS_ADB nor PATH names one")
SIZE = 300_000
REMOTE = "/data/local/tmp/folder/model"
PATIENCE_S = 30.0
PLACES = [0, 50, 2000, SIZE // 2, SIZE + 100, SIZE + 1300]
"""Bytes before the break: from the first message of a transfer to the last."""


@pytest.fixture(scope="module")
def adb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    """A client with a server of its own."""
    home = str(tmp_path_factory.mktemp("home"))
    environment = {key: value for key, value in os.environ.items() if key != "ANDROID_SERIAL"} | {"HOME": home}
    with own_server(ADB, environment) as port:
        yield Adb(ADB, port, environment)


@pytest.fixture
def connect(adb: Adb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Behaviour], FakeDevice]]:
    monkeypatch.setattr(adb_module, "_BETWEEN_TRIES_S", 0.1)
    devices = []

    def connected(behaviour: Behaviour) -> FakeDevice:
        device = FakeDevice(tmp_path / "device", behaviour)
        devices.append(device)
        adb.reconnect(device.serial)
        return device

    yield connected
    for device in devices:
        adb.run(["disconnect", device.serial], 10.0)
        device.close()


Connect = Callable[[Behaviour], FakeDevice]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model"
    path.write_bytes(os.urandom(SIZE))
    return path


def break_at(device: FakeDevice, place: int, is_sending: bool) -> None:
    if is_sending:
        device.behaviour.drop_after_sent = place
    else:
        device.behaviour.drop_after = place


def is_broken(device: FakeDevice) -> bool:
    return device.behaviour.drop_after is None and device.behaviour.drop_after_sent is None


def test_a_file_is_sent_whole_wherever_the_link_breaks(connect: Connect, adb: Adb, model: Path) -> None:
    device = connect(Behaviour())
    for place in PLACES:
        for path in device.path("/data/local/tmp").rglob("model*"):
            path.unlink()
        break_at(device, place, is_sending=False)
        push(adb, device.serial, model, REMOTE, patience_s=PATIENCE_S)
        assert is_broken(device), place
        assert device.path(REMOTE).read_bytes() == model.read_bytes(), place
        assert [path.name for path in device.path(REMOTE).parent.iterdir()] == ["model"], place


def test_a_file_is_fetched_whole_wherever_the_link_breaks(
    connect: Connect, adb: Adb, model: Path, tmp_path: Path
) -> None:
    device = connect(Behaviour())
    device.path(REMOTE).parent.mkdir()
    shutil.copy(model, device.path(REMOTE))
    back = tmp_path / "there" / "back"
    back.parent.mkdir()
    for place in PLACES[:-2]:
        break_at(device, place, is_sending=True)
        pull(adb, device.serial, REMOTE, back, patience_s=PATIENCE_S)
        assert is_broken(device), place
        assert back.read_bytes() == model.read_bytes(), place
        assert [path.name for path in back.parent.iterdir()] == ["back"], place


class Eventful(Adb):
    """Something happens after each transfer, before anybody has looked at what arrived."""

    def __init__(self, adb: Adb, after_transfer: Callable[[], object]) -> None:
        super().__init__(adb.path, adb.port)
        self._after_transfer = after_transfer

    def run(self, arguments: Sequence[str], timeout_s: float, stop: threading.Event | None = None) -> AdbRun:
        done = super().run(arguments, timeout_s)
        if {"push", "pull"} & set(arguments):
            self._after_transfer()
        return done


def test_a_break_that_is_over_when_somebody_looks_is_a_lost_connection_too(
    connect: Connect, adb: Adb, model: Path, tmp_path: Path
) -> None:
    device = connect(Behaviour())

    def come_back() -> None:
        patiently(adb, device.serial, lambda: adb.shell(device.serial, "true"), PATIENCE_S)

    back, late = tmp_path / "back", Eventful(adb, come_back)
    device.behaviour.drop_after = SIZE // 2
    with pytest.raises(ConnectionLost, match=f"lost during adb push of {REMOTE}: 0 of {SIZE} bytes arrived"):
        push(late, device.serial, model, REMOTE)
    device.behaviour.drop_after = SIZE // 2
    push(late, device.serial, model, REMOTE, patience_s=PATIENCE_S)
    assert device.path(REMOTE).read_bytes() == model.read_bytes()
    device.behaviour.drop_after_sent = SIZE // 2
    with pytest.raises(ConnectionLost, match=rf"lost during adb pull of {REMOTE}: \d+ of {SIZE} bytes arrived"):
        pull(late, device.serial, REMOTE, back)
    device.behaviour.drop_after_sent = SIZE // 2
    pull(late, device.serial, REMOTE, back, patience_s=PATIENCE_S)
    assert back.read_bytes() == model.read_bytes()


def test_a_file_that_is_whole_and_has_no_name_yet_goes_when_the_transfer_is_stopped(
    connect: Connect, adb: Adb, model: Path
) -> None:
    device, stop = connect(Behaviour()), threading.Event()
    arrived: list[str] = []

    def cut_and_stop() -> None:
        arrived.extend(path.name for path in device.path(REMOTE).parent.iterdir())
        device.cut()
        stop.set()

    with pytest.raises(DeviceStopped):
        push(Eventful(adb, cut_and_stop), device.serial, model, REMOTE, patience_s=PATIENCE_S, stop=stop)
    assert len(arrived) == 1
    assert list(device.path(REMOTE).parent.iterdir()) == []


@pytest.mark.parametrize("is_sending", [False, True], ids=["up", "down"])
def test_a_command_runs_once_wherever_the_link_breaks(connect: Connect, adb: Adb, is_sending: bool) -> None:
    device = connect(Behaviour())
    for number, place in enumerate([0, 20, 100, 400, 800, 1500, 2500]):
        name = f"run{number}"
        command = f"echo {number} >> /data/local/tmp/runs; printf out; printf err >&2; exit 3"
        break_at(device, place, is_sending)
        run = patiently(
            adb,
            device.serial,
            lambda command=command, name=name: detached.start(adb, device.serial, command, name=name),  # type: ignore[misc]
            PATIENCE_S,
        )
        answer = detached.wait(adb, run, 60.0, poll_s=0.05, patience_s=PATIENCE_S)
        assert is_broken(device) or place > (100 if is_sending else 800), place
        assert (answer.code, answer.out, answer.err) == (3, b"out", b"err"), place
    assert device.path("/data/local/tmp/runs").read_text() == "0\n1\n2\n3\n4\n5\n6\n"


@pytest.mark.parametrize("place", [0, 40])
def test_a_break_is_an_error_that_names_the_device_and_the_next_step(
    connect: Connect, adb: Adb, model: Path, tmp_path: Path, place: int
) -> None:
    device = connect(Behaviour())
    shutil.copy(model, device.path("/data/local/tmp/there"))
    acts: list[tuple[bool, Callable[[], object]]] = [
        (False, lambda: adb.shell(device.serial, "echo " + "x" * 100)),
        (True, lambda: adb.shell(device.serial, "echo " + "x" * 100)),
        (False, lambda: push(adb, device.serial, model, REMOTE)),
        (True, lambda: pull(adb, device.serial, "/data/local/tmp/there", tmp_path / "back")),
        (False, lambda: detached.start(adb, device.serial, "true")),
    ]
    for is_sending, act in acts:
        patiently(adb, device.serial, lambda: adb.shell(device.serial, "true"), PATIENCE_S)
        break_at(device, place, is_sending)
        with pytest.raises(MAY_PASS, match=f"{device.serial}: .*(adb connect|cable)") as caught:
            act()
        assert isinstance(caught.value, DeviceError)
        assert caught.value.serial == device.serial
        assert is_broken(device)


@pytest.mark.parametrize(
    ("state", "kind", "advice"),
    [("unauthorized", Unauthorized, "Allow USB debugging"), ("offline", Offline, "adb reconnect offline")],
)
def test_on_a_device_that_cannot_be_used_nothing_is_possible_and_the_reason_is_its_state(
    connect: Connect, adb: Adb, model: Path, tmp_path: Path, state: str, kind: type[DeviceError], advice: str
) -> None:
    device = connect(Behaviour(state=state))
    assert adb.state(device.serial) == state
    run = detached.DetachedRun(device.serial, "/data/local/tmp/run")
    acts: list[Callable[[], object]] = [
        lambda: adb.choose(),
        lambda: adb.shell(device.serial, "true"),
        lambda: push(adb, device.serial, model, REMOTE),
        lambda: pull(adb, device.serial, REMOTE, tmp_path / "back"),
        lambda: detached.start(adb, device.serial, "true"),
        lambda: detached.wait(adb, run, 60.0, patience_s=0.0),
        lambda: detached.remove(adb, run),
    ]
    for act in acts:
        with pytest.raises(kind, match=f"{device.serial}: .* the device is {state}; .*{advice}"):
            act()


PULL_TO_A_FULL_DISK = """\
import sys
import threading
from pathlib import Path
from evaltools.device.adb.adb import Adb
from evaltools.device.files.transfer import pull
from evaltools.errors import OutputError
adb, port, serial, remote, folder = sys.argv[1:]
try:
    pull(Adb(adb, int(port)), serial, remote, Path(folder) / "model", patience_s=3600.0)
except OutputError as error:
    print(error, list(Path(folder).iterdir()))
"""


def test_a_full_disk_here_is_said_at_once(connect: Connect, adb: Adb, model: Path, tmp_path: Path) -> None:
    device = connect(Behaviour())
    shutil.copy(model, device.path("/data/local/tmp/model"))
    folder = tmp_path / "small"
    folder.mkdir()
    own_disk = ["unshare", "--user", "--map-root-user", "--mount"]
    if shutil.which("unshare") is None or subprocess.run([*own_disk, "true"], capture_output=True).returncode != 0:
        pytest.skip("a disk of its own needs unshare and user namespaces")
    mounted = f'mount -t tmpfs -o size=64k tmpfs {folder} && exec "$@"'
    arguments = [ADB, str(adb.port), device.serial, "/data/local/tmp/model", str(folder)]
    done = subprocess.run(
        [*own_disk, "sh", "-c", mounted, "sh", sys.executable, "-c", PULL_TO_A_FULL_DISK, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "HOME": str(tmp_path)},
    )
    message = (
        rf"/data/local/tmp/model of {device.serial} \({SIZE} bytes\) does not fit into {folder}, "
        r"which has \d+ free; delete some \[\]\n"
    )
    assert re.fullmatch(message, done.stdout), done
