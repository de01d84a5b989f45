"""A benchmark as a picture."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evaltools.report.files.plots.plot import Point, drawn
from evaltools.report.tables.benchmark import label
from evaltools.report.tables.shown_figures import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.text import printable

_LONGEST_LINE: Final = 160


def plot_benchmark(result: BenchmarkResult, path: Path) -> bytes:
    """A result as the content of a picture file: those with an accuracy, if there are any, else all latencies."""
    measured = [row for row in result.rows if row.status == "measured" and shown_figures(row).median_us is not None]
    shown = [row for row in measured if row.accuracy] or measured
    return drawn([_point(result, row) for row in shown], _models(result), _left_out(result, shown), path)


def _point(result: BenchmarkResult, row: BenchmarkRow) -> Point:
    """Of a row with a median."""
    shown = shown_figures(row)
    interval = shown.interval
    return Point(
        label=_label(result, row),
        model=row.model,
        latency_ms=(shown.median_us or 0.0) / 1000,
        interval_ms=(interval.low / 1000, interval.high / 1000) if interval else None,
        size_mb=result.models[row.model].size_bytes / 1e6,
        accuracy=100 * row.accuracy.value if row.accuracy else 0.0,
        metric=row.accuracy.metric if row.accuracy else "",
        on_front=bool(row.on_latency_front),
    )


def _label(result: BenchmarkResult, row: BenchmarkRow) -> str:
    """As in the table; what ran on the CPU instead of what it asked for says so, as does a GPU in software."""
    software = " [software]" if any(delegate.is_cpu for delegate in row.delegates) else ""
    return printable(label(result, row)) + software + (" (fallback: CPU)" if row.fallback else "")


def _models(result: BenchmarkResult) -> str:
    first = printable(Path(result.models[0].file).name) if result.models else "no model"
    return f"{len(result.models)} models" if len(result.models) > 1 else first


def _left_out(result: BenchmarkResult, drawn: Sequence[BenchmarkRow]) -> list[str]:
    """The rows that cannot be drawn, by the reason."""
    reasons: dict[str, list[str]] = {}
    for row in result.rows:
        if not any(row is other for other in drawn):
            reason = "not measured"
            if row.status == "measured":
                is_averaged = row.logged is not None and row.logged.median_us is None
                reason = "no median in the log" if is_averaged else "no accuracy given"
            reasons.setdefault(reason, []).append(_label(result, row))
    return [textwrap.fill(f"{reason}: {', '.join(names)}", _LONGEST_LINE) for reason, names in reasons.items()]
