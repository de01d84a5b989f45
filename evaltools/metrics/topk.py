"""Top-K accuracy as the native ``topk_accuracy_eval_stage`` defines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class TopKAccuracy:
    """``accuracies[k - 1]`` is the share of examples, 0..1, whose label is among the k best classes (float32)."""

    example_count: int
    accuracies: tuple[float, ...]


def best_classes(scores: npt.NDArray[np.generic], k: int) -> npt.NDArray[np.intp]:
    """Indices of the k highest scores of a vector ``(N,)``, best first.

    Scores are compared as raw float32 (no dequantisation) and ties keep the lower index (stable sort), as in the native
    tool. NaN ranks behind everything else; the native order is undefined there.

    >>> best_classes(np.array([1, 3, 3, 2], np.uint8), 3).tolist()
    [1, 2, 3]
    """
    descending = -scores.astype(np.float32)
    return np.argsort(descending, kind="stable")[:k]


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


def topk_accuracy(ranks: Sequence[int | None], k: int) -> TopKAccuracy:
    """Top-1..k accuracy from the rank of the right label per example (None: not among the k best).

    ``accuracy = float32(count) / float32(n)``; with no example there are no accuracies, as in the native tool.

    >>> topk_accuracy([0, 1, None, 0], 2).accuracies
    (0.5, 0.75)
    """
    if not ranks:
        return TopKAccuracy(0, ())
    hits = [sum(rank is not None and rank < best for rank in ranks) for best in range(1, k + 1)]
    return TopKAccuracy(len(ranks), tuple(float(np.float32(hit) / np.float32(len(ranks))) for hit in hits))
