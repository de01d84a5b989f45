"""What a classification measures: best classes as the native stage has them, and average precision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


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
