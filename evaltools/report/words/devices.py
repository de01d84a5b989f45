"""Devices in words: what they are, how warm they are, how fast their CPUs may run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceRun, hottest
from evaltools.result.section import Note

_STATUSES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")


def throttling(status: int | None) -> str:
    """Android's word for a thermal status, 0 (none) to 6 (shutdown); empty where the device does not say.

    >>> throttling(0), throttling(2), throttling(None), throttling(7)
    ('none', 'moderate', '', '7')
    """
    if status is None:
        return ""
    return _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)


def model_of(facts: DeviceFacts) -> str:
    """The model of a device and its chip, as far as it says."""
    return " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text)


def clocks(conditions: DeviceConditions) -> str:
    """The clock of the fastest CPU, and the highest that it may have; empty where the device does not say.

    >>> from evaltools.result.device import DeviceCpu
    >>> clocks(DeviceConditions(cpu_frequencies=(DeviceCpu(4, "schedutil", 1400000, 500000, 2850000),)))
    '1.40 of 2.85 GHz'
    """
    known = [
        (cpu.highest_khz, cpu.current_khz)
        for cpu in conditions.cpu_frequencies
        if cpu.highest_khz is not None and cpu.current_khz is not None
    ]
    if not known:
        return ""
    highest, current = max(known)
    return f"{current / 1e6:.2f} of {highest / 1e6:.2f} GHz"


def devices_in_words(run: DeviceRun) -> Iterator[Note]:
    """Of each device what it is, and how warm and fast it was before and after; marked where it slowed itself down."""
    facts = {each.serial: each for each in run.devices}
    for work in run.work:
        own = facts[work.serial]
        android = f"Android {own.android}" if own.android else ""
        warmth = _from_to(*(f"{degrees:.1f} C" if degrees is not None else "" for degrees in map(hottest, work.both)))
        speed = _from_to(*map(clocks, work.both))
        worst = max((each.thermal_status or 0 for each in work.both), default=0)
        slowed = f"it slowed itself down ({throttling(worst)} throttling), so that its times are no yardstick"
        said = [model_of(own), android, own.gpu or "", warmth, speed and f"CPU at {speed}", slowed if worst else ""]
        if any(said):
            yield Note(work.serial, ", ".join(filter(None, said)), "open" if worst else "")


def _from_to(before: str, after: str) -> str:
    return before if after in ("", before) else f"{before or 'unknown'}, then {after}"
