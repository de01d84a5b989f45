"""How the figures of a task of your own are shown: lines in the manner of the native tools, a table for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, speed_columns
from evaltools.report.words.verdicts import score_change_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.task_kind import Detail
from evaltools.tasks.own.result import MetricMean, OwnPart
from evaltools.tasks.shared.next_steps import to_the_outputs as next_steps

if TYPE_CHECKING:
    from evaltools.result.section import Section

__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]


def sections(result: EvaluationResult) -> list[Section]:
    """Those of a page; what draws them is imported for a page only."""
    from evaltools.tasks.own import page

    return page.sections(result)


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Number of examples, latencies, each metric; numbers as C++ streams print them."""
    part: OwnPart = result.part
    assert configuration.inference_latency is not None
    preprocessing, inference = part.preprocessing_latency, configuration.inference_latency
    found = [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev={preprocessing.std_us}(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
    ]
    means = [entry for entry in part.means if entry.configuration == configuration.name]
    return found + [f"{entry.metric}: {entry.mean:g}" for entry in means]


def fill(_message: Any, _result: EvaluationResult, _configuration: ConfigurationResult) -> None:
    """There is no native message for such a task."""


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
            sentences = [] if verdict is configuration.verdict else [score_change_in_words(verdict)]
            sentences += [f"{change.differing} of {change.count} examples differ"] if change.differing else []
            if sentences:
                console.print(f"{configuration.name}{against}: {verdict.metric} {'; '.join(sentences)}")


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
