"""What devices did, for a person: who did how much, how fast, how warm they became, what was lost."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from rich.console import Console

from evaltools.report.tables.cells import milliseconds
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.device import throttling
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DeviceConditions, DevicePart, DeviceRun, hottest, invokes_us
from evaltools.text import printable

_MOST_CONFIGURATIONS: Final = 4
_NOTHING: Final = "-"


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
    names = dict.fromkeys(figures.configuration for part in run.parts for figures in part.figures)
    counts_examples = any(part.examples for part in run.parts)
    parts = {facts.serial: [part for part in run.parts if part.serial == facts.serial] for facts in run.devices}
    lost = Counter(attempt.serial for part in run.parts for attempt in part.lost)

    def column(heading: str, cell: Callable[[list[DevicePart]], str]) -> Column[DeviceFacts]:
        return Column(heading, lambda facts: cell(parts[facts.serial]))

    def examples(of: list[DevicePart]) -> str:
        return str(sum(part.examples for part in of)) if counts_examples else _NOTHING

    columns = [
        *(column(f"p50 {name}", partial(_median, name=name)) for name in list(names)[:_MOST_CONFIGURATIONS]),
        column("examples", examples),
        column("parts", lambda of: str(len(of))),
        Column[DeviceFacts]("parts lost", lambda facts: str(lost[facts.serial])),
        column("hottest", _hottest),
        column("throttling", _throttling),
    ]
    device = Column[DeviceFacts]("device", lambda facts: printable(facts.serial))
    model = Column[DeviceFacts]("model", lambda facts: printable(_model(facts)), len(columns), justify="left")
    print_columns([device], [model, *ranked(columns)], run.devices, console)


def _model(facts: DeviceFacts) -> str:
    return " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text) or _NOTHING


def _median(parts: Sequence[DevicePart], name: str) -> str:
    times = invokes_us(parts, name)
    return milliseconds(statistics.median(times)) if times else _NOTHING


def _hottest(parts: Sequence[DevicePart]) -> str:
    """The highest temperature before and after any part."""
    found = [temperature for temperature in map(hottest, _conditions(parts)) if temperature is not None]
    return f"{max(found):.1f} C" if found else _NOTHING


def _throttling(parts: Sequence[DevicePart]) -> str:
    """The highest thermal status before and after any part."""
    statuses = [found.thermal_status for found in _conditions(parts) if found.thermal_status is not None]
    return throttling(max(statuses, default=None)) or _NOTHING


def _conditions(parts: Sequence[DevicePart]) -> list[DeviceConditions]:
    return [conditions for part in parts for conditions in (part.before, part.after)]
