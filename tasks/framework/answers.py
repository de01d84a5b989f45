"""What is kept of a classifier's answer to one example."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.errors import DataError, TaskError
from evaltools.metrics.classification import best_classes, rank_of_label
from evaltools.metrics.native_numbers import shortest
from evaltools.tasks.framework.tensors import Quantisation

_NO_RANK: Final = -1.0
_BEFORE_CLASSES: Final = 3
"""Numbers of a row before its classes: the rank, how many scores are not finite, the best score in real units."""


class Answer(Struct, frozen=True):
    """The best classes of one output with their raw scores, best first, and the rank of the right label.

    ``rank`` is 0 for a right top-1 answer, None where the label is not among ``classes``. ``nonfinite`` counts NaN and
    infinite scores. ``best`` is the best score as a real number.
    """

    classes: tuple[int, ...]
    scores: tuple[float, ...]
    rank: int | None
    nonfinite: int
    best: float

    @property
    def top1(self) -> int:
        """The class that came first."""
        return self.classes[0]

    @classmethod
    def of(cls, row: npt.NDArray[Any] | None) -> Answer:
        """The answer that :func:`ranked` made a row of; raises :class:`DataError` for a damaged one."""
        try:
            row = np.asarray(row, np.float64)
            classes, scores = np.split(row[_BEFORE_CLASSES:], 2)
            rank = None if row[0] == _NO_RANK else int(row[0])
            found = cls(tuple(map(int, classes)), tuple(map(float, scores)), rank, int(row[1]), float(row[2]))
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            raise DataError("a record holds no answer of a classifier; start the run anew") from error
        if not found.classes or (rank is not None and rank < 0):
            raise DataError("a record holds no answer of a classifier; start the run anew")
        return found


def ranked(
    scores: npt.NDArray[np.generic],
    labels: Sequence[str | None],
    truth: str,
    k: int,
    quantisation: Quantisation | None = None,
) -> npt.NDArray[np.float64]:
    """The ``k`` best classes of a vector of scores (N,) and the rank of the right one, as a row (3 + 2 k,) of a record.

    Raises :class:`TaskError` where there are not as many scores as ``labels``.
    """
    if len(scores) != len(labels):
        raise TaskError(f"the output has {len(scores)} scores, and there are {len(labels)} labels; give one per class")
    classes = best_classes(scores, k).tolist()
    best = [shortest(float(scores[number])) for number in classes]
    rank = rank_of_label(classes, labels, truth)
    scale, zero_point = quantisation or (1.0, 0)
    nonfinite = int(np.count_nonzero(~np.isfinite(scores.astype(np.float32))))
    return np.array([_NO_RANK if rank is None else rank, nonfinite, scale * (best[0] - zero_point), *classes, *best])
