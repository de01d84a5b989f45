"""Means of scores, and their changes against another configuration on the same examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import stdev

from evaltools.engine import Example
from evaltools.result.verdict import Verdict
from evaltools.stats.means import mean_change, mean_interval
from evaltools.tasks.own.definition import Better, Metric
from evaltools.tasks.own.result import MetricComparison, MetricMean
from evaltools.tasks.own.task import Scores

ScoresByExample = Mapping[int, tuple[float, ...]]


class ScoresSeen:
    """Collects the scores of a configuration by the numbers of its examples, and the first names without a metric."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[float, ...]] = {}
        self.unknown: tuple[str, ...] = ()

    def add(self, example: Example, observation: Scores) -> None:
        """Take one example."""
        self.values[example.index] = observation.values
        self.unknown = self.unknown or tuple(observation.unknown)


def means(configuration: str, metrics: Sequence[Metric], scores: ScoresByExample) -> list[MetricMean]:
    """Each metric of one configuration; none without an example."""
    count = len(scores)
    found = []
    for place, metric in enumerate(metrics if count else ()):
        values = [each[place] for each in scores.values()]
        mean = math.fsum(values) / count
        deviation = stdev(values) if count > 1 else 0.0
        interval = mean_interval(mean, deviation, count)
        found.append(MetricMean(configuration, metric.name, count, mean, deviation, interval))
    return found


def comparisons(
    baseline: str,
    other: str,
    metrics: Sequence[Metric],
    before: ScoresByExample,
    after: ScoresByExample,
) -> list[MetricComparison]:
    """Each metric of one configuration against another, over the examples that both finished; none without one."""
    common = sorted(before.keys() & after.keys())
    found = []
    for place, metric in enumerate(metrics if common else ()):
        change = mean_change([before[index][place] for index in common], [after[index][place] for index in common])
        found.append(MetricComparison(baseline, other, metric.name, change, change.interval()))
    return found


def verdicts(found: Sequence[MetricComparison], metrics: Sequence[Metric], margin: float) -> dict[str, list[Verdict]]:
    """What the changes mean, by configuration: those of each pair in the order of the metrics."""
    better = {metric.name: metric.better for metric in metrics}
    by_configuration: dict[str, list[Verdict]] = {}
    for entry in found:
        verdict = judge(entry, better[entry.metric], margin)
        by_configuration.setdefault(entry.other, []).append(verdict)
    return by_configuration


def judge(comparison: MetricComparison, better: Better, margin: float) -> Verdict:
    """What a change means by its interval.

    ``equivalent`` where the whole interval lies within ``margin`` of no change, ``worse`` or ``better`` where it lies
    on one side of no change, else ``not decided``.

    >>> change = mean_change([0.5] * 40, [0.75, 0.8] * 20)
    >>> judge(MetricComparison("cpu", "gpu", "error", change, change.interval()), "lower", 0.005).kind
    'worse'
    """
    change, interval = comparison.change, comparison.interval
    verdict = Verdict("not decided", comparison.metric, comparison.baseline, change=change.change, margin=margin)
    if interval is None:
        return verdict
    verdict = replace(verdict, low=interval.low, high=interval.high)
    if -margin <= interval.low and interval.high <= margin:
        return replace(verdict, kind="equivalent")
    if interval.low <= 0 <= interval.high:
        return verdict
    return replace(verdict, kind="better" if (interval.low > 0) == (better == "higher") else "worse")
