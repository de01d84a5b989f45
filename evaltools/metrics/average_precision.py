"""Average precision of the scores of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


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
