"""What is tried again, for how long, and what is not."""

from __future__ import annotations

import threading

import pytest

from evaltools.device import adb as adb_module
from evaltools.device.adb import Adb, patiently
from evaltools.device.errors import (
    MAY_PASS,
    CommandFailed,
    ConnectionLost,
    DeviceError,
    DeviceStopped,
    NoPermission,
    NoSpace,
    ServerFailed,
    Unauthorized,
)


class Device(Adb):
    """One that counts how often it is brought back."""

    def __init__(self) -> None:
        super().__init__("/bin/true")
        self.reconnects = 0

    def reconnect(self, serial: str) -> None:
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


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb_module, "_BETWEEN_TRIES_S", 0.01)


@pytest.mark.parametrize("kind", MAY_PASS)
def test_what_may_pass_is_tried_again_after_the_device_was_brought_back(kind: type[DeviceError]) -> None:
    device, act = Device(), Failing(kind("away"), 3)
    assert patiently(device, "R58M", act, 3600.0) == "done"
    assert (act.tries, device.reconnects) == (4, 3)


def test_a_server_that_died_may_pass() -> None:
    assert ServerFailed in MAY_PASS


@pytest.mark.parametrize("kind", [NoSpace, NoPermission, Unauthorized, CommandFailed])
def test_what_does_not_pass_is_raised_at_once(kind: type[DeviceError]) -> None:
    device, act = Device(), Failing(kind("for good"), 3)
    with pytest.raises(kind, match="for good"):
        patiently(device, "R58M", act, 3600.0)
    assert (act.tries, device.reconnects) == (1, 0)


def test_patience_ends_with_the_last_error() -> None:
    act = Failing(ConnectionLost("away"), 10_000)
    with pytest.raises(ConnectionLost, match="away"):
        patiently(Device(), "R58M", act, 0.2)
    assert act.tries > 1
    once = Failing(ConnectionLost("away"), 1)
    with pytest.raises(ConnectionLost):
        patiently(Device(), "R58M", once, 0.0)
    assert once.tries == 1


def test_a_stop_is_heard_before_the_first_try_and_between_two() -> None:
    stop = threading.Event()

    def fail_and_stop() -> None:
        stop.set()
        raise ConnectionLost("away")

    device = Device()
    with pytest.raises(DeviceStopped, match="R58M: stopped as asked"):
        patiently(device, "R58M", fail_and_stop, 3600.0, stop)
    act = Failing(ConnectionLost("away"), 0)
    with pytest.raises(DeviceStopped):
        patiently(device, "R58M", act, 3600.0, stop)
    assert (act.tries, device.reconnects) == (0, 0)
