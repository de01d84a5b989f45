"""The figures of a task of your own, for a person."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from evaltools.report.table_cells import delegated, median, print_not_measured, speed, speed_heading
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.own.result import MetricComparison, MetricMean, OwnTaskResult


def print_figures(result: EvaluationResult, console: Console) -> None:
    """Means and speed, one row per configuration, and verdicts; then what could not be measured."""
    assert result.own is not None
    if result.own.means:
        console.print(_figures(result, result.own))
        for comparison in result.own.comparisons:
            console.print(_sentence(comparison, result.own))
    print_not_measured(result.configurations, console)


def _figures(result: EvaluationResult, own: OwnTaskResult) -> Table:
    baseline = own.comparisons[0].baseline if own.comparisons else None
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    for heading in (*(metric.name for metric in own.metrics), "p50", speed_heading(reference), "delegated"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in result.configurations:
        table.add_row(entry.name, *_row(entry, reference, result, own))
    return table


def _row(
    entry: ConfigurationResult, reference: ConfigurationResult | None, result: EvaluationResult, own: OwnTaskResult
) -> list[str]:
    if entry.inference_latency is None or entry.status == "not measured":
        return ["-"] * (len(own.metrics) + 3)
    means = {mean.metric: _mean(mean) for mean in own.means if mean.configuration == entry.name}
    figures = [means.get(metric.name, "-") for metric in own.metrics]
    speeds = speed(entry, reference, result.latency_comparisons)
    return [*figures, median(entry.inference_latency), speeds, delegated(entry)]


def _mean(mean: MetricMean) -> str:
    """With half the width of its 95 % interval."""
    interval = mean.interval
    return f"{mean.mean:.4g}" if interval is None else f"{mean.mean:.4g} ±{(interval.high - interval.low) / 2:.2g}"


def _sentence(comparison: MetricComparison, own: OwnTaskResult) -> str:
    change, interval = comparison.change, comparison.interval
    words = {"worse": "WORSE", "equivalent": f"equivalent within {own.margin:g}"}
    span = "" if interval is None else f" [{interval.low:+.3g}, {interval.high:+.3g}]"
    against = "" if comparison.baseline == own.comparisons[0].baseline else f" against {comparison.baseline}"
    verdict = words.get(comparison.verdict, comparison.verdict)
    return (
        f"{comparison.other}{against}: {comparison.metric} {verdict}: {change.change:+.3g}{span}, "
        f"{change.differing} of {change.count} examples differ"
    )
