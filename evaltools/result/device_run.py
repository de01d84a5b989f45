"""What happened on the devices of a run, as typed facts: who did which part, under which conditions, what was lost."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from evaltools.result.device import DeviceConditions, DeviceFacts

HOST = "host"
"""The name of this computer beside those of devices."""


class LostAttempt(Struct, frozen=True):
    """A part that a device did not finish; ``kind`` in a word, ``reason`` in full; it was done again afterwards."""

    serial: str
    kind: str
    reason: str
    elapsed_s: float


class PartFigures(Struct, frozen=True):
    """What one configuration did in a part: so many examples, of which some failed.

    ``invokes_us`` are its latencies there in microseconds, those of the quiet phase where there was one.
    ``right`` of the examples were classified right, None where the task is another.
    """

    configuration: str
    examples: int
    failed: int
    invokes_us: tuple[float, ...] = ()
    right: int | None = None


class DevicePart(Struct, frozen=True):
    """A part of the work as it was done: the ``index``-th of ``count``, ``examples`` of them, by one device.

    ``waited_s`` is what it waited to cool down, ``elapsed_s`` what it took after that, transfers included.
    ``delegate_lines`` are what the runtime and its delegates logged of what was delegated. ``lost`` has the attempts
    before the one that counts.
    """

    index: int
    count: int
    serial: str
    examples: int
    started_at: str
    waited_s: float
    elapsed_s: float
    before: DeviceConditions
    after: DeviceConditions
    delegate_lines: tuple[str, ...] = ()
    lost: tuple[LostAttempt, ...] = ()
    figures: tuple[PartFigures, ...] = ()


def median_us(parts: Iterable[DevicePart], configuration: str) -> float | None:
    """The median latency of one configuration in some parts, in microseconds; None where nothing was timed."""
    times = [
        time
        for part in parts
        for figures in part.figures
        if figures.configuration == configuration
        for time in figures.invokes_us
    ]
    return statistics.median(times) if times else None


class DeviceLeftOut(Struct, frozen=True):
    """A device that gave up, or was not like the others, and why; its parts were done by the others."""

    serial: str
    reason: str


class DeviceRun(Struct, frozen=True):
    """How a run was done on devices.

    ``program``: what ran there. ``split``: ``pool``, parts went to whichever device was free; ``each``, every device
    did everything, and its configurations are named ``NAME@SERIAL``. ``devices`` are as they were at the beginning.
    """

    program: Literal["evaltools", "native", "app"]
    split: Literal["pool", "each"]
    devices: tuple[DeviceFacts, ...]
    parts: tuple[DevicePart, ...]
    left_out: tuple[DeviceLeftOut, ...] = ()

    @property
    def parts_by_serial(self) -> dict[str, list[DevicePart]]:
        """What each device did."""
        return {facts.serial: [part for part in self.parts if part.serial == facts.serial] for facts in self.devices}

    @property
    def configurations(self) -> list[str]:
        """Those that have figures in any part, by name."""
        return list(dict.fromkeys(figures.configuration for part in self.parts for figures in part.figures))
