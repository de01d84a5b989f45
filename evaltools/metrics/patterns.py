"""Where a difference is, and what it has in common: the run and the channel that differ most, a factor."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

Float64s = npt.NDArray[np.float64]

MOST_CHANNELS: Final = 1024
_LEAST_SHARE: Final = 0.01
_LEAST_SHARE_OF_RUN: Final = 0.1
LEAST_QUANTA: Final = 4.0
_FEWEST_ELEMENTS: Final = 8
"""Of a channel in each run, where numbers are quantised: of fewer, single steps decide."""
_FEWEST_RUNS: Final = 5
_SURELY: Final = 1 - 1e-4 / 2
"""How sure it is that something is off to one side: it is asked of each coordinate of each keypoint."""
_LEAST: Final = 1e-3
"""Of a channel: scores below it are none, beside coordinates in pixels too."""


class Farthest(Struct, frozen=True):
    """The run or channel in which test and reference are farthest apart.

    ``index`` is its number, ``size`` the root mean square of the difference there over that of the reference there; of
    whole numbers and texts, the share of elements that differ. A reference near 0 counts as a tenth of that of all
    runs; of channels, each of which counts by itself, as a thousandth, or a hundredth of all where that is less. It is
    four quanta at least. ``beside_all``, of channels, is the largest size where a reference that is smaller than that
    of all counts as that of all.
    """

    index: int
    size: float
    beside_all: float = 0.0


def channel_sums(test: Float64s, reference: Float64s, shape: tuple[int, ...]) -> dict[int, Float64s]:
    """Of one tensor, by axis, a row for each index: squares of the difference, of the reference, elements.

    ``test`` and ``reference`` are flat and in real units, not finite values count as equal. Axes of one index, or of
    more than :data:`MOST_CHANNELS`, have no channels.

    >>> sums = channel_sums(np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0]), (2, 2))
    >>> {axis: rows.tolist() for axis, rows in sums.items()}
    {0: [[0.0, 5.0, 2.0], [1.0, 25.0, 2.0]], 1: [[0.0, 10.0, 2.0], [1.0, 20.0, 2.0]]}
    """
    axes = [axis for axis, size in enumerate(shape) if 2 <= size <= MOST_CHANNELS] if test.size else []
    if not axes:
        return {}
    both = np.isfinite(test) & np.isfinite(reference)
    if not both.all():
        test, reference = np.where(both, test, 0.0), np.where(both, reference, 0.0)
    found = {}
    with np.errstate(over="ignore"):
        sides = [side.reshape(shape) for side in (test - reference, reference)]
        for axis in axes:
            sums = [_squares_along(side, axis) for side in sides]
            found[axis] = np.stack((*sums, np.full(shape[axis], test.size / shape[axis])), axis=1)
    return found


def _squares_along(values: Float64s, axis: int) -> Float64s:
    """The sum of squares at each index of an axis."""
    before, size = math.prod(values.shape[:axis]), values.shape[axis]
    table = values.reshape(before, size, -1)
    return np.asarray(np.einsum("ijk,ijk->j", table, table))


def farthest_channels(parts: Sequence[Mapping[int, Float64s]], quantum: float) -> dict[int, Farthest]:
    """By axis, the channel with the largest relative difference over all runs; empty where there are no channels."""
    found = {}
    for axis, first in parts[0].items() if parts else ():
        rows = [part[axis] for part in parts if axis in part]
        if len(rows) < len(parts) or any(each.shape != first.shape for each in rows):
            continue
        if quantum and first[0, 2] < _FEWEST_ELEMENTS:
            continue
        sums = np.sum(rows, axis=0)
        overall = math.sqrt(sums[:, 1].sum() / sums[:, 2].sum())
        farthest = _largest(_sizes(sums, 0.0, quantum, min(_LEAST, _LEAST_SHARE * overall)))
        found[axis] = replace(farthest, beside_all=_largest(_sizes(sums, 1.0, quantum)).size)
    return found


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
        base = np.maximum(mean[:, 1], max(least_share**2 * overall, (LEAST_QUANTA * quantum) ** 2, least**2))
        relative = np.where(mean[:, 0] > 0, np.sqrt(mean[:, 0] / base), 0.0)
    relative = np.where(counted & ~np.isnan(relative), relative, 0.0)
    return np.minimum(relative, np.finfo(np.float64).max)


def _largest(sizes: Float64s) -> Farthest:
    index = int(sizes.argmax())
    return Farthest(index, float(sizes[index]))


def aside(runs: Float64s) -> Float64s:
    """By how much each column is off to one side in all ``runs``, the rows, at least; NaN where a run has nothing.

    That is the mean less Student's bound of its error; nothing for fewer than five runs.

    >>> aside(np.array([[3.0, 3.0], [3.0, -3.0]] * 4)).tolist()
    [3.0, 0.0]
    """
    from scipy import special

    known = np.isfinite(runs)
    counts = np.maximum(known.sum(axis=0), 2)
    mean = np.where(known, runs, 0.0).sum(axis=0) / counts
    variance = np.square(np.where(known, runs - mean, 0.0)).sum(axis=0) / (counts - 1)
    reach = special.stdtrit(counts - 1, _SURELY) * np.sqrt(variance / counts)
    found: Float64s = np.where(counts >= _FEWEST_RUNS, np.maximum(0.0, np.abs(mean) - reach), 0.0)
    return found


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
