"""Compares score vectors: whether both sides put the same classes first."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

TOP: Final = 5
_MOST_POSITIONS: Final = 1000


class ScoreAgreement(Struct, frozen=True):
    """Over ``positions`` score vectors (one per pixel for a map): how many have the same best class in both.

    ``tied_best`` counts those that have not only because one side gives the best classes of both the same score.
    ``top5_common`` counts the classes that are among the five best of both; None with five classes or fewer, and for
    maps with more than 1000 positions, of which only the best class is used.
    """

    positions: int
    same_best: int
    top5_common: int | None
    tied_best: int = 0

    def __add__(self, other: ScoreAgreement) -> ScoreAgreement:
        top5 = None
        if self.top5_common is not None and other.top5_common is not None:
            top5 = self.top5_common + other.top5_common
        return ScoreAgreement(
            self.positions + other.positions, self.same_best + other.same_best, top5, self.tied_best + other.tied_best
        )

    @property
    def changed(self) -> int:
        """How many positions have another best class, ties apart."""
        return self.positions - self.same_best - self.tied_best

    @property
    def top5_overlap(self) -> float | None:
        """Mean share of the five best classes that both have, 0..1."""
        return None if self.top5_common is None else self.top5_common / (TOP * self.positions)


def compare_scores(test: npt.NDArray[Any], reference: npt.NDArray[Any]) -> ScoreAgreement | None:
    """Compare along the last axis; of equal scores the first class counts as the better one. None without scores.

    >>> compare_scores(np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([[0.2, 0.8], [0.4, 0.6]]))
    ScoreAgreement(positions=2, same_best=1, top5_common=None, tied_best=1)
    """
    if test.size == 0 or test.ndim == 0:
        return None
    classes = test.shape[-1]
    first, second = test.reshape(-1, classes), reference.reshape(-1, classes)
    best, expected, tied = best_classes(first, second)
    changed = best != expected
    same, ties = int(np.count_nonzero(~changed)), int(np.count_nonzero(changed & tied))
    top5 = _common_top5(first, second) if classes > TOP and len(first) <= _MOST_POSITIONS else None
    return ScoreAgreement(len(first), same, top5, ties)


def best_classes(
    first: npt.NDArray[Any], second: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The best class of each row of scores on both sides, and whether one side gives these two the same score."""
    best, expected, rows = first.argmax(axis=1), second.argmax(axis=1), np.arange(len(first))
    tied = (first[rows, best] == first[rows, expected]) | (second[rows, best] == second[rows, expected])
    return best, expected, tied


def _common_top5(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> int:
    """Classes equal to the fifth best are all among the best, so that ties at the end take nothing away."""
    common = _among_best(first) & _among_best(second)
    return int(np.minimum(np.count_nonzero(common, axis=1), TOP).sum())


def _among_best(scores: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = scores >= np.partition(scores, -TOP, axis=1)[:, -TOP, None]
    return found


def looks_like_scores(shape: tuple[int, ...], from_softmax: bool) -> bool:
    """Whether the last axis of an output holds scores of classes.

    So it does where the graph ends in SOFTMAX or LOGISTIC with several classes, and for a vector of at least 3 numbers.

    >>> looks_like_scores((1, 1001), False), looks_like_scores((1, 2), False)
    (True, False)
    """
    if not shape or shape[-1] < 2:
        return False
    if from_softmax:
        return True
    return shape[-1] >= 3 and sum(size != 1 for size in shape) == 1
