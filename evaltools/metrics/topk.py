"""Top-K accuracy as the native ``topk_accuracy_eval_stage`` defines it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt
from msgspec import Struct


class TopKAccuracy(Struct, frozen=True):
    """``accuracies[k - 1]`` is the share of examples, 0..1, whose label is among the k best classes."""

    example_count: int
    accuracies: tuple[float, ...]

    def __post_init__(self) -> None:
        for share in self.accuracies:
            if share < 0 or share > 1:
                raise ValueError(f"an accuracy of {share:g} is no share, 0..1")


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

    def merge(self, other: TopKCounts) -> None:
        """Take what was counted of other examples."""
        self._count += other._count
        self._at_rank = [own + more for own, more in zip(self._at_rank, other._at_rank, strict=True)]

    def result(self) -> TopKAccuracy:
        """The accuracies over all examples."""
        if not self._count:
            return TopKAccuracy(0, ())
        hits = accumulate(self._at_rank)
        return TopKAccuracy(self._count, tuple(hit / self._count for hit in hits))
