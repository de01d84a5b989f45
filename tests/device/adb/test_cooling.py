"""Waiting until a device has cooled down: for how long, by which temperatures, and what ends it."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from evaltools.device.adb.errors import CommandFailed
from evaltools.device.programs.part import conditions_of, cool_down
from evaltools.result.device import DeviceCpu, DeviceFacts
from evaltools.result.device_run import DeviceConditions, hottest

LONG_S = 20.0
"""Longer than anything here takes; a wait that does not end as it should ends then."""
"""A device that is 5 degrees cooler each time that it is looked at, from 45.5 on."""


class Looks:
    """The conditions of a device, look by look; the last ones stay."""

    def __init__(self, *temperatures: float | None, battery: Sequence[int | None] = (None,)) -> None:
        self._temperatures = temperatures
        self._battery = battery
        self.count = 0

    def __call__(self) -> DeviceConditions:
        celsius = self._temperatures[min(self.count, len(self._temperatures) - 1)]
        tenths = self._battery[min(self.count, len(self._battery) - 1)]
        self.count += 1
        temperatures = {} if celsius is None else {"SKIN": celsius, "cold": 4.0}
        return DeviceConditions(battery_temperature=tenths, temperatures=temperatures)


def cooled(looks: Looks) -> tuple[DeviceConditions, float]:
    return cool_down(looks, "R58M", 35.0, LONG_S, threading.Event(), between_looks_s=0.001)


def test_a_cool_device_is_not_waited_for() -> None:
    looks = Looks(35.0)
    conditions, waited_s = cooled(looks)
    assert looks.count == 1
    assert conditions == DeviceConditions(temperatures={"SKIN": 35.0, "cold": 4.0})
    assert 0 <= waited_s < LONG_S


def test_a_warm_device_is_looked_at_until_it_has_cooled_down() -> None:
    looks = Looks(50.0, 41.0, 35.1, 34.9, 20.0)
    conditions, waited_s = cooled(looks)
    assert looks.count == 4
    assert conditions.temperatures["SKIN"] == 34.9, "the conditions are those that it goes on with"
    assert waited_s >= 3 * 0.001


def test_the_battery_counts_too_in_tenths_of_a_degree() -> None:
    looks = Looks(20.0, battery=[400, 351, 350])
    conditions, _ = cooled(looks)
    assert (looks.count, conditions.battery_temperature) == (3, 350)
    only = Looks(None, battery=[400, 300])
    assert cooled(only)[0] == DeviceConditions(battery_temperature=300)
    assert only.count == 2


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
    monkeypatch.setattr("evaltools.device.programs.part.time", own)
    return own


def test_after_its_time_it_goes_on_with_the_device_as_warm_as_it_is(clock: Clock) -> None:
    looks = Looks(60.0)
    conditions, waited_s = cool_down(looks, "R58M", 35.0, 600.0, clock, between_looks_s=250.0)
    assert looks.count == 4
    assert conditions.temperatures["SKIN"] == 60.0
    assert waited_s == 750.0


def test_a_device_that_states_no_temperature_is_an_error_with_the_flag_to_leave_out() -> None:
    looks = Looks(None)
    with pytest.raises(CommandFailed, match="R58M: it states no temperature, so --cool_down cannot be kept; leave"):
        cooled(looks)
    assert looks.count == 1


def test_a_stop_ends_the_waiting_at_once() -> None:
    """It returns: what comes next on the device looks at the stop itself."""
    stop = threading.Event()
    looks = Looks(60.0)
    waiting = threading.Thread(target=cool_down, args=(looks, "R58M", 35.0, 3600.0, stop, 3600.0), daemon=True)
    waiting.start()
    stop.set()
    waiting.join(30.0)
    assert not waiting.is_alive()
    assert looks.count == 1


def told_while(looks: Looks, timeout_s: float = LONG_S, stop: threading.Event | None = None) -> list[str]:
    lines: list[str] = []
    cool_down(looks, "R58M", 35.0, timeout_s, stop or threading.Event(), 0.001, lines.append)
    return lines


def test_waiting_is_told_once_when_it_begins() -> None:
    assert told_while(Looks(20.0)) == []
    (line,) = told_while(Looks(41.54, 40.0, 30.0))
    for fact in ("R58M: ", "41.5 C (sensor SKIN)", "35 C", "20 s"):
        assert fact in line
    assert "40.0 C (sensor battery)" in told_while(Looks(20.0, battery=[400, 300]))[0]


def test_going_on_although_it_is_too_warm_is_a_warning(clock: Clock) -> None:
    begun, over = told_while(Looks(60.0), timeout_s=0.02, stop=clock)
    assert "waiting until" in begun
    for fact in ("R58M: warning: ", "60.0 C (sensor SKIN)", "0.02 s", "35 C", "--cool_down_timeout"):
        assert fact in over
    stop = threading.Event()
    stop.set()
    assert len(told_while(Looks(60.0), stop=stop)) == 1, "a stop is no reason for the warning"


@pytest.mark.parametrize(
    ("battery", "temperatures", "highest"),
    [
        (None, {}, None),
        (287, {}, 28.7),
        (-100, {"a": -20.0}, -10.0),
        (300, {"a": 31.0, "b": 30.5}, 31.0),
        (320, {"a": 31.0}, 32.0),
    ],
)
def test_the_highest_of_all_temperatures_counts(
    battery: int | None, temperatures: dict[str, float], highest: float | None
) -> None:
    assert hottest(DeviceConditions(battery_temperature=battery, temperatures=temperatures)) == highest


def test_conditions_are_the_facts_that_change() -> None:
    cpus = (DeviceCpu(0, "schedutil", 1, 2, 3),)
    facts = DeviceFacts(
        "R58M", "device", model="Pixel", battery_level=87, battery_temperature=283, thermal_status=2,
        temperatures={"SKIN": 31.5}, cpu_frequencies=cpus, free_bytes=5,
    )  # fmt: skip
    assert conditions_of(facts) == DeviceConditions(87, 283, 2, {"SKIN": 31.5}, cpus)
    assert conditions_of(replace(facts, temperatures=None)).temperatures == {}
    assert conditions_of(DeviceFacts("board", "device")) == DeviceConditions()
