"""The metrics of a classifier's answers, and how limits read them."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.interval import Interval
from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.metrics.power import Change, CountedChange, Share
from evaltools.metrics.proportions import PairedCounts
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged
from evaltools.result.places import against_reference
from evaltools.tasks.own.topk_result import Comparison, TopKPart
from evaltools.tasks.shared.showing import figures_by, judged_by

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


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The figures of the metrics."""
    return figures_by(METRICS, result, configuration) if topk_of(result) else {}


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The counts behind the accuracies, flips against the reference, and ranks if every example has an answer."""
    part = topk_of(result)
    if part is None:
        return Judged()
    recorded = [example.answers.get(configuration.name) for example in part.examples or []]
    answers = [answer for answer in recorded if answer is not None]
    ranks = [answer.rank for answer in answers] if len(answers) == len(recorded) else ()
    times_us = [answer.invoke_us for answer in answers] if ranks and _is_timed_in_pass(result) else ()
    return replace(judged_by(METRICS, result, configuration), ranks=ranks, times_us=times_us)


def _is_timed_in_pass(result: EvaluationResult) -> bool:
    """Whether the latency is computed from the times recorded with the answers, and not from a quiet phase."""
    execution = result.execution
    return execution is not None and execution.workers == 1 and execution.quiet_latency_examples is None


def nan_outputs(result: EvaluationResult, configuration: ConfigurationResult) -> int:
    """Answers with NaN or infinite scores."""
    classified = _classified(result, configuration)
    return (classified.outputs_with_nonfinite or 0) if classified else 0
