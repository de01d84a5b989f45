"""What in a difference rounding does not do: errors in one place, tensors moved or mirrored, a factor or an offset."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Literal

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
Displacement = Literal["none", "near", "exact"]
Array = npt.NDArray[Any]
_LEAST_DIFFERENT: Final = 8
"""Of fewer elements, chance may make the neighbours' alike."""
_SAMPLED: Final = 1024
_MUCH_LESS: Final = 1 / 16
_SHORT: Final = 2
"""Of an axis as short, moving by one place leaves half of the elements at most."""


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


def displacement(test: Array, reference: Array, shape: tuple[int, ...]) -> Displacement:
    """Whether the test is the reference, one element or one place of an axis further or before, or mirrored in an axis.

    ``test`` and ``reference`` are flat. ``exact``: moved, all elements are equal; ``near``: the squared difference is
    a sixteenth at most. None with fewer than eight elements that differ.

    >>> picture = np.arange(16.0) ** 2
    >>> displacement(np.roll(picture, 1), picture, (4, 4)), displacement(picture + 1, picture, (4, 4))
    ('exact', 'none')
    """
    places = np.flatnonzero(test != reference)
    if places.size < _LEAST_DIFFERENT:
        return "none"
    some = places[:: -(-places.size // _SAMPLED)]
    found: Displacement = "none"
    for source in _sources(shape, test.size):
        if _left_over(test, reference, some, source) > _MUCH_LESS:
            continue
        everywhere = np.arange(test.size)
        left_over = _left_over(test, reference, everywhere, source)
        if left_over == 0:
            return "exact"
        if left_over <= _MUCH_LESS:
            found = "near"
    return found


def _left_over(test: Array, reference: Array, places: Array, source: Callable[[Array], Array]) -> float:
    """The squared difference with the moved reference over that with the reference; places moved out of it are left."""
    origins = source(places)
    inside = origins >= 0
    places, origins = places[inside], origins[inside]
    before, after = (np.square(test[places] - reference[taken]).sum() for taken in (places, origins))
    return float(after / before) if before else 1.0


def _sources(shape: tuple[int, ...], size: int) -> list[Callable[[Array], Array]]:
    """For each way to move a tensor: where the element at each flat place comes from, below 0 if from outside."""
    found = [_along(1, size, step) for step in (-1, 1)]
    stride = 1
    for length in reversed(shape):
        if length > 1:
            found.append(partial(_mirrored, stride=stride, length=length))
        if length > _SHORT and length < size:
            found += [_along(stride, length, step) for step in (-1, 1)]
        stride *= length
    return found


def _along(stride: int, length: int, step: int) -> Callable[[Array], Array]:
    def source(places: Array) -> Array:
        position = places // stride % length + step
        return np.where((position >= 0) & (position < length), places + step * stride, -1)

    return source


def _mirrored(places: Array, stride: int, length: int) -> Array:
    position = places // stride % length
    origins: Array = places + (length - 1 - 2 * position) * stride
    return origins


class Systematic(Struct, frozen=True):
    """A part of the difference that is alike in all elements, relative to the root mean square of the reference.

    ``value`` is that of all runs together, ``of_runs`` the root mean square of the same of each run: what it may come
    to in other runs where ``value`` is small by chance.
    """

    value: float
    of_runs: float


def gain(dots: Sequence[float], squares: Sequence[float]) -> Systematic | None:
    """The factor, less 1, by which the reference fits the test best (least squares), from sums by run.

    ``dots`` are sums of test times reference, ``squares`` of the reference's squares. None where these are 0.

    >>> gain([1.5, 6.0], [1.0, 4.0])
    Systematic(value=0.5, of_runs=0.5830951894845301)
    """
    total, excess = sum(squares), [dot - square for dot, square in zip(dots, squares, strict=True)]
    if not total or not math.isfinite(total) or not math.isfinite(sum(excess)):
        return None
    return Systematic(sum(excess) / total, math.hypot(*excess) * math.sqrt(len(excess)) / total)


def offset(errors: Sequence[float], counts: Sequence[int], squares: Sequence[float]) -> Systematic | None:
    """The mean of the difference, from sums of it (test less reference) and numbers of elements by run.

    >>> offset([2.0, 2.0], [4, 4], [16.0, 16.0])
    Systematic(value=0.25, of_runs=0.25)
    """
    count, total = sum(counts), sum(squares)
    if not count or not total or not math.isfinite(total) or not math.isfinite(sum(errors)):
        return None
    size = math.sqrt(total / count)
    means = [error / elements for error, elements in zip(errors, counts, strict=True) if elements]
    return Systematic(sum(errors) / count / size, math.hypot(*means) / math.sqrt(len(means)) / size)
