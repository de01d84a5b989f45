"""Devices, for a person: one line each, then what to do for those that cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Final

from rich.console import Console

from evaltools.report.tables.cells import milliseconds
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.result.device import DeviceFacts, DeviceFinding, DeviceList
from evaltools.result.device_run import DeviceConditions, DevicePart, DeviceRun, hottest, median_us
from evaltools.text import printable

_COLUMNS: Final = (
    "serial", "state", "model", "SoC", "Android", "ABI", "CPUs", "battery", "hottest", "throttling", "free", "Python",
)  # fmt: skip
_RANKS: Final = {"model": 0, "Android": 1, "SoC": 2, "battery": 3, "hottest": 4, "ABI": 5, "CPUs": 6}
"""Which columns are left out last."""
_UNKNOWN: Final = "-"
_STATUSES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_GIB: Final = 1 << 30
_MOST_CONFIGURATIONS: Final = 4


def print_devices(found: DeviceList, console: Console) -> None:
    """The table, then a line for each device that cannot be used."""
    if not found.devices:
        console.print("no device is connected")
        return
    cells = [_cells(finding) for finding in found.devices]
    columns = [
        Column[list[str]](heading, itemgetter(place), _RANKS.get(heading, place), justify="left")
        for place, heading in enumerate(_COLUMNS)
    ]
    print_columns(columns[:2], columns[2:], cells, console)
    for finding in found.devices:
        if finding.facts is None:
            console.print(
                f"\n{printable(finding.device.serial)}: {printable(finding.problem)}\n  {printable(finding.next_step)}"
            )


def throttling(status: int | None) -> str:
    """Android's word for a thermal status, 0 (none) to 6 (shutdown); empty where the device does not say.

    >>> throttling(0), throttling(2), throttling(None), throttling(7)
    ('none', 'moderate', '', '7')
    """
    if status is None:
        return ""
    return _STATUSES[status] if 0 <= status < len(_STATUSES) else str(status)


def _cells(finding: DeviceFinding) -> list[str]:
    device, facts = finding.device, finding.facts
    state = device.state if facts is not None or device.state != "device" else "no answer"
    first = [printable(device.serial), printable(state)]
    if facts is None:
        return [*first, printable(device.model) or _UNKNOWN, *[_UNKNOWN] * (len(_COLUMNS) - 3)]
    return [*first, *(printable(cell) if cell else _UNKNOWN for cell in _fact_cells(facts))]


def _fact_cells(facts: DeviceFacts) -> list[str]:
    """The cells behind serial and state, empty where nothing is known."""
    level = "" if facts.battery_level is None else f"{facts.battery_level}%"
    warmth = "" if facts.battery_temperature is None else f"{facts.battery_temperature / 10:.1f} C"
    conditions = DeviceConditions(battery_temperature=facts.battery_temperature, temperatures=facts.temperatures or {})
    highest = hottest(conditions)
    sdk = "" if facts.sdk is None else f"(SDK {facts.sdk})"
    return [
        " ".join(filter(None, [facts.manufacturer, facts.model])),
        facts.soc or "",
        " ".join(filter(None, [facts.android, sdk])),
        facts.abi or facts.machine or "",
        "" if facts.cpus is None else str(facts.cpus),
        " ".join(filter(None, [level, warmth])),
        "" if highest is None else f"{highest:.1f} C",
        throttling(facts.thermal_status),
        "" if facts.free_bytes is None else f"{facts.free_bytes / _GIB:.1f} GiB",
        facts.python or "",
    ]


def print_device_run(run: DeviceRun, console: Console) -> None:
    """A line per device, then what was lost and who gave up."""
    _print_table(run, console)
    kinds = {(facts.model, facts.soc): facts.serial for facts in run.devices}
    if run.split == "pool" and len(kinds) > 1:
        console.print(
            "warning: devices of several kinds did parts of this run, so that latencies are of all of them together; "
            "--split=each compares them",
            style="yellow",
        )
    for part in run.parts:
        for attempt in part.lost:
            console.print(
                f"part {part.index + 1} of {part.count} was lost by {printable(attempt.serial)} after "
                f"{attempt.elapsed_s:.0f} s ({attempt.kind}) and done again by {printable(part.serial)}"
            )
    for left_out in run.left_out:
        console.print(
            f"warning: {printable(left_out.serial)} was left out: {printable(left_out.reason)}", style="yellow"
        )


def _print_table(run: DeviceRun, console: Console) -> None:
    names = run.configurations[:_MOST_CONFIGURATIONS]
    counts_examples = any(part.examples for part in run.parts)
    parts = run.parts_by_serial
    lost = Counter(attempt.serial for part in run.parts for attempt in part.lost)

    def column(heading: str, cell: Callable[[list[DevicePart]], str]) -> Column[DeviceFacts]:
        return Column(heading, lambda facts: cell(parts[facts.serial]))

    def examples(of: list[DevicePart]) -> str:
        return str(sum(part.examples for part in of)) if counts_examples else _UNKNOWN

    columns = [
        *(column(f"p50 {name}", partial(_median, name=name)) for name in names),
        column("examples", examples),
        column("parts", lambda of: str(len(of))),
        Column[DeviceFacts]("parts lost", lambda facts: str(lost[facts.serial])),
        column("hottest", _hottest),
        column("throttling", _throttling),
    ]
    device = Column[DeviceFacts]("device", lambda facts: printable(facts.serial))
    model = Column[DeviceFacts](
        "model", lambda facts: printable(model_of(facts) or _UNKNOWN), len(columns), justify="left"
    )
    print_columns([device], [model, *ranked(columns)], run.devices, console)


def model_of(facts: DeviceFacts) -> str:
    """The model of a device and its chip, as far as it says."""
    return " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text)


def _median(parts: Sequence[DevicePart], name: str) -> str:
    found = median_us(parts, name)
    return _UNKNOWN if found is None else milliseconds(found)


def _hottest(parts: Sequence[DevicePart]) -> str:
    """The highest temperature before and after any part."""
    found = [temperature for temperature in map(hottest, _conditions(parts)) if temperature is not None]
    return f"{max(found):.1f} C" if found else _UNKNOWN


def _throttling(parts: Sequence[DevicePart]) -> str:
    """The highest thermal status before and after any part."""
    statuses = [found.thermal_status for found in _conditions(parts) if found.thermal_status is not None]
    return throttling(max(statuses, default=None)) or _UNKNOWN


def _conditions(parts: Sequence[DevicePart]) -> list[DeviceConditions]:
    return [conditions for part in parts for conditions in (part.before, part.after)]
