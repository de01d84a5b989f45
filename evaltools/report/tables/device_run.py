"""What devices did, for a person: who did how much, how fast, how warm they became, what was lost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from evaltools.report.tables.cells import milliseconds, one_line
from evaltools.report.tables.device import throttling
from evaltools.result.device import DeviceFacts
from evaltools.result.device_run import DevicePart, DeviceRun, hottest

_MOST_CONFIGURATIONS: Final = 4
_NOTHING: Final = "-"


def print_device_run(run: DeviceRun, console: Console) -> None:
    """A line per device, then what was lost and who gave up."""
    names = list(dict.fromkeys(figures.configuration for part in run.parts for figures in part.figures))
    shown = names[:_MOST_CONFIGURATIONS]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("device", "model"):
        table.add_column(heading, overflow="fold")
    for heading in ("parts", "examples", *(f"p50 {name}" for name in shown), "hottest", "throttling", "parts lost"):
        table.add_column(heading, justify="right", no_wrap=True)
    counts_examples = any(part.examples for part in run.parts)
    for facts in run.devices:
        parts = [part for part in run.parts if part.serial == facts.serial]
        latencies = [_median(parts, name) for name in shown]
        examples = str(sum(part.examples for part in parts)) if counts_examples else _NOTHING
        cells = [str(len(parts)), examples, *latencies, *_conditions(parts)]
        lost = sum(attempt.serial == facts.serial for part in run.parts for attempt in part.lost)
        table.add_row(one_line(facts.serial), one_line(_model(facts)), *cells, str(lost))
    console.print(table)
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
                f"part {part.index + 1} of {part.count} was lost by {one_line(attempt.serial)} after "
                f"{attempt.elapsed_s:.0f} s ({attempt.kind}) and done again by {one_line(part.serial)}"
            )
    for left_out in run.left_out:
        console.print(f"warning: {one_line(left_out.serial)} was left out: {one_line(left_out.reason)}", style="yellow")


def _model(facts: DeviceFacts) -> str:
    return " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text) or _NOTHING


def _median(parts: Sequence[DevicePart], name: str) -> str:
    times = [
        time
        for part in parts
        for figures in part.figures
        if figures.configuration == name
        for time in figures.invokes_us
    ]
    return milliseconds(statistics.median(times)) if times else _NOTHING


def _conditions(parts: Sequence[DevicePart]) -> list[str]:
    """The highest temperature and thermal status before and after any part."""
    seen = [conditions for part in parts for conditions in (part.before, part.after)]
    temperatures = [temperature for temperature in map(hottest, seen) if temperature is not None]
    statuses = [conditions.thermal_status for conditions in seen if conditions.thermal_status is not None]
    return [
        f"{max(temperatures):.1f} C" if temperatures else _NOTHING,
        throttling(max(statuses, default=None)) or _NOTHING,
    ]
