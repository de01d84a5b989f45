"""What happened on the devices of a run, as typed facts: what each did, under which conditions, what was lost."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from evaltools.result.device import DeviceConditions, DeviceFacts

HOST = "host"
"""The name of this computer beside those of devices."""


class LostAttempt(Struct, frozen=True):
    """Work that a device did not finish, and did again afterwards; ``kind`` in a word, ``reason`` in full."""

    kind: str
    reason: str
    elapsed_s: float


class DeviceWork(Struct, frozen=True):
    """The work of one device.

    ``waited_s`` is what it waited to cool down, ``elapsed_s`` what it took after that, transfers included.
    ``delegate_lines`` are what the runtime and its delegates logged of what was delegated. ``lost`` has the attempts
    before the one that counts.
    """

    serial: str
    started_at: str
    waited_s: float
    elapsed_s: float
    before: DeviceConditions
    after: DeviceConditions
    delegate_lines: tuple[str, ...] = ()
    lost: tuple[LostAttempt, ...] = ()


class DeviceLeftOut(Struct, frozen=True):
    """A device that gave up, and why; nothing of it is in the result."""

    serial: str
    reason: str


class DeviceRun(Struct, frozen=True):
    """How a run was done on devices, of which each did everything.

    ``program``: what ran there. ``devices`` are as they were at the beginning, ``work`` is what each did. Where there
    are several, or this computer did the same, configurations are named ``NAME@SERIAL``.
    """

    program: Literal["evaltools", "native", "app"]
    devices: tuple[DeviceFacts, ...]
    work: tuple[DeviceWork, ...]
    left_out: tuple[DeviceLeftOut, ...] = ()
