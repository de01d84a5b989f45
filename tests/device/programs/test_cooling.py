"""Waiting until a device has cooled down: for how long, by which temperatures, and what ends it."""

from __future__ import annotations

import threading

import pytest
from msgspec.structs import replace

from evaltools.adb.client import Adb, CommandFailed
from evaltools.result.device import DeviceConditions, hottest
from tests.device.fixtures import device_at


class Clock(threading.Event):
    """A stop that is never set; to wait for it takes time on this clock alone."""

    now = 1000.0

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.now += timeout
        return False

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of the waiting."""
    own = Clock()
    monkeypatch.setattr("evaltools.device.device.time", own)
    return own


def at(celsius: float | None, battery: int | None = None) -> DeviceConditions:
    temperatures = {} if celsius is None else {"SKIN": celsius, "cold": 4.0}
    return DeviceConditions(battery_temperature=battery, temperatures=temperatures)


@pytest.fixture(autouse=True)
def looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every 100 s."""
    monkeypatch.setattr("evaltools.device.device._BETWEEN_LOOKS_S", 100.0)


def cooled(stop: threading.Event, *looks: DeviceConditions) -> tuple[DeviceConditions, float, list[str]]:
    """What comes of these conditions, the last one again and again; and what is told."""
    left, told = list(looks), list[str]()
    device = device_at(Adb("/bin/true"), "R58M", stop=stop, report=told.append)
    device.flags = replace(device.flags, cool_down_c=35.0)
    conditions, waited_s = device.cool_down(lambda: left.pop(0) if len(left) > 1 else left[0])
    return conditions, waited_s, told


@pytest.mark.parametrize(
    ("looks", "waited_s"),
    [
        ([at(35.0), at(20.0)], 0),
        ([at(50.0), at(41.0), at(35.1), at(34.9)], 300),
        ([at(20.0, 400), at(20.0, 351), at(20.0, 350)], 200),
        ([at(None, 400), at(None, 300)], 100),
    ],
)
def test_a_device_is_waited_for_until_the_hottest_of_sensors_and_battery_is_cool(
    clock: Clock, looks: list[DeviceConditions], waited_s: float
) -> None:
    """The conditions are those that it goes on with."""
    last = looks[0] if waited_s == 0 else looks[-1]
    assert cooled(clock, *looks)[:2] == (last, waited_s)


def test_waiting_is_told_once_when_it_begins(clock: Clock) -> None:
    assert cooled(clock, at(20.0))[2] == []
    (line,) = cooled(clock, at(41.54), at(40.0), at(30.0))[2]
    for fact in ("R58M: ", "41.5 C (sensor SKIN)", "35 C", "600 s"):
        assert fact in line
    assert "40.0 C (sensor battery)" in cooled(clock, at(20.0, 400), at(20.0, 300))[2][0]


def test_after_its_time_it_goes_on_with_a_warning(clock: Clock) -> None:
    conditions, waited_s, (begun, over) = cooled(clock, at(60.0))
    assert (conditions, waited_s) == (at(60.0), 600)
    assert "waiting until" in begun
    for fact in ("R58M: warning: ", "60.0 C (sensor SKIN)", "600 s", "35 C", "--cool_down"):
        assert fact in over


def test_a_stop_ends_the_waiting_without_a_warning() -> None:
    """It returns: what comes next on the device looks at the stop itself."""
    stop = threading.Event()
    stop.set()
    assert len(cooled(stop, at(60.0))[2]) == 1


def test_a_device_that_states_no_temperature_is_an_error_with_the_flag_to_leave_out(clock: Clock) -> None:
    with pytest.raises(CommandFailed, match="R58M: it states no temperature, so --cool_down cannot be kept; leave"):
        cooled(clock, at(None))


@pytest.mark.parametrize(
    ("battery", "temperatures", "highest"),
    [(None, {}, None), (-100, {"a": -20.0}, -10.0), (300, {"a": 31.0, "b": 30.5}, 31.0)],
)
def test_the_highest_of_all_temperatures_counts(
    battery: int | None, temperatures: dict[str, float], highest: float | None
) -> None:
    assert hottest(DeviceConditions(battery_temperature=battery, temperatures=temperatures)) == highest
