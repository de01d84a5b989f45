"""Who did which part of a run on devices: how fast, how warm, what was lost."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Final

from evaltools.report.page.charts.times import moments_chart
from evaltools.report.page.content.page import first_few, sentences, some_of
from evaltools.result.device_run import DevicePart, DeviceRun, hottest, invokes_us
from evaltools.result.section import Block, Cell, Chart, Lines, Number, Section, Table

_MOST_CONFIGURATIONS: Final = 4
_MOST_DRAWN: Final = 8


def devices(run: DeviceRun | None) -> Section | None:
    """A row per device, temperatures before and after, and what was lost; None for a run on this computer alone."""
    if run is None:
        return None
    parts = {facts.serial: [part for part in run.parts if part.serial == facts.serial] for facts in run.devices}
    blocks: list[Block] = [_devices(run, parts)]
    warmth = _warmth(parts)
    blocks += [] if warmth is None else [warmth]
    said = [
        f"part {part.index + 1} of {part.count} was lost by {attempt.serial} after {attempt.elapsed_s:.0f} s "
        f"({attempt.kind}: {attempt.reason}) and done again by {part.serial}"
        for part in run.parts
        for attempt in part.lost
    ]
    said += [f"{left.serial} was left out: {left.reason}" for left in run.left_out]
    return Section("Devices", [*blocks, *([Lines(said)] if said else [])])


def _devices(run: DeviceRun, parts: dict[str, list[DevicePart]]) -> Table:
    found = dict.fromkeys(figures.configuration for part in run.parts for figures in part.figures)
    names = list(found)[:_MOST_CONFIGURATIONS]
    rows: list[Sequence[Cell]] = []
    for facts in run.devices:
        of = parts[facts.serial]
        spent, examples = sum(part.elapsed_s for part in of), sum(part.examples for part in of)
        rows.append(
            [
                facts.serial,
                " ".join(text for text in (facts.model, facts.soc and f"({facts.soc})") if text),
                Number(str(len(of)), len(of)),
                Number(str(examples), examples),
                Number(f"{spent:.1f} s", spent),
                *(_median(of, name) for name in names),
            ]
        )
    columns = ("device", "model", "parts", "examples", "time", *(f"p50 {name}" for name in names))
    left = some_of(len(names), len(found), "configurations")
    return Table(f"{run.program} on each device", columns, rows, left)


def _median(parts: Sequence[DevicePart], name: str) -> Cell:
    times = invokes_us(parts, name)
    if not times:
        return "-"
    middle = statistics.median(times)
    return Number(f"{middle / 1000:.3g} ms", middle)


def _warmth(parts: dict[str, list[DevicePart]]) -> Chart | None:
    found = {}
    for serial, of in parts.items():
        first, last = (hottest(of[0].before), hottest(of[-1].after)) if of else (None, None)
        if first is not None and last is not None:
            found[serial] = {"before": first, "after": last}
    if not found:
        return None
    told = [f"{serial}: {by['before']:.1f} to {by['after']:.1f} °C" for serial, by in found.items()]
    shown = dict(list(found.items())[:_MOST_DRAWN])
    said = sentences(first_few(told), some_of(len(shown), len(found), "devices"))
    return Chart("Hottest sensor before and after", moments_chart(shown, "°C"), said)
