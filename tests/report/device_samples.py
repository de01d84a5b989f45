"""Runs on devices made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from evaltools.result.device import DeviceConditions, DeviceFacts
from evaltools.result.device_run import (
    DeviceLeftOut,
    DevicePart,
    DeviceRun,
    LostAttempt,
    PartFigures,
)

PHONE: Final = DeviceFacts("R58M", model="Pixel 7", soc="Google GS201")
BOARD: Final = DeviceFacts("10.0.0.9:5555")
NOTHING: Final = DeviceConditions()


def part(index: int, serial: str, *figures: PartFigures, **changed: Any) -> DevicePart:
    made = DevicePart(index, 4, serial, 10, "2026-01-01T00:00:00+00:00", 0.0, 5.0, NOTHING, NOTHING, figures=figures)
    return replace(made, **changed)


def timed_part(name: str, *times: int) -> PartFigures:
    return PartFigures(name, len(times), 0, times)


def lost(serial: str, kind: str = "time-out", elapsed_s: float = 7.0) -> LostAttempt:
    return LostAttempt(serial, kind, f"{serial}: too late", elapsed_s)


def run_of(
    *parts: DevicePart, devices: Sequence[DeviceFacts] = (PHONE,), left_out: Sequence[DeviceLeftOut] = ()
) -> DeviceRun:
    return DeviceRun("evaltools", "pool", tuple(devices), parts, tuple(left_out))
