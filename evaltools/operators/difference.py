"""How far one tensor is from another in one run, and in all runs as the verdict rule counts them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.metrics.patterns import run_sizes
from evaltools.runtime.session import Array

_QUANTUM: Final = 1.0
_NEARLY_ALL: Final = 0.9
"""Steps on average: rules for rounding make 0.67 at most, of multiples of a third."""
_FEWEST_VALUES: Final = 12


class RunOff(Struct, frozen=True):
    """One tensor in one run: the ``largest`` difference of an element, and sums of squares over ``count`` elements.

    ``largest`` and ``squared`` are infinite where one side has NaN or infinity and the other has not, and where the
    shapes differ; ``not_finite`` says that it is the tested side that has it. ``magnitude`` is the largest value of
    the reference. ``is_shifted``: nearly all bytes are a step off to the same side.
    """

    largest: float
    squared: float
    reference_squared: float
    count: int
    magnitude: float
    not_finite: bool = False
    is_shifted: bool = False

    @property
    def rms(self) -> tuple[float, float]:
        """Root mean squares of the difference and of the reference."""
        count = max(1, self.count)
        return math.sqrt(self.squared / count), math.sqrt(self.reference_squared / count)


def difference(tested: Array, reference: Array, zero_point: float = 0.0) -> RunOff:
    """Compare two arrays of numbers or booleans, element by element; values count from the ``zero_point``.

    Elements that are the same NaN or infinity on both sides do not count.

    >>> difference(np.array([1.0, 2.5], np.float32), np.array([1.0, 2.0], np.float32)).largest
    0.5
    >>> difference(np.array([-128], np.int8), np.array([127], np.int8)).largest
    255.0
    """
    if tested.shape != reference.shape:
        return RunOff(math.inf, math.inf, 0.0, max(1, reference.size), 0.0)
    own, other = tested.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(own) & np.isfinite(other)
    same = finite | (own == other) | (np.isnan(own) & np.isnan(other))
    values = other[finite]
    errors = own[finite] - values
    magnitude = float(np.abs(values).max(initial=0.0))
    reference_squared = float(np.square(values - zero_point).sum())
    count = int(finite.sum())
    if not same.all():
        not_finite = bool((~np.isfinite(own) & ~same).any())
        return RunOff(math.inf, math.inf, reference_squared, max(1, count), magnitude, not_finite)
    largest = float(np.abs(errors).max(initial=0.0))
    return RunOff(largest, float(np.square(errors).sum()), reference_squared, count, magnitude)


def is_shifted(tested: Array, reference: Array) -> bool:
    """Whether bytes are a step off to one side for nearly every value that the reference has: no rule for rounding.

    A value that fills most of a tensor counts once. Those at an end of their type do not, since what lies beyond is cut
    off.

    >>> reference = np.arange(-100, 100, dtype=np.int8)
    >>> is_shifted(reference + np.int8(1), reference), is_shifted(reference + reference % 2, reference)
    (True, False)
    """
    if tested.shape != reference.shape or reference.dtype.name not in ("int8", "uint8"):
        return False
    ends = np.iinfo(reference.dtype.name)
    values, others = reference.astype(np.int64) - ends.min, tested.astype(np.int64) - ends.min
    inside = (values > 0) & (values < ends.max - ends.min)
    values, errors = values[inside], others[inside] - values[inside]
    counts, sums = np.bincount(values, minlength=1), np.bincount(values, weights=errors, minlength=1)
    means = sums[counts > 0] / counts[counts > 0]
    return means.size >= _FEWEST_VALUES and abs(float(means.mean())) > _NEARLY_ALL


def exact_difference(tested: Array, reference: Array) -> RunOff:
    """The same of whole numbers that stand for nothing else, as indices: of these the share that differs counts.

    >>> off = exact_difference(np.array([1, 2, 9, 4]), np.array([1, 2, 3, 4]))
    >>> off.largest, sizes([off], 0.0)
    (6.0, [0.25])
    """
    off = difference(tested, reference)
    if not math.isfinite(off.squared) or not off.count:
        return off
    different = int(np.count_nonzero(tested != reference))
    squared = different**2 / off.count
    return RunOff(off.largest, squared, float(off.count), off.count, off.magnitude)


def sizes(runs: Sequence[RunOff], quantum: float) -> list[float]:
    """The difference of each run as the verdict rule counts it: relative RMS, infinite where there is none.

    ``quantum`` is 1 for quantised tensors, which are counted in steps, else 0.
    """
    squared, reference = [run.squared for run in runs], [run.reference_squared for run in runs]
    found = run_sizes(squared, reference, [run.count for run in runs], quantum).tolist()
    return [size if math.isfinite(run.squared) else math.inf for size, run in zip(found, runs, strict=True)]


def size_beyond_a_quantum(runs: Sequence[RunOff], in_steps: bool) -> float:
    """The largest of :func:`sizes`; nothing where no element of a quantised tensor is more than one step off."""
    if in_steps and all(run.largest <= _QUANTUM for run in runs):
        return 0.0
    return max(sizes(runs, _QUANTUM if in_steps else 0.0), default=0.0)


def is_rounded(values: Array, precision: str) -> bool:
    """Whether all values are numbers of a lower precision: ``fp16`` or ``bf16``.

    >>> is_rounded(np.array([0.1], np.float32), "fp16"), is_rounded(np.float32([0.5, 3.0]), "bf16")
    (False, True)
    """
    if values.dtype != np.float32 or not values.size:
        return False
    if precision == "fp16":
        with np.errstate(over="ignore"):
            return bool(np.array_equal(values.astype(np.float16).astype(np.float32), values, equal_nan=True))
    return not np.any(np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFF))
