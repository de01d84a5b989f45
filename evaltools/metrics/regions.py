"""Differences by part of a tensor, so that an error in one place is not lost in the sum over all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

Float64s = npt.NDArray[np.float64]

BLOCKS: Final = 64
MOST_CHANNELS: Final = 1024
_LEAST_SHARE: Final = 0.01
_LEAST_SHARE_OF_RUN: Final = 0.1
_LEAST_QUANTA: Final = 4.0
_LEAST_OF_CHANNEL: Final = 8
_FEW_COUNTED: Final = 3
_SEVERAL_ELEMENTS: Final = 8
FEW_ELEMENTS: Final = 0.001
"""Of whole numbers and texts, which have no size, a smaller share says nothing of the others."""
STEPS: Final = 255
"""A difference of no more than this part of all that the values span may be rounding's."""


class RegionSums(Struct, frozen=True, eq=False):
    """Of one tensor, sums of squares of the difference and of the reference by region, in real units.

    ``channels`` has a row for each index of the last axis, ``blocks`` one for each of 64 equal parts of the flat
    tensor; the columns are difference, reference and number of elements. Empty where a tensor has too few elements.
    ``counted``: of whole numbers that stand for themselves alone, the first two are how many differ, and how many there
    are. ``changed`` are the blocks in which several elements differ; in those of ``blank`` one side has the same number
    everywhere.
    """

    channels: Float64s
    blocks: Float64s
    counted: bool = False
    changed: tuple[int, ...] = ()
    blank: tuple[int, ...] = ()


class Farthest(Struct, frozen=True):
    """The run, channel or block in which test and reference are farthest apart.

    ``index`` is its number, ``size`` the root mean square of the difference there over that of the reference there; of
    whole numbers and texts, the share of elements that differ. A reference near 0 counts as a hundredth of all of it
    (of a run, a tenth), and as four quanta at least.
    """

    index: int
    size: float


def region_sums(test: Float64s, reference: Float64s, shape: tuple[int, ...]) -> RegionSums:
    """Sum up by region; ``test`` and ``reference`` are flat and in real units, not finite values count as equal.

    >>> region_sums(np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 2.0, 3.0, 4.0]), (2, 2)).channels.tolist()
    [[0.0, 10.0, 2.0], [1.0, 20.0, 2.0]]
    """
    nothing = np.empty((0, 3))
    if not test.size:
        return RegionSums(nothing, nothing)
    both = np.isfinite(test) & np.isfinite(reference)
    if not both.all():
        test, reference = np.where(both, test, 0.0), np.where(both, reference, 0.0)
    channels = blocks = nothing
    with np.errstate(over="ignore"):
        sides = (test - reference, reference)
        if shape and 2 <= shape[-1] <= MOST_CHANNELS:
            rows = [side.reshape(-1, shape[-1]) for side in sides]
            sums = [np.einsum("ij,ij->j", row, row) for row in rows]
            channels = np.stack((*sums, np.full(shape[-1], test.size / shape[-1])), axis=1)
        if test.size >= 2 * BLOCKS:
            starts = np.arange(BLOCKS) * test.size // BLOCKS
            sums = [np.add.reduceat(np.square(side), starts) for side in sides]
            blocks = np.stack((*sums, np.diff(starts, append=test.size).astype(np.float64)), axis=1)
    return RegionSums(channels, blocks)


def with_blank_blocks(
    sums: RegionSums, test: Float64s, reference: Float64s, errors: Float64s, quantum: float | None
) -> RegionSums:
    """The sums, with the blocks that differ, and those of them that are level on a side.

    All three are flat and finite. ``quantum`` is the size of a step, 0 of floats, None of numbers without a size.

    >>> picture = np.arange(512.0)
    >>> torn = np.where(picture < 16, 0.0, picture)
    >>> found = with_blank_blocks(region_sums(torn, picture, (512,)), torn, picture, picture - torn, 0.0)
    >>> found.changed, found.blank
    ((1,), (1,))
    """
    if test.size < _SEVERAL_ELEMENTS * BLOCKS:
        return sums
    ends = np.arange(BLOCKS + 1) * test.size // BLOCKS
    least = 0.0
    if quantum is not None:
        span = max(test.max(), reference.max()) - min(test.min(), reference.min())
        least = max(quantum, float(span) / STEPS)
    changed, blank = [], []
    for block in np.flatnonzero(np.maximum.reduceat(errors, ends[:-1]) > least).tolist():
        here = slice(ends[block], ends[block + 1])
        if np.count_nonzero(errors[here]) >= _SEVERAL_ELEMENTS:
            changed.append(block)
            if not np.ptp(test[here]) or not np.ptp(reference[here]):
                blank.append(block)
    return replace(sums, changed=tuple(changed), blank=tuple(blank))


