"""Devices that programs run a model on: what they are, and how warm and fast they are before and after a run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone

from msgspec import Struct

from evaltools.adb.client import Adb, DeviceError, Link
from evaltools.adb.facts import conditions_now, find_devices
from evaltools.configuration import Configuration
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceRun, DeviceWork


class Watch(Struct, frozen=True):
    """Devices as they were when a run began; ``begun`` is a moment of the monotonic clock."""

    devices: tuple[DeviceFacts, ...]
    started_at: str
    begun: float

    def ended(self) -> DeviceRun | None:
        """How the run was for them, now that it is over; None where no device took part."""
        elapsed_s = time.monotonic() - self.begun
        work = tuple(
            DeviceWork(each.serial, self.started_at, 0.0, elapsed_s, each.conditions, _conditions_of(each.serial))
            for each in self.devices
        )
        return DeviceRun("benchmark_model", self.devices, work) if work else None


def watch(configurations: Iterable[Configuration]) -> Watch:
    """Look at the devices of configurations; one that does not answer is left out, its session says why."""
    serials = tuple(dict.fromkeys(each.device for each in configurations if each.device))
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Watch(_found(serials) if serials else (), now, time.monotonic())


def _found(serials: Sequence[str]) -> tuple[DeviceFacts, ...]:
    adb = Adb()
    for serial in serials:
        adb.connect(serial)
    return tuple(each.facts for each in find_devices(adb, serials) if each.facts is not None)


def _conditions_of(serial: str) -> DeviceConditions:
    """Those of now; none are known of a device that does not answer any more."""
    try:
        return conditions_now(Link(Adb(), serial))
    except DeviceError:
        return DeviceConditions()
