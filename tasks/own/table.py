"""The figures of a task of your own, for a person."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from evaltools.report.tables.cells import delegated, median, print_not_measured, speed, speed_heading
from evaltools.report.words.verdicts import score_change_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.own.result import MetricMean, OwnPart


def print_figures(result: EvaluationResult, console: Console) -> None:
    """Means and speed, one row per configuration, and verdicts; then what could not be measured."""
    part: OwnPart = result.part
    if part.means:
        console.print(_figures(result, part))
        differing = {(entry.baseline, entry.other, entry.metric): entry.change for entry in part.comparisons}
        for configuration in result.configurations:
            for verdict in configuration.verdicts:
                change = differing[verdict.against, configuration.name, verdict.metric]
                against = "" if verdict.against == part.comparisons[0].baseline else f" against {verdict.against}"
                console.print(
                    f"{configuration.name}{against}: {verdict.metric} {score_change_in_words(verdict)}, "
                    f"{change.differing} of {change.count} examples differ"
                )
    print_not_measured(result.configurations, console)


def _figures(result: EvaluationResult, own: OwnPart) -> Table:
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
    entry: ConfigurationResult, reference: ConfigurationResult | None, result: EvaluationResult, own: OwnPart
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
