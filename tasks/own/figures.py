"""Means of scores, and their changes against another configuration on the same examples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import stdev

from evaltools.engine import Example
from evaltools.gates.mean_verdict import mean_verdict
from evaltools.result.verdict import Verdict
from evaltools.stats.means import mean_change, mean_interval
from evaltools.tasks.own.definition import Mean
from evaltools.tasks.own.result import MetricComparison, MetricMean
from evaltools.tasks.own.task import ObservedScores

ScoresByExample = Mapping[int, tuple[float, ...]]


class ScoresSeen:
    """Collects the scores of a configuration by the number of the example, and the first names that have no metric."""

    def __init__(self) -> None:
        self.values: dict[int, tuple[float, ...]] = {}
        self.unknown: tuple[str, ...] = ()

    def add(self, example: Example, observation: ObservedScores) -> None:
        """Add the scores of one example."""
        self.values[example.index] = observation.values
        self.unknown = self.unknown or tuple(observation.unknown)


def means(configuration: str, metrics: Sequence[Mean], scores: ScoresByExample) -> list[MetricMean]:
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
    metrics: Sequence[Mean],
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


def verdicts(found: Sequence[MetricComparison], metrics: Sequence[Mean], margin: float) -> dict[str, list[Verdict]]:
    """The verdicts on the changes, by configuration: those of each pair in the order of the metrics.

    ``margin`` is that of metrics without one of their own.
    """
    by_name = {metric.name: metric for metric in metrics}
    by_configuration: dict[str, list[Verdict]] = {}
    for entry in found:
        metric = by_name[entry.metric]
        own_margin = margin if metric.margin is None else metric.margin
        verdict = mean_verdict(entry.metric, entry.change, metric.better, own_margin, entry.baseline)
        by_configuration.setdefault(entry.other, []).append(verdict)
    return by_configuration
