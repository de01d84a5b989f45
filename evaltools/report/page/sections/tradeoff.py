"""Accuracy against latency and size."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.metrics.interval import Interval
from evaltools.report.page.charts.figures import Tradeoff, tradeoff_chart
from evaltools.report.page.sections.rows import ModelRows
from evaltools.result.section import Chart


def models_tradeoff(found: ModelRows) -> Chart | None:
    """What models are judged by, against their latency; None where fewer than two rows have both."""
    if found.figure is None or found.are_outputs:
        return None
    factor = 100 if found.any_figure is not None and found.any_figure.is_share else 1
    front = found.on_front or [False] * len(found.rows)
    points = [
        Tradeoff(
            row.model,
            row.row.name,
            row.latency_ms,
            factor * row.value(found.figure),
            row.size_bytes / 1e6,
            is_on,
            None if known is None else scaled(known.interval, factor),
        )
        for row, is_on in zip(found.rows, front, strict=True)
        for known in [row.figure(found.figure)]
        if row.latency_ms > 0 and known is not None
    ]
    return drawn(points, f"{found.heading} in %" if factor == 100 else found.heading)


def scaled(interval: Interval | None, factor: float) -> tuple[float, float] | None:
    """The ends of an interval, times ``factor``; None where there is none."""
    return None if interval is None else (factor * interval.low, factor * interval.high)


def drawn(points: Sequence[Tradeoff], unit: str) -> Chart | None:
    """The chart of some points; None of fewer than two."""
    if len(points) < 2:
        return None
    best = [point for point in points if point.on_front]
    text = "; ".join(
        f"{point.model}, {point.configuration}: {point.figure:.4g} at {point.latency_ms:.3g} ms, {point.size_mb:.2f} MB"
        for point in best or points
    )
    which = "On the front, where none is as good and as fast" if best else "All"
    return Chart("Accuracy against latency and size", tradeoff_chart(points, unit), f"{which}: {text}.")
