"""The real adb client and daemon: what a command gives, and what is said where there is no whole answer."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.adb import detached
from evaltools.adb.client import (
    Adb,
    ConnectionLost,
    DeviceAway,
    DeviceError,
    DeviceStopped,
    DeviceTimeout,
    Link,
    find_adb,
    next_step,
    parse_devices,
    read_answer,
)
from evaltools.adb.transfer import push
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
def test_exit_code_and_output_arrive(first: Link, command: str, code: int, out: bytes, err: bytes) -> None:
    answer = first.shell(command)
    assert (answer.code, answer.out, answer.err) == (code, out, err)


def test_a_link_cut_while_a_command_runs_is_a_lost_connection(breaking: Link, proxy: FaultProxy) -> None:
    proxy.cut_after("down", 5_000_000)
    with pytest.raises(ConnectionLost, match=f"{proxy.serial}: .*no word that it ended.*cable.*printed last: on?e?"):
        breaking.shell("yes one")


def test_a_stalled_device_is_a_time_out_and_leaves_no_adb(breaking: Link, proxy: FaultProxy) -> None:
    proxy.stall()
    with pytest.raises(DeviceTimeout, match="no answer within 1 s; the command may still run"):
        breaking.shell("true", 1.0)
    listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert not [line for line in listing.splitlines() if f"-s {proxy.serial} shell" in line]
    proxy.go_on()


def test_a_long_command_is_not_waited_for_once_a_stop_is_set(first: Link) -> None:
    timer = threading.Timer(0.5, first.stop.set)
    timer.start()
    with pytest.raises(DeviceStopped, match=f"{first.serial}: stopped as asked"):
        first.shell("sleep 60", 3600.0)
    timer.join()


def test_a_device_is_chosen_only_where_there_is_no_doubt(
    own_client: Adb, devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (device.serial for device in devices)
    with pytest.raises(DeviceAway, match="no device is connected; plug it in"):
        own_client.choose()
    own_client.connect(first)
    assert own_client.choose() == first
    monkeypatch.setenv("ANDROID_SERIAL", second)
    assert own_client.choose() == second, "it is connected"
    monkeypatch.delenv("ANDROID_SERIAL")
    with pytest.raises(UsageError, match=r"2 devices are connected .* ANDROID_SERIAL"):
        own_client.choose()
    with pytest.raises(DeviceAway, match="nobody: adb shell is not possible, the device is not found"):
        Link(own_client, "nobody").shell("true")


def test_a_server_that_cannot_be_reached_is_named(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADB_SERVER_SOCKET", "tcp:127.0.0.2:1")
    with pytest.raises(DeviceAway, match="ADB_SERVER_SOCKET"):
        Adb(str(network.adb)).devices()


# ----- what the real daemon cannot show: a program that answers as adb does


@pytest.mark.parametrize(
    ("state", "kind", "advice"),
    [
        ("unauthorized", DeviceError, "Allow USB debugging"),
        ("no permissions (user is in the plugdev group)", DeviceError, "udev"),
        ("offline", DeviceAway, "adb reconnect offline"),
    ],
)
def test_on_a_device_that_cannot_be_used_nothing_is_possible_and_the_reason_is_its_state(
    tmp_path: Path, state: str, kind: type[DeviceError], advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANDROID_SERIAL", raising=False)
    adb = Adb(write_fake_adb(tmp_path, state))
    link = Link(adb, "R58M")
    acts: list[Callable[[], object]] = [
        adb.choose,
        lambda: link.shell("true"),
        lambda: push(link, Path(__file__), "/data/local/tmp/model"),
        lambda: detached.start(link, "true", "/data/local/tmp/run"),
    ]
    for act in acts:
        with pytest.raises(kind, match=rf"R58M: .* the device is {state.partition(' (')[0]}.*; .*{advice}") as caught:
            act()
        assert type(caught.value) is kind


def test_a_device_whose_shell_gives_no_exit_codes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="Android 7"):
        Link(Adb(write_fake_adb(tmp_path, "device")), "R58M").shell("true")


@pytest.mark.parametrize(
    ("out", "err"), [(b"", b""), (b"out", b"marke"), (b"mark-0.", b""), (b"mark-", b"marke"), (b"other-0.", b"marke")]
)
def test_an_answer_that_is_not_whole_is_none(out: bytes, err: bytes) -> None:
    assert read_answer(out, err, "mark") is None


def test_the_list_of_devices_is_read_in_every_state() -> None:
    states = {
        "0A041FDD400327": "device",
        "emulator-5554": "offline",
        "R58M1234": "unauthorized",
        "????????????": "no permissions (missing udev rules? user is in the plugdev group); see [http://x.org/]",
        "adb-0A04-x (2)._adb-tls-connect._tcp": "device",
        "192.168.0.9:5555": "recovery",
    }
    listed = "".join(f"{serial}\t{state}\n" for serial, state in states.items())
    text = f"* daemon not running; starting now at tcp:5037\nList of devices attached\n{listed}\n"
    assert parse_devices(text) == states
    assert [bool(next_step(state)) for state in states.values()] == [False, True, True, True, False, True]
    assert "udev" in next_step(states["????????????"])
    assert parse_devices("List of devices attached\n\n") == {}
    assert parse_devices("* failed to start daemon\n") is None


def test_the_binary_is_the_one_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("adb", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("ADB", raising=False)
    assert find_adb() == str(tmp_path / "adb")
    monkeypatch.setenv("ADB", str(tmp_path / "other"))
    assert find_adb() == str(tmp_path / "other")
    assert find_adb(str(tmp_path / "adb")) == str(tmp_path / "adb")
    monkeypatch.setenv("ADB", "/none")
    with pytest.raises(UsageError, match="ADB=/none is not a program"):
        find_adb()
    monkeypatch.delenv("ADB")
    monkeypatch.setenv("PATH", "/none")
    with pytest.raises(DeviceError, match="apt install adb"):
        find_adb()


# ----- patience


class Counting(Adb):
    """One that counts how often a device is brought back."""

    def __init__(self) -> None:
        super().__init__("/bin/true")
        self.reconnects = 0

    def connect(self, serial: str) -> None:
        self.reconnects += 1


class Failing:
    """An act that fails some times, then succeeds."""

    def __init__(self, error: DeviceError, times: int) -> None:
        self.error, self.left, self.tries = error, times, 0

    def __call__(self) -> str:
        self.tries += 1
        self.left -= 1
        if self.left >= 0:
            raise self.error
        return "done"


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    monkeypatch.setattr("evaltools.adb.client._BETWEEN_TRIES_S", 0.01)
    return Counting()


def test_what_may_pass_is_tried_again_after_the_device_was_brought_back_and_nothing_else(counting: Counting) -> None:
    patient = Link(counting, "R58M", 3600.0)
    act = Failing(DeviceAway("away"), 3)
    assert patient.patiently(act) == "done"
    assert (act.tries, counting.reconnects) == (4, 3)
    for_good = Failing(DeviceError("for good"), 3)
    with pytest.raises(DeviceError, match="for good"):
        patient.patiently(for_good)
    assert (for_good.tries, counting.reconnects) == (1, 3)


def test_patience_ends_with_the_last_error(counting: Counting) -> None:
    for patience_s, most in ((0.2, 10_000), (0.0, 1)):
        act = Failing(ConnectionLost("away"), 10_000)
        with pytest.raises(ConnectionLost, match="away"):
            Link(counting, "R58M", patience_s).patiently(act)
        assert (act.tries > 1) == (most > 1)


def test_a_stop_is_heard_before_the_first_try_and_between_two(counting: Counting) -> None:
    link = Link(counting, "R58M", 3600.0)

    def fail_and_stop() -> None:
        link.stop.set()
        raise ConnectionLost("away")

    with pytest.raises(DeviceStopped, match="R58M: stopped as asked"):
        link.patiently(fail_and_stop)
    act = Failing(ConnectionLost("away"), 0)
    with pytest.raises(DeviceStopped):
        link.patiently(act)
    assert (act.tries, counting.reconnects) == (0, 0)
    assert replace(link, stop=threading.Event()).patiently(act) == "done"
