"""The page's chart of accuracy and latency as a picture file."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from evaltools.errors import UsageError
from evaltools.report.page.charts.figures import Spread, intervals_chart
from evaltools.report.page.sections.benchmark_details import benchmark_tradeoff, medians
from evaltools.report.page.sections.rows import ModelRows
from evaltools.report.page.sections.tradeoff import models_tradeoff
from evaltools.report.words.facts import label
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Chart
from evaltools.result.shown_figures import shown_figures

_ENDINGS: Final = (".png", ".svg")
_LATENCY: Final = "Median latency"


def require_plot(path: Path) -> None:
    """Raise :class:`UsageError` where a plot cannot be drawn to ``path``, before anything is measured."""
    if path.suffix.lower() not in _ENDINGS:
        raise UsageError(f"--plot={path}: a plot is a picture; give a name that ends in {' or '.join(_ENDINGS)}")
    if importlib.util.find_spec("vl_convert") is None:
        raise UsageError('--plot needs vl-convert-python: pip install "evaltools[report]"')


def plot_models(results: Mapping[str, EvaluationResult], path: Path) -> bytes:
    """Results by the name of the model: what they are judged by against latency; latencies where outputs are judged."""
    found = ModelRows.of(results)
    several = len(results) > 1
    chart = models_tradeoff(found)
    spreads, missing = [], []
    for row in found.rows:
        name = f"{row.model}, {row.configuration.name}" if several else row.configuration.name
        if math.isnan(row.p50_us):
            missing.append(name)
        else:
            spreads.append(Spread(name, row.p50_us / 1000, None, None))
    chart = chart or Chart(_LATENCY, intervals_chart(spreads, "ms"), "")
    models = f"{len(results)} models" if several else next(iter(results))
    return _drawn(chart, models, _left_out({"not measured as asked": missing}), path)


def plot_benchmark(result: BenchmarkResult, path: Path) -> bytes:
    """The rows with an accuracy, where there are two, against their latency; else the medians of all."""
    timed = [row for row in result.rows if row.status == "measured" and shown_figures(row).latency_us is not None]
    chart = benchmark_tradeoff(result)
    left = {"not measured": [label(result, row) for row in result.rows if not any(row is other for other in timed)]}
    if chart is not None:
        left["no accuracy given"] = [label(result, row) for row in timed if row.accuracy is None]
    left["average, as its log has no median"] = [
        label(result, row) for row in timed if shown_figures(row).median_us is None
    ]
    left["ran on the CPU instead"] = [label(result, row) for row in timed if row.fallback]
    left["a GPU in software"] = [label(result, row) for row in timed if _is_in_software(row)]
    models = Path(result.models[0].file).name if len(result.models) == 1 else f"{len(result.models)} models"
    return _drawn(chart or medians(result, timed), models, _left_out(left), path)


def _is_in_software(row: BenchmarkRow) -> bool:
    return any(delegate.is_cpu for delegate in row.delegates)


def _left_out(found: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each remark that any name has."""
    return [f"{remark}: {', '.join(names)}" for remark, names in found.items() if names]


def _drawn(chart: Chart, models: str, remarks: Sequence[str], path: Path) -> bytes:
    """The content of the file; only the ending of ``path`` matters."""
    from evaltools.report.page.rendering.drawing import picture_of

    return picture_of(chart, f"{chart.caption}: {models}", remarks, path.suffix.lower().removeprefix("."))
