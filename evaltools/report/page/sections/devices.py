"""Devices: a table of those that are connected, and of what each did in a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.report.page.sections.speed import temperatures
from evaltools.result.device import DeviceFacts, DeviceFinding, DeviceList, DeviceRun, hottest
from evaltools.result.section import Block, Cell, Lines, Note, Section, Table, number_cell

_COLUMNS: Final = (
    "serial", "state", "model", "Python", "ABI", "Android", "SoC", "CPUs", "battery", "hottest", "throttling", "free",
)  # fmt: skip
_UNKNOWN: Final = "-"
_STATUSES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_GIB: Final = 1 << 30


def connected(found: DeviceList) -> list[Block]:
    """The table, then a line for each device that cannot be used, with what to do."""
    if not found.devices:
        return [Lines(["no device is connected"])]
    table = Table("Devices", _COLUMNS, [_cells(finding) for finding in found.devices], names=2)
    problems = [Note("warning", finding.problem, "open") for finding in found.devices if finding.facts is None]
    return [table, *([Lines(problems)] if problems else [])]


def throttling(status: int | None) -> str:
    """Android's word for a thermal status, 0 (none) to 6 (shutdown); empty where the device does not say.

    >>> throttling(0), throttling(2), throttling(None), throttling(7)
    ('none', 'moderate', '', '7')
    """
    if status is None:
        return ""
    return _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)


def _cells(finding: DeviceFinding) -> list[str]:
    if finding.facts is None:
        state = "no answer" if finding.state == "device" else finding.state
        return [finding.serial, state, *[_UNKNOWN] * (len(_COLUMNS) - 2)]
    return [finding.serial, finding.state, *(cell or _UNKNOWN for cell in _fact_cells(finding.facts))]


def _fact_cells(facts: DeviceFacts) -> list[str]:
    """The cells behind serial and state, empty where nothing is known."""
    conditions = facts.conditions
    level = "" if conditions.battery_level is None else f"{conditions.battery_level}%"
    warmth = "" if conditions.battery_temperature is None else f"{conditions.battery_temperature / 10:.1f} C"
    highest = hottest(conditions)
    sdk = "" if facts.sdk is None else f"(SDK {facts.sdk})"
    return [
        " ".join(filter(None, [facts.manufacturer, facts.model])),
        facts.python or "",
        facts.abi or facts.machine or "",
        " ".join(filter(None, [facts.android, sdk])),
        facts.soc or "",
        "" if facts.cpus is None else str(facts.cpus),
        " ".join(filter(None, [level, warmth])),
        "" if highest is None else f"{highest:.1f} C",
        throttling(conditions.thermal_status),
        "" if facts.free_bytes is None else f"{facts.free_bytes / _GIB:.1f} GiB",
    ]


def devices(run: DeviceRun | None) -> Section | None:
    """A row per device, temperatures before and after, what was lost; None for a run only on this computer."""
    if run is None:
        return None
    blocks: list[Block] = [_devices(run)]
    warmth = temperatures({work.serial: (hottest(work.before), hottest(work.after)) for work in run.work}, "devices")
    blocks += [] if warmth is None else [warmth]
    notes = [
        Note(
            work.serial, f"lost after {attempt.elapsed_s:.0f} s ({attempt.kind}: {attempt.reason}), done again", "open"
        )
        for work in run.work
        for attempt in work.lost
    ]
    notes += [Note(left.serial, f"left out: {left.reason}", "open") for left in run.left_out]
    return Section("Devices", [*blocks, *([Lines(notes)] if notes else [])], is_brief=True)


def _devices(run: DeviceRun) -> Table:
    facts = {device.serial: device for device in run.devices}
    rows: list[Sequence[Cell]] = []
    for work in run.work:
        both = (work.before, work.after)
        warmest = max((known for known in map(hottest, both) if known is not None), default=None)
        statuses = [found.thermal_status for found in both if found.thermal_status is not None]
        rows.append(
            [
                work.serial,
                number_cell(len(work.lost)),
                number_cell(warmest, "{:.1f} C".format),
                throttling(max(statuses, default=None)) or _UNKNOWN,
                model_of(facts[work.serial]) or _UNKNOWN,
                number_cell(work.elapsed_s, "{:.1f} s".format),
            ]
        )
    return Table(f"{run.program} on each device", ("device", "lost", "hottest", "throttling", "model", "time"), rows)


def model_of(facts: DeviceFacts) -> str:
    """The model of a device and its chip, as far as it says."""
    return " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text)
