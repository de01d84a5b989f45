"""Accuracy against latency and size: of evaluations, and of a benchmark whose accuracy was given."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evaltools.report.page.charts.figures import Tradeoff, tradeoff_chart
from evaltools.report.tables.benchmark import label
from evaltools.report.tables.models import ModelRows
from evaltools.report.tables.shown_figures import shown_figures
from evaltools.result.benchmark import BenchmarkResult
from evaltools.result.section import Chart


def models_tradeoff(found: ModelRows) -> Chart | None:
    """What models are judged by, against their latency; None where fewer than two rows have both."""
    if found.figure is None:
        return None
    factor = 100 if found.metric is not None and found.metric.is_share else 1
    front = found.on_front or [False] * len(found.rows)
    points = [
        Tradeoff(
            row.model,
            row.configuration.name,
            row.p50_us / 1000,
            factor * row.figure(found.figure),
            row.size_bytes / 1e6,
            is_on,
        )
        for row, is_on in zip(found.rows, front, strict=True)
        if row.p50_us > 0 and math.isfinite(row.figure(found.figure))
    ]
    return _drawn(points, f"{found.heading} in %" if factor == 100 else found.heading)


def benchmark_tradeoff(result: BenchmarkResult) -> Chart | None:
    """Rows of a benchmark whose accuracy was given (``--accuracy``); None where fewer than two have one."""
    points = [
        Tradeoff(
            label(result, row),
            row.name,
            (shown_figures(row).latency_us or 0.0) / 1000,
            100 * row.accuracy.value,
            result.models[row.model].size_bytes / 1e6,
            bool(row.on_latency_front),
        )
        for row in result.rows
        if row.status == "measured" and row.accuracy is not None and shown_figures(row).latency_us
    ]
    return _drawn(points, "accuracy in %")


def _drawn(points: Sequence[Tradeoff], unit: str) -> Chart | None:
    if len(points) < 2:
        return None
    best = [point for point in points if point.on_front]
    told = "; ".join(
        f"{point.model}, {point.configuration}: {point.figure:.4g} at {point.latency_ms:.3g} ms, {point.size_mb:.2f} MB"
        for point in best or points
    )
    which = "On the front, where none is as good and as fast" if best else "All"
    return Chart("Accuracy against latency and size", tradeoff_chart(points, unit), f"{which}: {told}.")
