"""From the answers of a run to the figures of its configurations and pairs, in one pass over the journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evaltools.engine import Example
from evaltools.engine.describe import comparison_pairs
from evaltools.metrics.agreement import AnswerPairs
from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.topk import TopKCounts
from evaltools.result.evaluation import ConfigurationResult
from evaltools.tasks.imagenet.paired import classified, topk_comparisons
from evaltools.tasks.imagenet.result import Classified, Comparison
from evaltools.tasks.imagenet.task import TopKObservation
from evaltools.tasks.shared.measured import Measured
from evaltools.tasks.shared.one_pass import Sums, judge_records, sum_up


@dataclass(frozen=True)
class ImagenetFigures:
    """Everything that is counted over the examples of a run; ``classified`` by configuration."""

    configurations: list[ConfigurationResult]
    sums: Sums
    classified: dict[str, Classified]
    comparisons: list[Comparison]


class AnswerCounts:
    """What the answers of one configuration come to."""

    def __init__(self, most: int) -> None:
        self._topk = TopKCounts(most)
        self._classes: set[int] = set()
        self._nonfinite = 0

    def add(self, example: Example, observation: TopKObservation) -> None:
        """Count one answer."""
        self._topk.add(observation.rank)
        self._classes.add(observation.top1)
        self._nonfinite += observation.nonfinite > 0

    def merge(self, other: AnswerCounts) -> None:
        """Take what was counted of other examples."""
        self._topk.merge(other._topk)
        self._classes |= other._classes
        self._nonfinite += other._nonfinite

    def result(self) -> ClassificationMetrics:
        """Accuracy over all answers, and signs of a broken delegate."""
        return ClassificationMetrics(self._topk.result(), self._nonfinite, len(self._classes))


class SameAnswers:
    """Counts examples with the same answer bit for bit, and other first answers that are ties."""

    def __init__(self) -> None:
        self.identical = self.ties = 0

    def add(self, baseline: TopKObservation, other: TopKObservation) -> None:
        """Take both answers to one example."""
        self.identical += baseline.classes == other.classes and baseline.scores == other.scores
        if baseline.top1 != other.top1:
            self.ties += _is_best(baseline, other.top1) or _is_best(other, baseline.top1)

    def merge(self, more: SameAnswers) -> None:
        """Take what was counted of other examples."""
        self.identical += more.identical
        self.ties += more.ties


def _is_best(answer: TopKObservation, number: int) -> bool:
    """Whether no class has a better score than the one of this number."""
    return (number, answer.scores[0]) in zip(answer.classes, answer.scores, strict=False)


def imagenet_figures(described: Sequence[ConfigurationResult], measured: Measured, top_k: int) -> ImagenetFigures:
    """Top-1 to Top-``top_k`` of every configuration that has answers, and how answers differ."""
    judged = [judge_records(entry, measured.outcome) for entry in described]
    pairs = comparison_pairs(judged)
    answers = {entry.name: AnswerCounts(top_k) for entry in judged if entry.status == "measured"}
    compared = {pair: AnswerPairs(top_k) for pair in pairs}
    same = {pair: SameAnswers() for pair in pairs}
    sums = sum_up(
        measured,
        pairs,
        {name: [counts] for name, counts in answers.items()},
        {pair: [counts, same[pair]] for pair, counts in compared.items()},
    )
    return ImagenetFigures(
        configurations=[sums.with_figures(entry) for entry in judged],
        sums=sums,
        classified={name: classified(counts.result()) for name, counts in answers.items()},
        comparisons=[
            replace(entry, identical=counts.identical, ties=counts.ties)
            for entry in topk_comparisons({pair: counts.result() for pair, counts in compared.items()})
            for counts in [same[entry.baseline, entry.other]]
        ],
    )
