"""Charts of all rows: accuracy against latency and size, and their medians."""

from __future__ import annotations

import math
from typing import Final

from evaltools.metrics.interval import Interval
from evaltools.report.content import first_few, sentences, some_of
from evaltools.report.screen.rows import ModelRow, ModelRows
from evaltools.report.screen.table import BENCHMARK
from evaltools.report.words.facts import label, median_interval_of
from evaltools.report.words.numbers import in_milliseconds
from evaltools.result.section import Axis, Chart, Mark

_MOST_INTERVALS: Final = 24
_VERY_WIDE: Final = 8
"""Medians that differ by more lie on a logarithmic axis."""


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
    text = "; ".join(
        f"{point.of}, {point.shape}: {point.y:.4g} at {point.x:.3g} ms, {point.size:.2f} MB" for point in best or points
    )
    which = "On the front, where none is as good and as fast" if best else "All"
    axes = Axis("median time in ms", "log"), Axis(f"{found.heading} in %" if is_share else found.heading)
    return Chart("Accuracy against latency and size", "points", points, f"{which}: {text}.", *axes)


def scaled(interval: Interval | None, factor: float) -> Interval | None:
    """An interval times ``factor``."""
    return None if interval is None else Interval(factor * interval.low, factor * interval.high)


def medians(found: ModelRows, several: bool = False) -> Chart:
    """The median of each row that ran as asked, with its interval; ``several``: of the results of several models."""
    timed = [row for row in found.rows if not math.isnan(row.latency_ms)]
    values = [row.latency_ms for row in timed]
    names = [chart_name(row, several) for row in timed]
    marks = [
        Mark(row.latency_ms, name, x_interval=median_interval_of(row.row))
        for row, name in zip(timed, names, strict=True)
    ]
    shown = marks[:_MOST_INTERVALS]
    axis = Axis("ms (95 % interval)", "log" if values and max(values) > _VERY_WIDE * min(values) > 0 else "")
    texts = [f"{name} {in_milliseconds(value)}" for name, value in zip(names, values, strict=True)]
    text = sentences(first_few(texts), some_of(len(shown), len(marks), "configurations"))
    return Chart("Median time with its interval", "points", shown, text, axis)


def chart_name(row: ModelRow, several: bool = False) -> str:
    """What a row is called in a chart."""
    return f"{row.model}, {row.row.name}" if several else label(row.result.models, row.row)