def farthest_region(parts: Sequence[Float64s], quantum: float) -> Farthest | None:
    """The region with the largest relative difference over all runs; None where there are no regions.

    ``parts`` has the channels, or the blocks, of each run.
    """
    if not parts or any(part.shape != parts[0].shape for part in parts) or not len(parts[0]):
        return None
    return _farthest(np.sum(parts, axis=0), _LEAST_SHARE, quantum)


def count_by_region(different: npt.NDArray[np.bool_], shape: tuple[int, ...]) -> RegionSums:
    """Of a map of whole numbers, how many differ by region; none of a list with fewer than two elements a block.

    Nor are there channels of fewer than eight elements.

    >>> count_by_region(np.arange(128) == 3, (16, 8)).channels[3].tolist()
    [1.0, 16.0, 16.0]
    """
    if different.size < 2 * BLOCKS:
        return RegionSums(np.empty((0, 3)), np.empty((0, 3)), counted=True)
    is_map = bool(shape) and different.size >= _LEAST_OF_CHANNEL * shape[-1]
    sums = region_sums(different.astype(np.float64) + 1.0, np.ones(different.size), shape if is_map else ())
    return replace(sums, counted=True)


def farthest_share(parts: Sequence[Float64s]) -> Farthest | None:
    """The region of whole numbers with the largest share that differs over all runs; None where there are none.

    Three elements may differ by rounding alone, however small a region is: they do not count.
    """
    if not parts or any(part.shape != parts[0].shape for part in parts) or not len(parts[0]):
        return None
    rows = np.sum(parts, axis=0)
    shares = np.maximum(rows[:, 0] - _FEW_COUNTED, 0.0) / rows[:, 2]
    index = int(shares.argmax())
    return Farthest(index, float(shares[index]))


def farthest_run(
    squared: Sequence[float], reference: Sequence[float], counts: Sequence[int], quantum: float
) -> Farthest | None:
    """The run with the largest relative difference, from its sums of squares; None without elements."""
    sizes = run_sizes(squared, reference, counts, quantum)
    return _largest(sizes) if any(counts) else None


def run_sizes(squared: Sequence[float], reference: Sequence[float], counts: Sequence[int], quantum: float) -> Float64s:
    """The relative difference of each run, as :func:`farthest_run` compares them."""
    return _sizes(np.array([squared, reference, counts], np.float64).T, _LEAST_SHARE_OF_RUN, quantum)


def _farthest(rows: Float64s, least_share: float, quantum: float) -> Farthest | None:
    return _largest(_sizes(rows, least_share, quantum)) if (rows[:, 2] > 0).any() else None


def _sizes(rows: Float64s, least_share: float, quantum: float) -> Float64s:
    counted = rows[:, 2] > 0
    with np.errstate(all="ignore"):
        mean = rows[:, :2] / rows[:, 2:]
        overall = rows[counted, 1].sum() / rows[counted, 2].sum()
        base = np.maximum(mean[:, 1], max(least_share**2 * overall, (_LEAST_QUANTA * quantum) ** 2))
        relative = np.where(mean[:, 0] > 0, np.sqrt(mean[:, 0] / base), 0.0)
    relative = np.where(counted & ~np.isnan(relative), relative, 0.0)
    return np.minimum(relative, np.finfo(np.float64).max)


def _largest(sizes: Float64s) -> Farthest:
    index = int(sizes.argmax())
    return Farthest(index, float(sizes[index]))
