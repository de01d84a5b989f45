"""The figures of a task of your own, for a person."""

from __future__ import annotations

from rich.console import Console

from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, speed_columns
from evaltools.report.words.verdicts import score_change_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.task_kind import Detail
from evaltools.tasks.own.result import MetricMean, OwnPart


def print_figures(result: EvaluationResult, console: Console, _detail: Detail) -> None:
    """Means and speed, one row per configuration, and the verdicts that are not the answer."""
    part: OwnPart = result.part
    if not part.means:
        return
    _print_table(result, part, console)
    differing = {(entry.baseline, entry.other, entry.metric): entry.change for entry in part.comparisons}
    for configuration in result.configurations:
        for verdict in configuration.verdicts:
            change = differing[verdict.against, configuration.name, verdict.metric]
            against = "" if verdict.against == part.comparisons[0].baseline else f" against {verdict.against}"
            told = [] if verdict is configuration.verdict else [score_change_in_words(verdict)]
            told += [f"{change.differing} of {change.count} examples differ"] if change.differing else []
            if told:
                console.print(f"{configuration.name}{against}: {verdict.metric} {'; '.join(told)}")


def _print_table(result: EvaluationResult, own: OwnPart, console: Console) -> None:
    """The task's first metric, speed, the other metrics."""
    baseline = own.comparisons[0].baseline if own.comparisons else None
    reference = next((entry for entry in result.configurations if entry.name == baseline), None)
    found = {(mean.configuration, mean.metric): _mean(mean) for mean in own.means}

    def column(metric: str) -> Column[ConfigurationResult]:
        return Column(metric, lambda configuration: found.get((configuration.name, metric), "-"))

    first, *others = (column(metric.name) for metric in own.metrics)
    columns = [first, *speed_columns(result, reference), *others]
    print_columns([NAMES], ranked(columns), result.configurations, console)


def _mean(mean: MetricMean) -> str:
    """With half the width of its 95 % interval."""
    interval = mean.interval
    return f"{mean.mean:.4g}" if interval is None else f"{mean.mean:.4g} ±{(interval.high - interval.low) / 2:.2g}"
