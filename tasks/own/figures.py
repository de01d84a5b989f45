"""Means of scores, and their changes against another configuration on the same examples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import stdev

from evaltools.engine import Record
from evaltools.stats.interval import Interval
from evaltools.stats.means import mean_change, mean_interval
from evaltools.tasks.own.definition import Better, Metric
from evaltools.tasks.own.result import MeanVerdict, MetricComparison, MetricMean
from evaltools.tasks.own.task import Scores

ScoresByExample = Mapping[int, tuple[float, ...]]


def scores_by_example(records: Iterable[Record[Scores]]) -> dict[int, tuple[float, ...]]:
    """The scores of the examples that a configuration finished, by their numbers."""
    return {record.example.index: record.observation.values for record in records if record.observation is not None}


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
    margin: float,
) -> list[MetricComparison]:
    """Each metric of one configuration against another, over the examples that both finished; none without one."""
    common = sorted(before.keys() & after.keys())
    found = []
    for place, metric in enumerate(metrics if common else ()):
        change = mean_change([before[index][place] for index in common], [after[index][place] for index in common])
        interval = change.interval()
        verdict = judge(interval, metric.better, margin)
        found.append(MetricComparison(baseline, other, metric.name, change, interval, verdict))
    return found


def judge(interval: Interval | None, better: Better, margin: float) -> MeanVerdict:
    """What a change means by its interval.

    >>> judge(Interval(-0.001, 0.002), "higher", 0.005), judge(Interval(0.01, 0.02), "lower", 0.005)
    ('equivalent', 'worse')
    """
    if interval is None or math.isnan(interval.low):
        return "not decided"
    if -margin <= interval.low and interval.high <= margin:
        return "equivalent"
    if interval.low <= 0 <= interval.high:
        return "not decided"
    return "better" if (interval.low > 0) == (better == "higher") else "worse"
