"""What a classification measures: top-K accuracy as the native stage has it, average precision, and agreement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.proportions import PairedCounts


class ClassificationMetrics(Struct, frozen=True):
    """Top-K accuracy, and two signs of a broken delegate.

    ``outputs_with_nonfinite`` counts outputs with NaN or infinite scores (they count as answers, usually wrong ones);
    ``distinct_answers`` is the number of different classes that came first at least once. Both are None where a native
    tool measured, which does not say.
    """

    topk: TopKAccuracy
    outputs_with_nonfinite: int | None
    distinct_answers: int | None


class TopKAccuracy(Struct, frozen=True):
    """``accuracies[k - 1]`` is the share of examples, 0..1, whose label is among the k best classes."""

    example_count: int
    accuracies: tuple[float, ...]

    def __post_init__(self) -> None:
        for share in self.accuracies:
            if share < 0 or share > 1:
                raise ValueError(f"an accuracy of {share:g} is not a share, 0..1")


def best_classes(scores: npt.NDArray[np.generic], k: int) -> npt.NDArray[np.intp]:
    """Indices of the k highest scores of a vector ``(N,)``, best first.

    Scores are compared as raw float32 (no dequantisation) and ties keep the lower index (stable sort), as in the native
    tool. NaN ranks behind everything else; the native order is undefined there.

    >>> best_classes(np.array([1, 3, 3, 2], np.uint8), 3).tolist()
    [1, 2, 3]
    """
    descending = -scores.astype(np.float32)
    candidates = np.arange(len(descending))
    if k < len(descending):
        candidates = np.flatnonzero(~(descending > np.partition(descending, k - 1)[k - 1]))
    best: npt.NDArray[np.intp] = candidates[np.argsort(descending[candidates], kind="stable")[:k]]
    return best


def rank_of_label(classes: Sequence[int], labels: Sequence[str | None], truth: str) -> int | None:
    """Position (0 = best) of the first class whose label equals ``truth``, or None.

    Equality is that of strings, so a label that stands for two classes matches both. ``labels[i]`` is the label of
    class i, None where the list has none.

    >>> rank_of_label([2, 0], ["cat", "dog", "cat"], "cat"), rank_of_label([1], ["cat", "dog"], "cat")
    (0, None)
    """
    for rank, label_index in enumerate(classes):
        if labels[label_index] == truth:
            return rank
    return None


class TopKCounts:
    """Counts how often the right label was among the 1 to ``most`` best classes.

    With no example there are no accuracies, as in the native tool, whose quotient is float32.

    >>> counts = TopKCounts(2)
    >>> for rank in (0, 1, None, 0):
    ...     counts.add(rank)
    >>> counts.result().accuracies
    (0.5, 0.75)
    """

    def __init__(self, most: int) -> None:
        self._count = 0
        self._at_rank = [0] * most

    def add(self, rank: int | None) -> None:
        """Take the place of the right label in one example, from 0; None: not among the best."""
        self._count += 1
        if rank is not None and rank < len(self._at_rank):
            self._at_rank[rank] += 1

    def result(self) -> TopKAccuracy:
        """The accuracies over all examples."""
        if not self._count:
            return TopKAccuracy(0, ())
        hits = accumulate(self._at_rank)
        return TopKAccuracy(self._count, tuple(hit / self._count for hit in hits))


class Agreement(Struct, frozen=True):
    """Agreement over the examples that both configurations finished.

    ``same_top1``: both put the same class first. ``right_to_wrong``: the first is right (top-1) and the second wrong;
    ``wrong_to_right``: the other way round.
    """

    example_count: int
    same_top1: int
    right_to_wrong: int
    wrong_to_right: int

    @property
    def share(self) -> float | None:
        """Share of examples with the same top-1 class, 0..1; None with no example."""
        return self.same_top1 / self.example_count if self.example_count else None


class ClassifierAnswer(Protocol):
    """The answer of one configuration to one example of a classification."""

    @property
    def top1(self) -> int:
        """The class that the configuration put first."""

    @property
    def rank(self) -> int | None:
        """The place of the right label, from 0; None where it is not among the best classes."""


class ComparedAnswers(Struct, frozen=True):
    """Agreement of two configurations; ``topk[k - 1]`` has the examples that changed sides in Top-k."""

    agreement: Agreement
    topk: tuple[PairedCounts, ...]


class AnswerPairs:
    """Counts the agreement of two configurations, and the changes of Top-1 to Top-``most``."""

    def __init__(self, most: int) -> None:
        self._count = self._same = 0
        self._lost, self._gained = [0] * most, [0] * most

    def add(self, baseline: ClassifierAnswer, other: ClassifierAnswer) -> None:
        """Add both answers to one example."""
        self._count += 1
        self._same += baseline.top1 == other.top1
        most = len(self._lost)
        own, theirs = (most if answer.rank is None else min(answer.rank, most) for answer in (baseline, other))
        flipped = self._lost if own < theirs else self._gained
        for rank in range(min(own, theirs), max(own, theirs)):
            flipped[rank] += 1

    def result(self) -> ComparedAnswers:
        """The counts over all examples."""
        agreement = Agreement(self._count, self._same, sum(self._lost[:1]), sum(self._gained[:1]))
        flips = zip(self._lost, self._gained, strict=True)
        return ComparedAnswers(agreement, tuple(PairedCounts(self._count, *pair) for pair in flips))


def mean_average_precision(rows: Sequence[npt.NDArray[Any]]) -> float:
    """The mean over the labels of the average precision of their scores; a row is the right label, then all scores.

    Of a label it is the sum over its examples, best score first, of the precision that is reached with all equal scores
    taken together, by their number (that of scikit-learn's ``average_precision_score``). Labels without an example are
    left out.

    >>> rows = [np.array([0, 0.9, 0.1]), np.array([1, 0.8, 0.2]), np.array([0, 0.7, 0.3])]
    >>> round(mean_average_precision(rows), 4)
    0.6667
    """
    table = np.stack(rows)
    right, scores = table[:, 0], table[:, 1:]
    return float(np.mean([_average_precision(right == label, scores[:, int(label)]) for label in np.unique(right)]))


def _average_precision(is_right: npt.NDArray[np.bool_], scores: npt.NDArray[Any]) -> float:
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], np.cumsum(is_right[order])
    last_of_equals = np.searchsorted(-ordered, -ordered, side="right") - 1
    precision = hits[last_of_equals] / (last_of_equals + 1)
    return float(precision[is_right[order]].mean())
