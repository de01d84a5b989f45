"""Accuracy against latency and size."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.metrics.interval import Interval
from evaltools.report.page.sections.rows import ModelRows
from evaltools.result.section import Axis, Chart, Mark


def models_tradeoff(found: ModelRows) -> Chart | None:
    """What models are judged by, against their latency; None where fewer than two rows have both."""
    if found.figure is None or found.are_outputs:
        return None
    factor = 100 if found.any_figure is not None and found.any_figure.is_share else 1
    front = found.on_front or [False] * len(found.rows)
    points = [
        Mark(
            row.latency_ms,
            factor * row.value(found.figure),
            row.model,
            y_interval=scaled(known.interval, factor),
            shape=row.row.name,
            size=row.size_bytes / 1e6,
            joined=is_on,
        )
        for row, is_on in zip(found.rows, front, strict=True)
        for known in [row.figure(found.figure)]
        if row.latency_ms > 0 and known is not None
    ]
    return tradeoff(points, f"{found.heading} in %" if factor == 100 else found.heading)


def scaled(interval: Interval | None, factor: float) -> Interval | None:
    """An interval times ``factor``."""
    return None if interval is None else Interval(factor * interval.low, factor * interval.high)


def tradeoff(points: Sequence[Mark], figure: str) -> Chart | None:
    """The chart of a figure against latency; None of fewer than two points. Those on the front are joined."""
    if len(points) < 2:
        return None
    best = [point for point in points if point.joined]
    text = "; ".join(
        f"{point.of}, {point.shape}: {point.y:.4g} at {point.x:.3g} ms, {point.size:.2f} MB" for point in best or points
    )
    which = "On the front, where none is as good and as fast" if best else "All"
    x = Axis("median time in ms", "log")
    return Chart("Accuracy against latency and size", "points", points, f"{which}: {text}.", x, Axis(figure))
