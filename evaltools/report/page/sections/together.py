"""Several results together: accuracy against latency and size, and figures from release to release."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.gates.baseline import Baseline, make_baseline
from evaltools.metrics.metric import Metric
from evaltools.report.page.charts.tradeoff import Release, Tradeoff, releases_chart, tradeoff_chart
from evaltools.report.page.sections.accuracy import figure_in_words
from evaltools.report.tables.benchmark import label
from evaltools.report.tables.cells import delegated, median, milliseconds, speed
from evaltools.report.tables.models import ModelRow, ModelRows, verdict_of
from evaltools.report.tables.shown import shown_figures
from evaltools.result.benchmark import BenchmarkResult, BenchmarkRow
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Block, Cell, Chart, Number, Section, Table
from evaltools.task_kind import all_metrics

_MOST_RELEASES: Final = 40
_MOST_CHARTS: Final = 4


def models(task: str, results: Mapping[str, EvaluationResult]) -> Section:
    """All models and configurations in one table; accuracy against latency where one figure judges all of them."""
    found = ModelRows.of(results)
    rows = [_model_row(found, row) for row in found.rows]
    columns = ("model", "configuration", found.heading or "figure", "verdict", "p50", "speed", "delegated", "model MB")
    blocks: list[Block] = [Table("All models and configurations", columns, rows)]
    drawn = _tradeoff(found)
    blocks += [] if drawn is None else [drawn]
    return Section(f"All together: {task}", blocks)


def _model_row(found: ModelRows, row: ModelRow) -> Sequence[Cell]:
    entry = row.configuration
    value = None if found.figure is None else entry.figures.get(found.figure)
    reference = reference_of(entry, row.result.configurations)
    return (
        row.model,
        entry.name,
        "-" if value is None else Number(figure_in_words(value, found.metric), value),
        verdict_of(row),
        "-"
        if entry.inference_latency is None
        else Number(median(entry.inference_latency), entry.inference_latency.p50_us),
        speed(entry, reference, row.result.latency_comparisons) or "-",
        delegated(entry),
        Number(f"{row.result.model.size_bytes / 1e6:.2f}", row.result.model.size_bytes),
    )


def _tradeoff(found: ModelRows) -> Chart | None:
    if found.figure is None:
        return None
    front = found.on_front or [False] * len(found.rows)
    factor = 100 if found.metric is not None and found.metric.is_share else 1
    points = [
        Tradeoff(
            row.model,
            row.configuration.name,
            row.p50_us / 1000,
            factor * row.figure(found.figure),
            row.result.model.size_bytes / 1e6,
            is_on,
        )
        for row, is_on in zip(found.rows, front, strict=True)
        if row.p50_us > 0 and math.isfinite(row.figure(found.figure))
    ]
    unit = f"{found.heading} in %" if factor == 100 else found.heading
    return _drawn_tradeoff(points, unit)


def _drawn_tradeoff(points: Sequence[Tradeoff], unit: str) -> Chart | None:
    if len(points) < 2:
        return None
    best = [point for point in points if point.on_front]
    told = "; ".join(
        f"{point.model}, {point.configuration}: {point.figure:.4g} at {point.latency_ms:.3g} ms, {point.size_mb:.2f} MB"
        for point in best or points
    )
    which = "On the front, where none is as good and as fast" if best else "All"
    return Chart("Accuracy against latency and size", tradeoff_chart(points, unit), f"{which}: {told}.")


def benchmark_tradeoff(result: BenchmarkResult) -> list[Section]:
    """Rows of a benchmark whose accuracy was given (``--accuracy``)."""
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
    drawn = _drawn_tradeoff(points, "accuracy in %")
    return [] if drawn is None else [Section("Accuracy against speed", [drawn])]


def fastest_of(results: Mapping[str, BenchmarkResult]) -> list[Section]:
    """The rows of several benchmarks in one table, the fastest first."""
    rows = [
        (name, label(result, row), _time(row), result.models[row.model].size_bytes / 1e6)
        for name, result in results.items()
        for row in result.rows
    ]
    ranked = sorted(rows, key=lambda row: math.inf if row[2] is None else row[2])
    cells = [
        (
            name,
            row,
            "not measured" if time is None else Number(milliseconds(time), time),
            Number(f"{size:.2f}", size),
        )
        for name, row, time, size in ranked
    ]
    table = Table("All benchmarks, the fastest first", ("result", "configuration", "median", "model MB"), cells)
    return [Section("All together: benchmark", [table])]


def _time(row: BenchmarkRow) -> float | None:
    """In microseconds; of a row that failed there is none, even where some of its runs have one."""
    return shown_figures(row).latency_us if row.status == "measured" else None


def releases(baselines: Sequence[Baseline], results: Mapping[str, EvaluationResult]) -> list[Section]:
    """Figures over baselines of the same task, with the results given beside them as the latest."""
    known = [*baselines, *(make_baseline(result) for result in results.values() if result.complete)]
    subjects: dict[str, list[Baseline]] = {}
    for baseline in sorted(known, key=lambda entry: entry.started_at):
        subjects.setdefault(baseline.about, []).append(baseline)
    sections = []
    for about, of_one in subjects.items():
        charts = _histories(of_one[-_MOST_RELEASES:]) if len(of_one) > 1 else []
        if charts:
            sections.append(Section(f"From release to release: {about}", charts))
    return sections


def _histories(baselines: Sequence[Baseline]) -> list[Chart]:
    metrics = all_metrics()
    names = dict.fromkeys(name for baseline in baselines for entry in baseline.configurations for name in entry.figures)
    headed = [name for name in names if name in metrics and (metrics[name].heading or name == "latency_ms")]
    return [_history(baselines, name, metrics.get(name)) for name in (headed or list(names))[:_MOST_CHARTS]]


def _history(baselines: Sequence[Baseline], name: str, metric: Metric | None) -> Chart:
    found, told = [], []
    for baseline in baselines:
        for entry in baseline.configurations:
            value = entry.figures.get(name)
            if value is not None:
                found.append(Release(baseline.started_at, entry.name, value))
                told.append(f"{baseline.started_at}, {entry.name}: {figure_in_words(value, metric)}")
    return Chart(f"{name} over time", releases_chart(found, name), f"{'; '.join(told)}.")
