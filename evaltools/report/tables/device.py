"""Devices, for a person: one line each, then what to do for those that cannot be used."""

from __future__ import annotations

from operator import itemgetter
from typing import Final

from rich.console import Console

from evaltools.report.tables.columns import Column, print_columns
from evaltools.result.device import DeviceFacts, DeviceFinding, DeviceList
from evaltools.result.device_run import DeviceConditions, hottest
from evaltools.text import printable

_COLUMNS: Final = (
    "serial", "state", "model", "SoC", "Android", "ABI", "CPUs", "battery", "hottest", "throttling", "free", "Python",
)  # fmt: skip
_RANKS: Final = {"model": 0, "Android": 1, "SoC": 2, "battery": 3, "hottest": 4, "ABI": 5, "CPUs": 6}
"""Which columns are left out last."""
_UNKNOWN: Final = "-"
_STATUSES: Final = ("none", "light", "moderate", "severe", "critical", "emergency", "shutdown")
_GIB: Final = 1 << 30


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
