"""Where a difference is, and what it has in common: the run and the channel that differ most, a factor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Float64s = npt.NDArray[np.float64]

MOST_CHANNELS: Final = 1024
_LEAST_SHARE: Final = 0.01
_LEAST_SHARE_OF_RUN: Final = 0.1
_LEAST_QUANTA: Final = 4.0
_LEAST_UNLIKE: Final = 1e-3
"""Of channels of unlike units: scores below it are none."""


class Farthest(Struct, frozen=True):
    """The run or channel in which test and reference are farthest apart.

    ``index`` is its number, ``size`` the root mean square of the difference there over that of the reference there; of
    whole numbers and texts, the share of elements that differ. A reference near 0 counts as a hundredth of all of it
    (of a run, a tenth), and as four quanta at least; in channels of unlike units, each of which counts by itself, as a
    thousandth.
    """

    index: int
    size: float


def channel_sums(test: Float64s, reference: Float64s, shape: tuple[int, ...], axis: int | None = None) -> Float64s:
    """Of one tensor, a row for each index of an axis: squares of the difference, of the reference, elements.

    ``test`` and ``reference`` are flat and in real units, not finite values count as equal. Without an axis it is the
    last one. Empty without channels.

    >>> channel_sums(np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0]), (2, 2)).tolist()
    [[0.0, 10.0, 2.0], [1.0, 20.0, 2.0]]
    """
    axis = -1 if axis is None else axis
    if not test.size or not shape or not 2 <= shape[axis] <= MOST_CHANNELS:
        return np.empty((0, 3))
    both = np.isfinite(test) & np.isfinite(reference)
    if not both.all():
        test, reference = np.where(both, test, 0.0), np.where(both, reference, 0.0)
    with np.errstate(over="ignore"):
        sides = (np.moveaxis(side.reshape(shape), axis, -1) for side in (test - reference, reference))
        rows = [side.reshape(-1, shape[axis]) for side in sides]
        sums = [np.einsum("ij,ij->j", row, row) for row in rows]
        return np.stack((*sums, np.full(shape[axis], test.size / shape[axis])), axis=1)


def farthest_channel(parts: Sequence[Float64s], quantum: float, are_unlike: bool = False) -> Farthest | None:
    """The channel with the largest relative difference over all runs; None where there are no channels.

    ``are_unlike``: they have units of their own, as coordinates and scores have.
    """
    if not parts or any(part.shape != parts[0].shape for part in parts) or not len(parts[0]):
        return None
    sums = np.sum(parts, axis=0)
    if not (sums[:, 2] > 0).any():
        return None
    sizes = _sizes(sums, 0.0, quantum, _LEAST_UNLIKE) if are_unlike else _sizes(sums, _LEAST_SHARE, quantum)
    return _largest(sizes)


def run_sizes(squared: Sequence[float], reference: Sequence[float], counts: Sequence[int], quantum: float) -> Float64s:
    """The relative difference of each run, from its sums of squares."""
    return _sizes(np.array([squared, reference, counts], np.float64).T, _LEAST_SHARE_OF_RUN, quantum)


def farthest_run(sizes: Sequence[float]) -> Farthest:
    """The run with the largest of the sizes."""
    return _largest(np.array(sizes))


def _sizes(rows: Float64s, least_share: float, quantum: float, least: float = 0.0) -> Float64s:
    counted = rows[:, 2] > 0
    with np.errstate(all="ignore"):
        mean = rows[:, :2] / rows[:, 2:]
        overall = rows[counted, 1].sum() / rows[counted, 2].sum()
        base = np.maximum(mean[:, 1], max(least_share**2 * overall, (_LEAST_QUANTA * quantum) ** 2, least**2))
        relative = np.where(mean[:, 0] > 0, np.sqrt(mean[:, 0] / base), 0.0)
    relative = np.where(counted & ~np.isnan(relative), relative, 0.0)
    return np.minimum(relative, np.finfo(np.float64).max)


def _largest(sizes: Float64s) -> Farthest:
    index = int(sizes.argmax())
    return Farthest(index, float(sizes[index]))


def gain(dots: Sequence[float], squares: Sequence[float]) -> float | None:
    """The factor, less 1, by which the reference fits the test best (least squares), from sums by run.

    ``dots`` are sums of test times reference, ``squares`` of the reference's squares. None where these are 0.

    >>> gain([1.5, 6.0], [1.0, 4.0])
    0.5
    """
    total, excess = sum(squares), [dot - square for dot, square in zip(dots, squares, strict=True)]
    if not total or not math.isfinite(total) or not math.isfinite(sum(excess)):
        return None
    return sum(excess) / total
