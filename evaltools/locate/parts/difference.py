"""How far one tensor is from another: plain functions of two arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaltools.runtime.session import Array


@dataclass(frozen=True)
class RunDifference:
    """Of one tensor in one run: the largest difference of an element, and root mean squares.

    ``largest`` is infinite where one side has NaN or infinity and the other has not, and where the shapes differ;
    ``not_finite`` tells that it is the tested side that has it.
    """

    largest: float
    error_rms: float
    reference_rms: float
    magnitude: float
    not_finite: bool = False


def difference(tested: Array, reference: Array) -> RunDifference:
    """Compare two arrays of numbers or booleans, element by element, in the numbers that stand in them.

    Elements that are the same NaN or infinity on both sides do not count.

    >>> difference(np.array([1.0, 2.5], np.float32), np.array([1.0, 2.0], np.float32)).largest
    0.5
    >>> difference(np.array([-128], np.int8), np.array([127], np.int8)).largest
    255.0
    """
    if tested.shape != reference.shape:
        return RunDifference(math.inf, math.inf, 0.0, 0.0)
    own, other = tested.astype(np.float64), reference.astype(np.float64)
    finite = np.isfinite(own) & np.isfinite(other)
    same = finite | (own == other) | (np.isnan(own) & np.isnan(other))
    values = other[finite]
    errors = np.abs(own[finite] - values)
    magnitude = float(np.abs(values).max(initial=0.0))
    reference_rms = _rms(values)
    if not same.all():
        return RunDifference(math.inf, math.inf, reference_rms, magnitude, bool((~np.isfinite(own) & ~same).any()))
    return RunDifference(float(errors.max(initial=0.0)), _rms(errors), reference_rms, magnitude)


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


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if values.size else 0.0
