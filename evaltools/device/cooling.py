"""How a device is doing before and after a part, and waiting until it has cooled down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from evaltools.device.errors import CommandFailed
from evaltools.report.device_result import DeviceFacts
from evaltools.report.device_run import DeviceConditions, hottest

_BETWEEN_LOOKS_S: Final = 5.0


def conditions_of(facts: DeviceFacts) -> DeviceConditions:
    """What of a device's facts changes while it works."""
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
) -> tuple[DeviceConditions, float]:
    """Wait until no temperature that ``look`` finds is above the limit; the conditions then, and the seconds waited.

    It goes on after ``timeout_s`` seconds, which the conditions show. Raises :class:`CommandFailed` where the device
    states no temperature.
    """
    started = time.monotonic()
    while True:
        conditions = look()
        temperature, waited = hottest(conditions), time.monotonic() - started
        if temperature is None:
            raise CommandFailed(
                f"{serial}: it states no temperature, so --cool_down cannot be kept; leave the flag out", serial
            )
        if temperature <= limit_celsius or waited >= timeout_s or stop.wait(between_looks_s):
            return conditions, waited
