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
_MOST_COUNTED: Final = 16.0
_BYTES: Final = 256
_FEWEST_VALUES: Final = 12
_SURE: Final = 3.0
"""Standard errors of a mean."""


class RunOff(Struct, frozen=True):
    """One tensor in one run: the ``largest`` difference of an element, and sums of squares over ``count`` elements.

    ``largest`` and ``squared`` are infinite where one side has NaN or infinity and the other has not, and where the
    shapes differ; ``not_finite`` says that it is the tested side that has it. ``magnitude`` is the largest value of
    the reference. ``by_value`` has :func:`errors_by_value` of bytes.
    """

    largest: float
    squared: float
    reference_squared: float
    count: int
    magnitude: float
    not_finite: bool = False
    by_value: Array | None = None

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


def errors_by_value(tested: Array, reference: Array) -> Array:
    """How often a tensor of bytes has each of its 256 values, and how many steps others are from it in all: [2, 256].

    Those at an end of the type are left out, since what lies beyond is cut off.
    """
    ends = np.iinfo(reference.dtype.name)
    values, others = reference.astype(np.int64).ravel() - ends.min, tested.astype(np.int64).ravel() - ends.min
    inside = (values > 0) & (values < ends.max - ends.min)
    values, errors = values[inside], others[inside] - values[inside]
    return np.stack([np.bincount(values, minlength=_BYTES), np.bincount(values, errors, minlength=_BYTES)])


def bias(found: Sequence[Array]) -> float:
    """By how many steps values are off to one side on average, at least, from :func:`errors_by_value` of other inputs.

    That is the mean less three of its standard errors. A value that fills most of a tensor counts as one that it has 16
    times, and fewer than twelve different ones say nothing.

    >>> reference = np.arange(-100, 100, dtype=np.int8)
    >>> either_side = np.tile(np.array([1, 0, -1, 0], np.int8), 50)
    >>> for errors in (np.int8(1), reference % 2, either_side):
    ...     print(round(bias([errors_by_value(reference + errors, reference)]), 2))
    1.0
    0.39
    0.0
    """
    counts, errors = np.sum(found, axis=0) if found else np.zeros((2, 1))
    means = errors[counts > 0] / counts[counts > 0]
    if means.size < _FEWEST_VALUES:
        return 0.0
    weights = np.minimum(counts[counts > 0], _MOST_COUNTED)
    weights /= weights.sum()
    mean = float(weights @ means)
    return max(0.0, abs(mean) - _SURE * math.sqrt(float(np.square(weights) @ np.square(means - mean))))


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
