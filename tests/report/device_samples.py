"""Runs on devices made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceLeftOut, DeviceRun, DeviceWork, LostAttempt

PHONE: Final = DeviceFacts("R58M", model="Pixel 7", soc="Google GS201")
BOARD: Final = DeviceFacts("10.0.0.9:5555")
NOTHING: Final = DeviceConditions()


def work(serial: str, **changed: Any) -> DeviceWork:
    return replace(DeviceWork(serial, "2026-01-01T00:00:00+00:00", 0.0, 5.0, NOTHING, NOTHING), **changed)


def lost(serial: str, kind: str = "time-out", elapsed_s: float = 7.0) -> LostAttempt:
    return LostAttempt(kind, f"{serial}: too late", elapsed_s)


def run_of(
    *done: DeviceWork, devices: Sequence[DeviceFacts] = (PHONE,), left_out: Sequence[DeviceLeftOut] = ()
) -> DeviceRun:
    return DeviceRun("evaltools", tuple(devices), done, tuple(left_out))
