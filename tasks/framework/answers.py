"""What is kept of a classifier's answers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.engine.steps import Record
from evaltools.errors import DataError, TaskError
from evaltools.metrics.classification import best_classes, rank_of_label
from evaltools.metrics.native_numbers import shortest
from evaltools.tasks.framework.tensors import Quantisation

_NO_RANK: Final = -1
_IN_BLOCK: Final = 4096
_BEFORE_CLASSES: Final = 3
"""Numbers of a row before its classes: the rank, how many scores are not finite, the best score in real units."""


class Answers(Struct, frozen=True):
    """The answers of a classifier to the examples that it finished, ascending: a row for each of N, of k classes.

    ``examples`` (N,) are numbers of examples, ``ranks`` (N,) those of the right label, 0 for a right top-1 answer, k
    where it is not among the best; ``nonfinite`` (N,) counts NaN and infinite scores, ``best`` (N,) is the best score
    as a real number. ``classes`` (N, k) are the best ones, best first, with their raw ``scores`` (N, k).
    """

    examples: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int32]
    nonfinite: npt.NDArray[np.int32]
    best: npt.NDArray[np.float64]
    classes: npt.NDArray[np.int32]
    scores: npt.NDArray[np.float64]

    @classmethod
    def of(cls, records: Iterable[Record[Any]]) -> Answers:
        """The answers in records, as :func:`ranked` made them; raises :class:`DataError` for damaged ones.

        >>> class Seen(Struct):
        ...     whole: list[float]
        >>> Answers.of([Record(3, "cpu", (1.0,), Seen([0, 0, 0.5, 7, 0.5]))]).classes.tolist()
        [[7]]
        """
        examples: array[int] = array("q")
        blocks: list[npt.NDArray[np.float64]] = []
        rows: list[Any] = []
        try:
            for record in records:
                if record.observation is not None:
                    examples.append(record.example)
                    rows.append(record.observation.whole)
                if len(rows) == _IN_BLOCK:
                    blocks.append(np.array(rows, np.float64))
                    rows.clear()
            blocks += [np.array(rows, np.float64)] if rows else []
            answers = np.concatenate(blocks) if blocks else np.empty((0, _BEFORE_CLASSES))
            k = (answers.shape[1] - _BEFORE_CLASSES) // 2
            numbers = answers[:, [0, 1, *range(_BEFORE_CLASSES, _BEFORE_CLASSES + k)]].astype(np.int32)
        except (TypeError, ValueError, IndexError) as error:
            raise DataError("a record holds no answer of a classifier; start the run anew") from error
        ranks = np.where(numbers[:, 0] == _NO_RANK, k, numbers[:, 0])
        if (examples and k < 1) or answers.shape[1] != _BEFORE_CLASSES + 2 * k or (ranks < 0).any():
            raise DataError("a record holds no answer of a classifier; start the run anew")
        scores = answers[:, _BEFORE_CLASSES + k :]
        return cls(np.array(examples, np.int64), ranks, numbers[:, 1], answers[:, 2], numbers[:, 2:], scores)

    @property
    def hits(self) -> list[int]:
        """How many examples have the right label among their best, two best and so on."""
        most = self.classes.shape[1]
        found: list[int] = np.cumsum(np.bincount(np.minimum(self.ranks, most), minlength=most + 1))[:most].tolist()
        return found

    def at(self, places: npt.NDArray[np.int64]) -> Answers:
        """The answers at some places; the same where these are all."""
        if places.size == self.examples.size and bool((np.diff(places) == 1).all()):
            return self
        return Answers(*(getattr(self, name)[places] for name in self.__struct_fields__))


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
