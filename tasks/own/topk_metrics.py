"""The metrics of a classifier's answers."""

from __future__ import annotations

from functools import partial
from typing import Final

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.interval import Interval
from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.metrics.power import Change, CountedChange, Share
from evaltools.metrics.proportions import PairedCounts
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import against_reference
from evaltools.tasks.own.topk_result import Comparison, TopKPart

MOST: Final = 10
"""The metrics are of Top-1 to Top-10."""


def topk_of(result: EvaluationResult) -> TopKPart | None:
    """The answers of a classifier in a result; None where it has none."""
    found: TopKPart | None = getattr(result.part, "topk", None)
    return found


def _classified(result: EvaluationResult, configuration: ConfigurationResult) -> ClassificationMetrics | None:
    part = topk_of(result)
    answered = part.classified.get(configuration.name) if part else None
    return answered.metrics if answered else None


def _comparison(result: EvaluationResult, configuration: ConfigurationResult) -> Comparison | None:
    part = topk_of(result)
    return against_reference(result, part.comparisons, configuration) if part else None


def _share(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Share | None:
    """The counts behind an accuracy."""
    classified = _classified(result, configuration)
    topk = classified.topk if classified else None
    if topk is None or not topk.example_count or len(topk.accuracies) < k:
        return None
    return Share(round(topk.accuracies[k - 1] * topk.example_count), topk.example_count)


def _accuracy(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    share = _share(k, result, configuration)
    return ABSENT if share is None else share.successes / share.count


def _interval(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Interval | None:
    part = topk_of(result)
    answered = part.classified.get(configuration.name) if part else None
    return answered.topk_intervals[k - 1] if answered and len(answered.topk_intervals) >= k else None


def _change(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Change | None:
    comparison = _comparison(result, configuration)
    if comparison is None or not comparison.agreement.example_count:
        return None
    count = comparison.agreement.example_count
    flips = [PairedCounts(count, entry.lost, entry.gained) for entry in comparison.topk if entry.k == k]
    return CountedChange(flips[0]) if flips else None


def _each(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> list[float]:
    """1 for each right answer, 0 for each wrong one; none unless every example has one."""
    part = topk_of(result)
    answers = part.answers_of(configuration.name) if part else []
    return [float(answer.rank is not None and answer.rank < k) for answer in answers]


def agreement(result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    """The share of examples with the same first answer as the reference, 0..1."""
    comparison = _comparison(result, configuration)
    return ABSENT if comparison is None else comparison.agreement.share


def _distinct_answers(result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    classified = _classified(result, configuration)
    count = classified.distinct_answers if classified else None
    return ABSENT if count is None else float(count)


def _topk(k: int) -> Metric:
    return Metric(
        f"top{k}",
        f"Top-{k} accuracy, 0..1",
        partial(_accuracy, k),
        better="higher",
        is_share=True,
        heading=f"top-{k}" if k in (1, 5) else "",
        interval=partial(_interval, k),
        share=partial(_share, k),
        change=partial(_change, k),
        each=partial(_each, k),
        ranked=k,
    )


METRICS: Final = (
    *(_topk(k) for k in range(1, MOST + 1)),
    Metric(
        "agreement",
        "imagenet: share of examples with the reference's best class, 0..1",
        agreement,
        better="higher",
        is_share=True,
        of_reference=True,
    ),
    Metric("distinct_answers", "imagenet: how many classes came first at least once", _distinct_answers),
)
