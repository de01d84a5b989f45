"""The real adb binary against a device's end that misbehaves on demand."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from evaltools.device.adb import detached
from evaltools.device.adb.adb import Adb
from evaltools.device.adb.errors import (
    AdbMissing,
    CommandFailed,
    ConnectionLost,
    DeviceError,
    DeviceStopped,
    DeviceTimeout,
    NoPermission,
    NoSpace,
    NoSuchDevice,
    ServerFailed,
    SeveralDevices,
    TransferFailed,
)
from evaltools.device.adb.process import find_adb, read_answer, wrap_command
from evaltools.device.adb.states import next_step, parse_devices
from evaltools.device.files.transfer import pull, push
from evaltools.errors import DataError, UsageError
from tests.device.adb_server import own_server
from tests.device.fake_device import Behaviour, FakeDevice

ADB = os.environ.get("EVALTOOLS_ADB") or shutil.which("adb") or ""
needs_adb = pytest.mark.skipif(not ADB, reason="no adb binary: neither EVALTOOLS_ADB nor PATH names one")
Connect = Callable[..., FakeDevice]


@pytest.fixture
def adb(tmp_path: Path) -> Iterator[Adb]:
    """A client with a server of its own."""
    environment = {key: value for key, value in os.environ.items() if key != "ANDROID_SERIAL"} | {"HOME": str(tmp_path)}
    with own_server(ADB, environment) as port:
        yield Adb(ADB, port, environment)


@pytest.fixture
def connect(adb: Adb, tmp_path: Path) -> Iterator[Connect]:
    devices: list[FakeDevice] = []

    def connected(behaviour: Behaviour | None = None) -> FakeDevice:
        device = FakeDevice(tmp_path / f"device{len(devices)}", behaviour)
        devices.append(device)
        adb.reconnect(device.serial)
        return device

    yield connected
    for device in devices:
        device.close()


@needs_adb
@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        ("echo one", 0, b"one\n"),
        ("printf no-end", 0, b"no-end"),
        ("exit 7", 7, b""),
        ("echo 'it''s'; false # a comment", 1, b"its\n"),
        ("cat", 0, b""),
        (r"printf 'a\r\n'", 0, b"a\r\n"),
    ],
)
def test_exit_code_and_output_arrive(connect: Connect, adb: Adb, command: str, code: int, out: bytes) -> None:
    answer = adb.shell(connect().serial, command)
    assert (answer.code, answer.out, answer.err) == (code, out, b"")


@needs_adb
def test_stderr_is_apart_where_the_device_can(connect: Connect, adb: Adb) -> None:
    device = connect()
    answer = adb.shell(device.serial, "echo out; echo err >&2; exit 3")
    assert (answer.code, answer.out, answer.err) == (3, b"out\n", b"err\n")
    assert adb.features(device.serial) == ("cmd", "shell_v2")
    unclosed = adb.shell(device.serial, "echo 'a")
    assert unclosed.code != 0
    assert b"unterminated" in unclosed.err.lower()


@needs_adb
def test_a_device_whose_shell_gives_no_exit_codes_is_refused(connect: Connect, adb: Adb) -> None:
    with pytest.raises(DeviceError, match="Android 7"):
        adb.shell(connect(Behaviour(legacy=True)).serial, "true")


@needs_adb
def test_a_link_cut_while_a_command_runs_is_a_lost_connection(connect: Connect, adb: Adb) -> None:
    device = connect()

    def cut_when_heard() -> None:
        device.heard.wait()
        device.cut()

    cutter = threading.Thread(target=cut_when_heard, daemon=True)
    cutter.start()
    with pytest.raises(ConnectionLost, match="no word that it ended.*printed last: one"):
        adb.shell(device.serial, "echo one; sleep 300; echo two")
    cutter.join()


@needs_adb
def test_a_stalled_device_is_a_time_out_and_leaves_no_adb(connect: Connect, adb: Adb) -> None:
    device = connect()
    adb.shell(device.serial, "true")
    device.behaviour.stalled = True
    with pytest.raises(DeviceTimeout, match="no answer within 1 s; the command may still run"):
        adb.shell(device.serial, "true", 1.0)
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [line for line in listing.splitlines() if f"-s {device.serial} shell" in line]


@needs_adb
def test_a_long_command_is_not_waited_for_once_a_stop_is_set(connect: Connect, adb: Adb) -> None:
    device, stop = connect(), threading.Event()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    with pytest.raises(DeviceStopped, match=f"{device.serial}: stopped as asked"):
        adb.shell(device.serial, "sleep 60", 3600.0, stop)
    timer.join()


@needs_adb
def test_a_device_is_chosen_only_where_there_is_no_doubt(connect: Connect, adb: Adb) -> None:
    with pytest.raises(NoSuchDevice, match="no device is connected; plug it in"):
        adb.choose()
    first = connect()
    assert adb.choose() == first.serial
    second = connect()
    with pytest.raises(SeveralDevices, match=r"2 devices are connected .* ANDROID_SERIAL") as caught:
        adb.choose()
    assert caught.value.exit_code == 2
    named = Adb(ADB, adb.port, {**os.environ, "ANDROID_SERIAL": second.serial})
    assert named.choose() == second.serial
    assert named.choose(first.serial) == first.serial
    with pytest.raises(NoSuchDevice, match="nobody: adb shell is not possible, the device is not found"):
        adb.shell("nobody", "true")


@needs_adb
def test_a_server_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    elsewhere = Adb(ADB, None, {**os.environ, "HOME": str(tmp_path), "ADB_SERVER_SOCKET": "tcp:127.0.0.2:1"})
    with pytest.raises(ServerFailed, match="ADB_SERVER_SOCKET"):
        elsewhere.devices()


@needs_adb
def test_files_arrive_and_come_back(connect: Connect, adb: Adb, tmp_path: Path) -> None:
    device, local, back = connect(), tmp_path / "model", tmp_path / "back"
    local.write_bytes(os.urandom(300_000))
    sent = push(adb, device.serial, local, "/data/local/tmp/a b/model")
    assert (sent.size_bytes, sent.was_there) == (300_000, False)
    assert [path.name for path in device.path("/data/local/tmp/a b").iterdir()] == ["model"]
    assert push(adb, device.serial, local, "/data/local/tmp/a b/model").was_there
    assert pull(adb, device.serial, "/data/local/tmp/a b/model", back).sha256 == sent.sha256
    assert back.read_bytes() == local.read_bytes()


@needs_adb
def test_a_file_of_the_same_size_is_sent_again(connect: Connect, adb: Adb, tmp_path: Path) -> None:
    device, local = connect(), tmp_path / "model"
    for content in (b"old", b"new"):
        local.write_bytes(content)
        assert not push(adb, device.serial, local, "/data/local/tmp/model").was_there
        assert device.path("/data/local/tmp/model").read_bytes() == content


@needs_adb
def test_a_spoiled_file_never_gets_its_name(connect: Connect, adb: Adb, tmp_path: Path) -> None:
    device, local = connect(Behaviour(spoiled=True)), tmp_path / "model"
    local.write_bytes(b"content")
    with pytest.raises(TransferFailed, match="did not arrive as it was sent"):
        push(adb, device.serial, local, "/data/local/tmp/model")
    assert list(device.path("/data/local/tmp").iterdir()) == []


@needs_adb
def test_why_a_file_cannot_be_written_is_asked_of_the_device(connect: Connect, adb: Adb, tmp_path: Path) -> None:
    tools, local = tmp_path / "tools", tmp_path / "model"
    tools.mkdir()
    (tools / "df").write_text(
        "#!/bin/sh\necho Filesystem 1K-blocks Used Available Use% Mounted on; echo d 9 9 0 100% /\n"
    )
    (tools / "df").chmod(0o755)
    local.write_bytes(b"content")
    device = connect(Behaviour(spoiled=True, environment={"PATH": f"{tools}:{os.environ['PATH']}"}))
    with pytest.raises(NoSpace, match="7 bytes do not fit into /data/local/tmp, which has 0 free"):
        push(adb, device.serial, local, "/data/local/tmp/model")
    with pytest.raises(NoPermission, match="/proc/none cannot be written"):
        push(adb, device.serial, local, "/proc/none/model")
    with pytest.raises(TransferFailed, match="/data/local/tmp is a folder"):
        push(adb, device.serial, local, "/data/local/tmp")
    with pytest.raises(DataError, match="absent cannot be read"):
        push(adb, device.serial, tmp_path / "absent", "/data/local/tmp/model")


@needs_adb
def test_an_old_file_is_no_success_of_pull(connect: Connect, adb: Adb, tmp_path: Path) -> None:
    device, local = connect(), tmp_path / "result"
    local.write_text("of yesterday")
    with pytest.raises(TransferFailed, match="there is no file /data/local/tmp/result"):
        pull(adb, device.serial, "/data/local/tmp/result", local)
    assert not local.exists()


@needs_adb
def test_a_detached_command_that_vanishes_is_no_success(connect: Connect, adb: Adb) -> None:
    device = connect()
    run = detached.start(adb, device.serial, "echo last words; sleep 300")
    while not detached.look(adb, run).out:
        time.sleep(0.1)
    detached.end(adb, run)
    with pytest.raises(CommandFailed, match="vanished without an exit code; it printed last: last words"):
        detached.wait(adb, run, 30.0)


def test_the_wrapped_command_proves_its_end_in_a_real_shell() -> None:
    for command, code in (("exit 9", 9), ("(", 2), ("true", 0)):
        done = subprocess.run(["sh", "-c", wrap_command(command, "mark")], capture_output=True, timeout=30)
        answer = read_answer(done.stdout, done.stderr, "mark")
        assert answer is not None
        assert answer.code == code or (code and answer.code)


@pytest.mark.parametrize(
    ("out", "err"), [(b"", b""), (b"out", b"marke"), (b"mark-0.", b""), (b"mark-", b"marke"), (b"other-0.", b"marke")]
)
def test_an_answer_that_is_not_whole_is_none(out: bytes, err: bytes) -> None:
    assert read_answer(out, err, "mark") is None


def test_the_list_of_devices_is_read_in_every_state() -> None:
    text = """\
