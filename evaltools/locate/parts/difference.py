"""How far one tensor is from another: plain functions of two arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.model.contents import Graph, Operation
from evaltools.runtime.session import Array

HALVES: Final = 0.25
"""The most that rules for rounding halves differ by on average where values have both signs alike.

Half of all values are halves. Half to even differs from the other rules in every second of them, half away from zero
differs from half up in the negative ones.
"""
ONE_SIDED: Final = 0.4
"""Between :data:`HALVES` and the half step of results that are cut off."""
_CHANCE: Final = 1e-4
_BYTES: Final = ("int8", "uint8")
_NEARLY: Final = 1e-3
"""Scales are kept in 32 bits, so that a half may be a little more or less."""


class RunDifference(Struct, frozen=True):
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


def exact_steps(graph: Graph, node: Operation, fed: Mapping[int, Array]) -> npt.NDArray[np.float64] | None:
    """What ADD or SUB of 8 bits gives in steps of its output, before it is rounded; None for other operators.

    ``fed`` are the operands that are no constants, by the number of the tensor.
    """
    if node.operator not in ("ADD", "SUB"):
        return None
    made = graph.tensors[node.outputs[0]]
    if made.dtype not in _BYTES or not made.step:
        return None
    operands = []
    for index in node.inputs:
        tensor = graph.tensors[index]
        values = tensor.real(fed[index]) if index in fed else tensor.real_constant()
        if values is None or not tensor.step:
            return None
        operands.append(values.astype(np.float64))
    first, second = operands
    total = first + second if node.operator == "ADD" else first - second
    exact: npt.NDArray[np.float64] = total / made.step + made.zero_points[0]
    return exact


def one_sided(tested: Array, reference: Array, exact: npt.NDArray[np.float64] | None = None) -> float:
    """By how many steps whole numbers are off to one side on average, without what chance explains; above 0: upwards.

    It is the mean error of all elements, or of the values that the reference has, where that is smaller: one value that
    fills most of a tensor counts once. Those at an end of their type do not count, since what lies beyond is cut off.
    It is 0 for whole numbers of more than 8 bits, of which nobody has measured what is usual. Of few values several may
    be off to the same side by chance: of *n* values in [0, 1] with a mean of :data:`HALVES` the mean exceeds that by
    sqrt(ln(1 / p) / 2n) with a probability of p (Hoeffding 1963), here 1e-4. What that is more than :data:`ONE_SIDED`
    is taken off, so that one limit does for all. Of halves, which ``exact`` shows, either neighbour is right: XNNPACK
    rounds them up, the CPU's plain kernels away from zero.

    >>> reference = np.arange(-100, 100, dtype=np.int8)
    >>> [round(one_sided(part + np.int8(1), part), 2) for part in (reference, reference[:40], reference[:8])]
    [1.0, 0.81, 0.39]
    """
    if tested.shape != reference.shape or reference.dtype.itemsize > 1:
        return 0.0
    inside = within_type(reference)
    if exact is not None and exact.shape == reference.shape:
        is_half = np.abs(exact - np.floor(exact) - 0.5) <= _NEARLY
        inside &= ~(is_half & (np.abs(tested.astype(np.float64) - exact) <= 0.5 + _NEARLY))
    if not inside.any():
        return 0.0
    values = reference[inside].astype(np.int64)
    errors = tested[inside].astype(np.int64) - values
    places = values - values.min()
    counts, sums = np.bincount(places), np.bincount(places, weights=errors)
    by_value = sums[counts > 0] / counts[counts > 0]
    of_elements, of_values = float(errors.mean()), float(by_value.mean())
    if of_elements * of_values <= 0:
        return 0.0
    by_chance = HALVES + math.sqrt(math.log(1 / _CHANCE) / (2 * by_value.size))
    least = min(abs(of_elements), abs(of_values)) - max(0.0, by_chance - ONE_SIDED)
    return math.copysign(max(0.0, least), of_elements)


def within_type(values: Array) -> npt.NDArray[np.bool_]:
    """Which whole numbers are not at an end of their type, where what lies beyond is cut off.

    >>> within_type(np.array([-128, 0, 127], np.int8)).tolist()
    [False, True, False]
    """
    ends: Any = np.iinfo(values.dtype)
    inside: npt.NDArray[np.bool_] = (values > ends.min) & (values < ends.max)
    return inside


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
