"""The real adb client and daemon: what a command gives, and what is said where there is no whole answer."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evaltools.device import detached
from evaltools.device.adb import Adb, next_step, parse_devices
from evaltools.device.errors import (
    AdbMissing,
    ConnectionLost,
    DeviceError,
    DeviceStopped,
    DeviceTimeout,
    NoSuchDevice,
    Offline,
    ServerFailed,
    SeveralDevices,
    Unauthorized,
)
from evaltools.device.process import find_adb, read_answer, run_adb
from evaltools.device.transfer import push
from evaltools.errors import UsageError
from tests.device.fault_proxy import FaultProxy
from tests.device.fixtures import Devices, write_fake_adb
from tests.device.real_device import Network


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("printf no-end", 0, b"no-end", b""),
        ("exit 7", 7, b"", b""),
        ("echo 'it''s'; false # a comment", 1, b"its\n", b""),
        ("cat", 0, b"", b""),
        (r"printf 'a\r\n'", 0, b"a\r\n", b""),
        ("echo out; echo err >&2; exit 3", 3, b"out\n", b"err\n"),
    ],
)
def test_exit_code_and_output_arrive(
    client: Adb, devices: Devices, command: str, code: int, out: bytes, err: bytes
) -> None:
    answer = client.shell(devices[0].serial, command)
    assert (answer.code, answer.out, answer.err) == (code, out, err)


def test_a_quote_that_is_not_closed_is_an_error_of_the_shell(client: Adb, devices: Devices) -> None:
    unclosed = client.shell(devices[0].serial, "echo 'a")
    assert unclosed.code != 0
    assert b"unterminated" in unclosed.err.lower()


def test_a_link_cut_while_a_command_runs_is_a_lost_connection(client: Adb, proxy: FaultProxy) -> None:
    proxy.cut_after("down", 5_000_000)
    with pytest.raises(ConnectionLost, match=f"{proxy.serial}: .*no word that it ended.*cable.*printed last: on?e?"):
        client.shell(proxy.serial, "yes one")


def test_a_stalled_device_is_a_time_out_and_leaves_no_adb(client: Adb, proxy: FaultProxy) -> None:
    proxy.stall()
    with pytest.raises(DeviceTimeout, match="no answer within 1 s; the command may still run"):
        client.shell(proxy.serial, "true", 1.0)
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [line for line in listing.splitlines() if f"-s {proxy.serial} shell" in line]
    proxy.go_on()


def test_a_long_command_is_not_waited_for_once_a_stop_is_set(client: Adb, devices: Devices) -> None:
    serial, stop = devices[0].serial, threading.Event()
    timer = threading.Timer(0.5, stop.set)
    timer.start()
    with pytest.raises(DeviceStopped, match=f"{serial}: stopped as asked"):
        client.shell(serial, "sleep 60", 3600.0, stop)
    timer.join()


def test_a_device_is_chosen_only_where_there_is_no_doubt(own_client: Adb, devices: Devices) -> None:
    first, second = (device.serial for device in devices)
    with pytest.raises(NoSuchDevice, match="no device is connected; plug it in"):
        own_client.choose()
    assert own_client.choose(first) == first, "it is connected"
    assert own_client.choose() == first
    named = Adb(own_client.path, own_client.port, {**os.environ, "ANDROID_SERIAL": second})
    assert named.choose() == second
    assert named.choose(first) == first
    with pytest.raises(SeveralDevices, match=r"2 devices are connected .* ANDROID_SERIAL") as caught:
        own_client.choose()
    assert caught.value.exit_code == 2
    with pytest.raises(NoSuchDevice, match="nobody: adb shell is not possible, the device is not found"):
        own_client.shell("nobody", "true")


def test_a_server_that_cannot_be_reached_is_named(network: Network) -> None:
    elsewhere = Adb(str(network.adb), None, {**os.environ, "ADB_SERVER_SOCKET": "tcp:127.0.0.2:1"})
    with pytest.raises(ServerFailed, match="ADB_SERVER_SOCKET"):
        elsewhere.devices()


# ----- what the real daemon cannot show: a program that answers as adb does


@pytest.mark.parametrize(
    ("state", "kind", "advice"),
    [
        ("unauthorized", Unauthorized, "Allow USB debugging"),
        ("no permissions (user is in the plugdev group)", Unauthorized, "udev"),
        ("offline", Offline, "adb reconnect offline"),
    ],
)
def test_on_a_device_that_cannot_be_used_nothing_is_possible_and_the_reason_is_its_state(
    tmp_path: Path, state: str, kind: type[DeviceError], advice: str
) -> None:
    adb = Adb(write_fake_adb(tmp_path, state), environment={"PATH": os.environ["PATH"]})
    acts: list[Callable[[], object]] = [
        lambda: adb.choose(),
        lambda: adb.shell("R58M", "true"),
        lambda: push(adb, "R58M", Path(__file__), "/data/local/tmp/model"),
        lambda: detached.start(adb, "R58M", "true"),
    ]
    for act in acts:
        with pytest.raises(kind, match=rf"R58M: .* the device is {state.partition(' (')[0]}.*; .*{advice}"):
            act()


def test_a_device_whose_shell_gives_no_exit_codes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="Android 7"):
        Adb(write_fake_adb(tmp_path, "device")).shell("R58M", "true")


def test_one_that_prints_without_end_is_ended_and_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "adb"
    script.write_text("#!/bin/sh\nexec yes")
    script.chmod(0o755)
    monkeypatch.setattr("evaltools.device.process._MOST_PRINTED", 1 << 20)
    done = run_adb([str(script), "devices"], 60.0)
    assert (done.code, len(done.out)) == (1, 1 << 20)
    assert b"more than 1 MB were printed" in done.err


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
    with pytest.raises(UsageError, match="ADB=/none is not a program"):
        find_adb("", paths | {"ADB": "/none"})
    with pytest.raises(AdbMissing, match="apt install adb"):
        find_adb("", {"PATH": "/none"})
