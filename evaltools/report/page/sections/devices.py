"""Devices: a table of those that are connected, and of what each did in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from evaltools.report.page.content.page import some_of
from evaltools.report.page.sections.speed import temperatures
from evaltools.report.words.numbers import milliseconds
from evaltools.result.device import DeviceConditions, DeviceFacts, DeviceFinding, DeviceList, hottest
from evaltools.result.device_run import DevicePart, DeviceRun, median_us
from evaltools.result.section import Block, Cell, Lines, Note, Number, Section, Table, number_cell

_COLUMNS: Final = (
    "serial", "state", "model", "Python", "ABI", "Android", "SoC", "CPUs", "battery", "hottest", "throttling", "free",
)  # fmt: skip
_UNKNOWN: Final = "-"
_STATUSES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_GIB: Final = 1 << 30
_MOST_CONFIGURATIONS: Final = 4


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
    parts = {serial: of for serial, of in run.parts_by_serial.items() if of}
    warmth = temperatures(
        {name: (hottest(of[0].before), hottest(of[-1].after)) for name, of in parts.items()}, "devices"
    )
    blocks += [] if warmth is None else [warmth]
    notes = _notes(run)
    return Section("Devices", [*blocks, *([Lines(notes)] if notes else [])], is_brief=True)


def _notes(run: DeviceRun) -> list[Note]:
    """That devices of several kinds shared the examples, what was lost, who gave up."""
    notes = []
    if run.split == "pool" and len({(facts.model, facts.soc) for facts in run.devices}) > 1:
        text = "devices of several kinds did parts of this run, so that latencies are of all of them together"
        notes.append(Note("warning", f"{text}; --split=each compares them", "open"))
    notes += [
        Note(
            attempt.serial,
            f"lost part {part.index + 1} of {part.count} after {attempt.elapsed_s:.0f} s ({attempt.kind}: "
            f"{attempt.reason}), done again by {part.serial}",
            "open",
        )
        for part in run.parts
        for attempt in part.lost
    ]
    return notes + [Note(left.serial, f"left out: {left.reason}", "open") for left in run.left_out]


def _devices(run: DeviceRun) -> Table:
    parts, found = run.parts_by_serial, run.configurations
    names = found[:_MOST_CONFIGURATIONS]
    lost = Counter(attempt.serial for part in run.parts for attempt in part.lost)
    counts_examples = any(part.examples for part in run.parts)
    rows: list[Sequence[Cell]] = []
    for facts in run.devices:
        of = parts[facts.serial]
        warmest = max((known for known in map(hottest, _conditions(of)) if known is not None), default=None)
        spent, examples = sum(part.elapsed_s for part in of), sum(part.examples for part in of)
        rows.append(
            [
                facts.serial,
                *(number_cell(median_us(of, name), milliseconds) for name in names),
                Number(str(examples), examples) if counts_examples else _UNKNOWN,
                number_cell(len(of)),
                number_cell(lost[facts.serial]),
                number_cell(warmest, "{:.1f} C".format),
                _throttling(of),
                model_of(facts) or _UNKNOWN,
                number_cell(spent, "{:.1f} s".format),
            ]
        )
    columns = ("device", *(f"p50 {name}" for name in names), "examples", "parts", "parts lost", "hottest",
               "throttling", "model", "time")  # fmt: skip
    left = some_of(len(names), len(found), "configurations")
    return Table(f"{run.program} on each device", columns, rows, left)


def model_of(facts: DeviceFacts) -> str:
    """The model of a device and its chip, as far as it says."""
    return " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text)


def _throttling(parts: Sequence[DevicePart]) -> str:
    """The highest thermal status before and after any part."""
    statuses = [found.thermal_status for found in _conditions(parts) if found.thermal_status is not None]
    return throttling(max(statuses, default=None)) or _UNKNOWN


def _conditions(parts: Sequence[DevicePart]) -> list[DeviceConditions]:
    return [conditions for part in parts for conditions in (part.before, part.after)]
