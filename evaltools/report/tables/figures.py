"""The columns that tables of configurations have: figures of metrics, and speed with proof of delegation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from evaltools.metrics.metric import Absent, Metric
from evaltools.report.tables.cells import delegated, figure_in_words, median_time, speed, speed_heading
from evaltools.report.tables.columns import Column
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

NAMES: Final = Column[ConfigurationResult]("", lambda configuration: configuration.name)


def metric_columns(
    metrics: Sequence[Metric], result: EvaluationResult, percent: str = " %"
) -> list[Column[ConfigurationResult]]:
    """A column for each metric that has a heading; shares in percent, with half the width of their interval."""
    return [Column(metric.heading, partial(_figure, metric, result, percent)) for metric in metrics if metric.heading]


def _figure(metric: Metric, result: EvaluationResult, percent: str, configuration: ConfigurationResult) -> str:
    value = metric.read(result, configuration)
    if value is None or isinstance(value, Absent):
        return "-"
    if not metric.is_share:
        return figure_in_words(value, metric)
    interval = metric.interval(result, configuration) if metric.interval is not None else None
    width = "" if interval is None else f" ±{50 * (interval.high - interval.low):.2f}"
    return f"{100 * value:.2f}{width}{percent}"


def speed_columns(result: EvaluationResult, reference: ConfigurationResult | None) -> list[Column[ConfigurationResult]]:
    """The median time, how many times as fast as the reference, and the nodes that ran on delegates."""

    def column(heading: str, cell: Callable[[ConfigurationResult], str]) -> Column[ConfigurationResult]:
        return Column(heading, lambda configuration: cell(configuration) if configuration.inference_latency else "-")

    return [
        Column("p50", median_time),
        column(speed_heading(reference), lambda entry: speed(entry, reference, result.latency_comparisons)),
        Column("delegated", delegated),
    ]
