"""The metrics of an ImageNet evaluation."""

from __future__ import annotations

from functools import partial
from typing import Final

from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import against_reference
from evaltools.stats.changes import CountedChange, Share
from evaltools.stats.proportions import PairedCounts
from evaltools.tasks.imagenet.task import TOP_K


def _share(k: int, _result: EvaluationResult, configuration: ConfigurationResult) -> Share | None:
    """The counts behind an accuracy, which is float32: 90 of 100 would be less than 0.9."""
    topk = configuration.classification.topk if configuration.classification else None
    if topk is None or not topk.example_count or len(topk.accuracies) < k:
        return None
    return Share(round(topk.accuracies[k - 1] * topk.example_count), topk.example_count)


def _accuracy(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    share = _share(k, result, configuration)
    return ABSENT if share is None else share.successes / share.count


def _change(k: int, result: EvaluationResult, configuration: ConfigurationResult) -> CountedChange | None:
    comparison = against_reference(result.comparisons, configuration, result.configurations)
    if comparison is None or not comparison.agreement.example_count:
        return None
    flips = [PairedCounts(comparison.agreement.example_count, entry.lost, entry.gained)
             for entry in comparison.topk if entry.k == k]  # fmt: skip
    return CountedChange(flips[0]) if flips else None


def _agreement(result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    comparison = against_reference(result.comparisons, configuration, result.configurations)
    return ABSENT if comparison is None else comparison.agreement.share


def _distinct_answers(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    metrics = configuration.classification
    return ABSENT if metrics is None or metrics.distinct_answers is None else float(metrics.distinct_answers)


def _topk(k: int) -> Metric:
    return Metric(
        f"top{k}",
        f"Top-{k} accuracy, 0..1",
        partial(_accuracy, k),
        better="higher",
        is_share=True,
        share=partial(_share, k),
        change=partial(_change, k),
        ranked=k,
        against_baseline="share",
    )


METRICS: Final = (
    *(_topk(k) for k in range(1, TOP_K + 1)),
    Metric(
        "agreement",
        "imagenet: share of examples with the reference's best class, 0..1",
        _agreement,
        better="higher",
        is_share=True,
        of_reference=True,
    ),
    Metric("distinct_answers", "imagenet: how many classes came first at least once", _distinct_answers),
)
