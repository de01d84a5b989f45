"""Evaluations of one or more models as a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

from evaltools.report.files.plots.plot import Point, drawn
from evaltools.report.tables.models import ModelRow, ModelRows
from evaltools.result.evaluation import EvaluationResult
from evaltools.text import printable


def plot_models(results: Mapping[str, EvaluationResult], path: Path) -> bytes:
    """Results by the name of the model as a picture: what they are judged by, if that is a share, else latencies."""
    found = ModelRows.of(results)
    numbers = {name: number for number, name in enumerate(results)}
    share = found.figure if found.metric is not None and found.metric.is_share else None
    front = found.on_front or [False] * len(found.rows)
    points, left_out = [], []
    for row, is_on in zip(found.rows, front, strict=True):
        name = printable(f"{row.model}, {row.configuration.name}" if len(results) > 1 else row.configuration.name)
        if math.isnan(row.p50_us) or (share is not None and math.isnan(row.figure(share))):
            left_out.append(name)
        else:
            points.append(_point(row, name, numbers[row.model], share, found.heading, is_on))
    words = [f"not measured: {', '.join(left_out)}"] if left_out else []
    models = f"{len(results)} models" if len(results) > 1 else printable(next(iter(results)))
    return drawn(points, models, words, path)


def _point(row: ModelRow, name: str, number: int, share: str | None, heading: str, is_on: bool) -> Point:
    return Point(
        label=name,
        model=number,
        latency_ms=row.p50_us / 1000,
        interval_ms=None,
        size_mb=row.result.model.size_bytes / 1e6,
        accuracy=0.0 if share is None else 100 * row.figure(share),
        metric="" if share is None else heading,
        on_front=is_on,
    )
