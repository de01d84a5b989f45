"""The charts that answer beside the first table: what changed, how fast, and one against the other."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from evaltools.metrics.interval import Interval
from evaltools.metrics.words import change
from evaltools.report.content import first_lines, sentences, some_of
from evaltools.report.screen.rows import ModelRow, ModelRows, is_share
from evaltools.report.screen.table import BENCHMARK, is_alike
from evaltools.report.words.facts import label, median_interval_of, median_with_interval, speed_of
from evaltools.report.words.numbers import says_something, three_digits, times_as_fast
from evaltools.result.places import reference_of
from evaltools.result.result import INVOKE_US, Result, Row
from evaltools.result.section import Axis, Chart, Mark
from evaltools.result.verdict import NOTHING_CHANGED
from evaltools.text import distinct

_MOST_INTERVALS: Final = 24
_MOST_CLOUDS: Final = 4
"""Of a benchmark, which has many runs of each configuration."""
_MOST_POINTS: Final = 160
"""Of one configuration; of more, as many are drawn, spread evenly."""
_WIDE: Final = 5
"""Single times that differ by more lie on a logarithmic axis."""
_VERY_WIDE: Final = 8
"""Medians that differ by more lie on a logarithmic axis."""


def answering(results: Mapping[str, Result]) -> list[Chart]:
    """What the results of one command show at a glance, the most telling charts first; of a suite nothing."""
    several = len(results) > 1
    found = ModelRows.of(results).with_short_names if several else ModelRows.of(results)
    every: list[Chart | None] = []
    if all(result.is_of_examples for result in results.values()):
        costs = models_tradeoff(found) if several and is_alike(results.values()) else None
        every = [costs, changes(found, several), ratios(found, several)]
    elif all(result.command == BENCHMARK for result in results.values()):
        timed = [row for row in found.rows if not math.isnan(row.latency_ms)]
        runs = {chart_name(row, several): in_ms(row.row) for row in sorted(timed, key=lambda row: row.latency_ms)}
        names = [chart_name(row, several) for row in found.rows]
        each = each_run("Each run in its turn, round after round", runs, _MOST_CLOUDS, names=names)
        every = [medians(found, several) if len(timed) > 1 else None, models_tradeoff(found), each]
    return [chart for chart in every if chart is not None]


def changes(found: ModelRows, several: bool = False) -> Chart | None:
    """The change of the figure that decides, of each row against its reference; None where none is known."""
    judged = [
        (row, verdict)
        for row in found.rows
        if (verdict := row.verdict_on(found.figure)) is not None and verdict.change is not None
    ]
    if not judged:
        return None
    factor, unit = (100, "points") if is_share(judged[0][0].row, judged[0][1]) else (1, found.heading)
    marks, texts = [], []
    for row, verdict in judged:
        name, low, high, value = chart_name(row, several), verdict.low, verdict.high, verdict.change or 0.0
        if verdict.kind in NOTHING_CHANGED:
            low = high = None
        known = None if low is None or high is None else scaled(Interval(low, high), factor)
        marks.append(Mark(factor * value, name, tone=row.tone, x_interval=known))
        texts.append((value, f"{name}: {change(value, low, high, is_share(row.row, verdict))}"))
    texts.sort(key=lambda each: -each[0] if found.better == "lower" else each[0])
    margin = factor * (judged[0][1].margin or 0.0)
    band = f", ±{margin:g} counts as none" if margin else ""
    left = some_of(len(marks[:_MOST_INTERVALS]), len(marks), "configurations")
    against = dict.fromkeys(verdict.against for _, verdict in judged)
    axis = Axis(f"{unit}{band}", at=0.0, margin=margin)
    caption = f"Change of {found.heading} against {', '.join(against)}"
    lines = first_lines([text for _, text in texts])
    return Chart(caption, "points", marks[:_MOST_INTERVALS], sentences(left), axis, lines=lines)


def ratios(found: ModelRows, several: bool = False) -> Chart | None:
    """How many times as fast as its reference each row is; None where no time of both is known."""
    marks, texts = [], []
    for row in found.rows:
        ratio = speed_of(row.row, reference_of(row.row, row.result.rows))
        if ratio is None or not ratio.value or "latency_ratio" not in row.row.figures:
            continue
        known = ratio.interval if ratio.interval is not None and says_something(ratio.interval) else None
        inverse = None if known is None else Interval(1 / known.high, 1 / known.low)
        name = chart_name(row, several)
        marks.append(Mark(1 / ratio.value, name, tone=row.tone, x_interval=inverse))
        texts.append((ratio.value, f"{name}: {times_as_fast(ratio)}, {ratio.count} pairs"))
    if not marks:
        return None
    shown = marks[:_MOST_INTERVALS]
    text = sentences(some_of(len(shown), len(marks), "configurations"))
    axis = Axis("times as fast as the reference", at=1.0)
    lines = first_lines([text for _, text in sorted(texts, key=lambda each: -each[0])])
    return Chart("Speed against the reference", "points", shown, text, axis, lines=lines)


def models_tradeoff(found: ModelRows) -> Chart | None:
    """What rows are judged by, against their latency; None where fewer than two have both."""
    if found.are_outputs or (found.figure is None):
        return None
    is_share = found.any_figure is not None and found.any_figure.is_share
    factor, front = 100 if is_share else 1, found.on_front or [False] * len(found.rows)
    points = [
        Mark(
            row.latency_ms,
            factor * known.value,
            chart_name(row) if row.result.command == BENCHMARK else row.model,
            x_interval=median_interval_of(row.row),
            y_interval=scaled(known.interval, factor),
            shape=row.row.name,
            size=row.size_bytes / 1e6,
            joined=is_on,
        )
        for row, is_on in zip(found.rows, front, strict=True)
        for known in [row.figure(found.figure)]
        if row.latency_ms > 0 and known is not None and known.value is not None
    ]
    if len(points) < 2:
        return None
    best = [point for point in points if point.joined]
    ranked = sorted(best or points, key=lambda point: float(point.y or 0), reverse=found.better == "lower")
    lines = [f"{each.of}, {each.shape}: {each.y:.4g} at {each.x:.3g} ms, {each.size:.2f} MB" for each in ranked]
    which = "On the front, where none is as good and as fast" if best else "All"
    axes = Axis("median time in ms", "log"), Axis(f"{found.heading} in %" if is_share else found.heading)
    return Chart("Accuracy against latency and size", "points", points, f"{which}:", *axes, first_lines(lines))


def scaled(interval: Interval | None, factor: float) -> Interval | None:
    """An interval times ``factor``."""
    return None if interval is None else Interval(factor * interval.low, factor * interval.high)


def medians(found: ModelRows, several: bool = False) -> Chart:
    """The median of each row that ran as asked, with its interval; ``several``: of the results of several models."""
    timed = sorted((row for row in found.rows if not math.isnan(row.latency_ms)), key=lambda row: row.latency_ms)
    values = [row.latency_ms for row in timed]
    names = [chart_name(row, several) for row in timed]
    marks = [
        Mark(row.latency_ms, name, name, x_interval=median_interval_of(row.row))
        for row, name in zip(timed, names, strict=True)
    ]
    shown = marks[:_MOST_INTERVALS]
    axis = Axis("ms (95 % interval)", "log" if values and max(values) > _VERY_WIDE * min(values) > 0 else "")
    texts = [f"{name}: {median_with_interval(row.row)}" for name, row in zip(names, timed, strict=True)]
    text = sentences(some_of(len(shown), len(marks), "configurations"))
    every = [chart_name(row, several) for row in found.rows]
    return Chart(
        "Median time with its interval", "points", shown, text, axis, lines=first_lines(texts[::-1]), names=every
    )


def chart_name(row: ModelRow, several: bool = False) -> str:
    """What a row is called in a chart."""
    models = row.result.model_names
    if several or len(models) == 1:
        return f"{row.model}, {row.row.name}" if several else label(row.result.models, row.row)
    return f"{distinct(models)[row.row.model]}, {row.row.name}"


def in_ms(row: Row) -> list[float]:
    """Single times in milliseconds, where they were kept."""
    return [time / 1000 for time in row.series.get(INVOKE_US, [])]


def each_run(
    caption: str,
    times_ms: Mapping[str, Sequence[float]],
    most: int,
    reference: str | None = None,
    names: Sequence[str] = (),
) -> Chart | None:
    """The times of the first configurations in milliseconds, in the order of the runs; None where there are none.

    ``names`` are what colours are for.

    >>> each_run("Runs", {"cpu": [2.0, 1.5], "gpu": []}, most=8).lines
    ['cpu: 2 runs from 1.5 to 2 ms']
    """
    every = {name: times for name, times in times_ms.items() if times}
    timed = dict(list(every.items())[:most])
    if not timed:
        return None
    slowest_first = sorted(timed.items(), key=lambda each: -statistics.median(each[1]))
    lines = [
        f"{name}: {len(times)} runs from {three_digits(min(times))} to {three_digits(max(times))} ms"
        for name, times in slowest_first
    ]
    is_bounded = any(len(times) > _MOST_POINTS for times in timed.values())
    points = f"At most {_MOST_POINTS} runs of each are drawn, all in the JSON result" if is_bounded else ""
    left = some_of(len(timed), len(every), "configurations")
    marks = [
        Mark(place, times[place], name, "missing" if name == reference else "")
        for name, times in timed.items()
        for place in range(0, len(times), -(-len(times) // _MOST_POINTS))
        if times[place] > 0
    ]
    seen = [time for times in timed.values() for time in times if time > 0]
    scale: Literal["log", ""] = "log" if seen and max(seen) > _WIDE * min(seen) else ""
    axes = Axis("run"), Axis("ms", scale)
    return Chart(caption, "points", marks, sentences(points, left), *axes, first_lines(lines), names)
