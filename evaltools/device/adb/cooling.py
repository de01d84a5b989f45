"""The conditions of a device before and after a part, and waiting until it has cooled down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from evaltools.device.adb.errors import CommandFailed
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceConditions, hottest
from evaltools.text import printable

_BATTERY: Final = "battery"
_BETWEEN_LOOKS_S: Final = 5.0


def conditions_of(facts: DeviceFacts) -> DeviceConditions:
    """The facts about a device that change while it works."""
    return DeviceConditions(
        battery_level=facts.battery_level,
        battery_temperature=facts.battery_temperature,
        thermal_status=facts.thermal_status,
        temperatures=facts.temperatures or {},
        cpu_frequencies=facts.cpu_frequencies,
    )


def cool_down(
    look: Callable[[], DeviceConditions],
    serial: str,
    limit_celsius: float,
    timeout_s: float,
    stop: threading.Event,
    between_looks_s: float = _BETWEEN_LOOKS_S,
    tell: Callable[[str], None] = lambda _line: None,
) -> tuple[DeviceConditions, float]:
    """Wait until no temperature that ``look`` finds is above the limit.

    Returns the conditions then, and the seconds waited.

    It goes on after ``timeout_s`` seconds even if the device is too warm. ``tell`` gets a line when the waiting begins,
    and one when it goes on too warm. Raises :class:`CommandFailed` where the device states no temperature.
    """
    started = time.monotonic()
    is_announced = False
    while True:
        conditions = look()
        temperature, waited = hottest(conditions), time.monotonic() - started
        if temperature is None:
            raise CommandFailed(
                f"{serial}: it states no temperature, so --cool_down cannot be kept; leave the flag out", serial
            )
        if temperature <= limit_celsius:
            return conditions, waited
        warm = f"{temperature:.1f} C (sensor {printable(sensor_of(conditions, temperature))})"
        if waited >= timeout_s:
            tell(
                f"{serial}: warning: still {warm} after {timeout_s:g} s of waiting for {limit_celsius:g} C; it goes on "
                "all the same, so its figures may be those of a throttled device. Raise --cool_down_timeout or "
                "--cool_down"
            )
            return conditions, waited
        if not is_announced:
            tell(f"{serial}: {warm}, waiting until all are at most {limit_celsius:g} C, for up to {timeout_s:g} s")
            is_announced = True
        if stop.wait(between_looks_s):
            return conditions, waited


def sensor_of(conditions: DeviceConditions, temperature: float) -> str:
    """The name of the sensor that shows this temperature, in degrees Celsius.

    >>> sensor_of(DeviceConditions(battery_temperature=287, temperatures={"skin": 31.5}), 31.5)
    'skin'
    """
    return next((name for name, degrees in conditions.temperatures.items() if degrees == temperature), _BATTERY)