* daemon not running; starting now at tcp:5037
* daemon started successfully
List of devices attached
0A041FDD400327         device usb:1-3 product:panther model:Pixel_7 device:panther transport_id:5
emulator-5554          offline transport_id:2
R58M1234               unauthorized usb:1-1 transport_id:7
????????????           no permissions (missing udev rules? user is in the plugdev group); \
see [http://developer.android.com/tools/device.html] usb:1-4 transport_id:3
adb-0A04-x (2)._adb-tls-connect._tcp device product:p model:M device:d transport_id:9
192.168.0.9:5555       recovery product:q model:N device:e transport_id:10

"""
    found = parse_devices(text)
    assert found is not None
    assert [(device.serial, device.state.split(" (")[0]) for device in found] == [
        ("0A041FDD400327", "device"),
        ("emulator-5554", "offline"),
        ("R58M1234", "unauthorized"),
        ("????????????", "no permissions"),
        ("adb-0A04-x (2)._adb-tls-connect._tcp", "device"),
        ("192.168.0.9:5555", "recovery"),
    ]
    assert (found[0].model, found[0].product, found[0].port, found[0].transport_id) == (
        "Pixel_7",
        "panther",
        "1-3",
        "5",
    )
    assert [bool(next_step(device.state)) for device in found] == [False, True, True, True, False, True]
    assert "udev" in next_step(found[3].state)
    assert parse_devices("List of devices attached\n\n") == ()
    assert parse_devices("* failed to start daemon\n") is None


def test_the_binary_is_the_one_named(tmp_path: Path) -> None:
    for name in ("adb", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    paths = {"PATH": str(tmp_path)}
    assert find_adb("", paths) == str(tmp_path / "adb")
    assert find_adb("", paths | {"ADB": str(tmp_path / "other")}) == str(tmp_path / "other")
    assert find_adb(str(tmp_path / "adb"), paths | {"ADB": str(tmp_path / "other")}) == str(tmp_path / "adb")
    with pytest.raises(UsageError, match="ADB=/none is no program"):
        find_adb("", paths | {"ADB": "/none"})
    with pytest.raises(AdbMissing, match="apt install adb"):
        find_adb("", {"PATH": "/none"})
