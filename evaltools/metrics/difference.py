"""How far apart two tensors are: the figures of one output of one example, which can be added over examples."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.native_numbers import mean_error
from evaltools.metrics.patterns import channel_sums
from evaltools.metrics.scores import ScoreAgreement, compare_scores

_SHIFT = 16
_HIGHEST_BIN = 1 << 16
Array = npt.NDArray[np.generic]
Float64s = npt.NDArray[np.float64]
_SMALLEST_NORMAL: Final = {2: 2.0**-14, 4: 2.0**-126, 8: 2.0**-1022}
_CLEARLY_NORMAL: Final = 1e-6
_ORDINARY_WIDTH: Final = 2


class Magnitudes(Struct, frozen=True, eq=False):
    """How many magnitudes (0 or more) fall into each bin.

    ``whole`` magnitudes have a bin per number and are exact. Others are binned by the upper 16 bits of their float32
    value, so that a bin is at most 0.8 % wide, and stand for the middle of their bin: 0.4 % off at most.
    """

    bins: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    whole: bool

    def percentile(self, percent: float) -> float:
        """The smallest magnitude such that ``percent`` % of all are not above it; NaN without any.

        >>> count_magnitudes(np.array([0, 0, 0, 2]), whole=True).percentile(75)
        0.0
        """
        total = int(self.counts.sum())
        if total == 0:
            return float("nan")
        order = np.argsort(self.bins)
        rank = int(np.searchsorted(np.cumsum(self.counts[order]), percent / 100 * total, side="left"))
        return self._magnitude(int(self.bins[order][min(rank, len(order) - 1)]))

    def _magnitude(self, index: int) -> float:
        if self.whole or index == 0:
            return float(index)
        middle = np.array([(index << _SHIFT) + (1 << (_SHIFT - 1))], np.uint32)
        return float(middle.view(np.float32)[0])


def count_magnitudes(values: npt.NDArray[Any], whole: bool) -> Magnitudes:
    """Count finite values of 0 or more; ``whole`` says that they are whole numbers, and not large."""
    indices = values.ravel()
    if not whole:
        with np.errstate(over="ignore"):
            indices = indices.astype(np.float32).view(np.uint32) >> np.uint32(_SHIFT)
    indices = indices.astype(np.int64, copy=False)
    lowest = int(indices.min(initial=_HIGHEST_BIN))
    counts = np.bincount(indices - lowest)
    bins = np.flatnonzero(counts)
    return Magnitudes(bins + lowest, counts[bins], whole)


def merge_magnitudes(parts: Iterable[Magnitudes]) -> Magnitudes:
    """Counts over several sets of the same kind; empty ones may be of any."""
    parts = list(parts)
    if not parts:
        return Magnitudes(np.empty(0, np.int64), np.empty(0, np.int64), whole=False)
    bins, places = np.unique(np.concatenate([part.bins for part in parts]), return_inverse=True)
    counts = np.zeros(len(bins), np.int64)
    np.add.at(counts, places, np.concatenate([part.counts for part in parts]))
    return Magnitudes(bins, counts, any(part.whole for part in parts))


class Scale(Struct, frozen=True):
    """The quantisation of whole numbers: ``real = (quantised - zero_point) * scale``."""

    scale: float
    zero_point: int

    def real(self, values: Array) -> Float64s:
        """The real numbers that quantised ones stand for."""
        return (values.astype(np.float64) - self.zero_point) * self.scale


class Side(Struct, frozen=True):
    """What one side's values are like, differences apart. ``low`` and ``high`` are of the finite ones.

    ``between`` counts the elements that are neither the lowest nor the highest. ``digest`` is a checksum of all bytes:
    equal for equal outputs.
    """

    nan: int
    infinite: int
    denormal: int
    low: float
    high: float
    digest: int
    between: int = 0


class DifferenceSums(Struct, frozen=True):
    """Sums and maxima over the elements that are finite on both sides, in real units.

    ``absolute`` and ``squared`` are sums of the difference, test less reference; ``max_relative`` is its largest ratio
    to the reference: infinite where that is 0 and the test is not.
    """

    absolute: float
    max_absolute: float
    max_relative: float
    squared: float
    test_squared: float
    reference_squared: float
    dot: float


class TensorDifference(Struct, frozen=True):
    """Figures of one output of one example; ``sums`` is over the ``compared`` elements, finite on both sides.

    ``same_not_finite`` counts elements that are the same infinity, or NaN, on both sides, and ``different`` those that
    are not equal, NaN being equal to NaN. ``native_error`` is in raw units.
    ``quanta`` counts elements off by 0, 1, 2 and more quanta. ``never_written`` counts denormal numbers of float32 or
    float64 that face an ordinary value (1e-6 or more): a sign of memory that was never written. ``same_shape`` is false
    where the shapes differ, and nothing is compared. ``channels`` has sums by axis and index
    (:func:`~evaltools.metrics.patterns.channel_sums`).
    ``common`` counts the elements in which whole numbers or texts of the reference have their most frequent value, 0
    where numbers have a size.
    """

    elements: int
    compared: int
    same_not_finite: int
    different: int
    native_error: float
    sums: DifferenceSums
    channels: Mapping[int, Float64s]
    magnitudes: Magnitudes
    quanta: tuple[int, int, int, int] | None
    max_quanta: int
    never_written: int
    test: Side
    reference: Side
    scores: ScoreAgreement | None = None
    same_shape: bool = True
    common: int = 0


def compare_tensors(
    test: Array,
    reference: Array,
    test_scale: Scale | None = None,
    reference_scale: Scale | None = None,
    as_scores: bool = False,
) -> TensorDifference:
    """Compare two tensors of numbers, bools or texts.

    Scales say that a side is quantised. With equal scales and types, differences are counted in quanta as well.

    >>> found = compare_tensors(np.array([1, 4], np.uint8), np.array([1, 2], np.uint8), Scale(0.5, 0), Scale(0.5, 0))
    >>> found.quanta, found.sums.max_absolute, found.native_error
    ((1, 0, 1, 0), 1.0, 1.0)
    """
    if test.shape != reference.shape:
        return _incomparable(test, reference)
    if test.dtype.kind in "OSU" or reference.dtype.kind in "OSU":
        return _compare_texts(test, reference)
    if "c" in (test.dtype.kind, reference.dtype.kind):
        test, reference = _as_pairs(test), _as_pairs(reference)
    in_quanta = test_scale is not None and test_scale == reference_scale and test.dtype == reference.dtype
    with np.errstate(all="ignore"):
        if in_quanta and test_scale is not None and test.dtype.itemsize <= _ORDINARY_WIDTH:
            return _compare_quantised(test, reference, test_scale, as_scores)
        return _compare_real(test, reference, test_scale, reference_scale, as_scores)


def _compare_quantised(test: Array, reference: Array, scale: Scale, as_scores: bool) -> TensorDifference:
    steps = np.abs(test.astype(np.int64) - reference.astype(np.int64)).ravel()
    magnitudes = count_magnitudes(steps, whole=True)
    quanta = [0, 0, 0, 0]
    for step, count in zip(magnitudes.bins.tolist(), magnitudes.counts.tolist(), strict=True):
        quanta[min(step, 3)] += count
    first, second = scale.real(test).ravel(), scale.real(reference).ravel()
    errors = steps * scale.scale
    return TensorDifference(
        elements=test.size,
        compared=test.size,
        same_not_finite=0,
        different=test.size - quanta[0],
        native_error=mean_error(test, reference),
        sums=_sums(first, second, errors),
        channels=channel_sums(first, second, test.shape),
        magnitudes=magnitudes,
        quanta=(quanta[0], quanta[1], quanta[2], quanta[3]),
        max_quanta=int(steps.max(initial=0)),
        never_written=0,
        test=_side(test, first),
        reference=_side(reference, second),
        scores=compare_scores(test, reference) if as_scores else None,
    )


def _compare_real(
    test: Array,
    reference: Array,
    test_scale: Scale | None,
    reference_scale: Scale | None,
    as_scores: bool,
) -> TensorDifference:
    first = (test_scale.real(test) if test_scale else test.astype(np.float64)).ravel()
    second = (reference_scale.real(reference) if reference_scale else reference.astype(np.float64)).ravel()
    finite = np.isfinite(first) & np.isfinite(second)
    all_finite = bool(finite.all())
    compared, base = (first, second) if all_finite else (first[finite], second[finite])
    same_units = test.dtype == reference.dtype and test_scale == reference_scale
    raw = (test, reference) if same_units else (first, second)
    is_wide = same_units and test_scale is None and test.dtype in (np.int64, np.uint64)
    errors = _exact_errors(test, reference) if is_wide else np.abs(compared - base)
    equal = int(np.count_nonzero(raw[0] == raw[1]))
    same_not_finite = 0
    is_exact = test_scale is None and reference_scale is None and not {test.dtype.kind, reference.dtype.kind} - {*"iub"}
    if not all_finite:
        both_nan = int(np.count_nonzero(np.isnan(first) & np.isnan(second)))
        equal += both_nan
        same_not_finite = both_nan + int(np.count_nonzero(np.isinf(first) & (first == second)))
    return TensorDifference(
        elements=test.size,
        compared=compared.size,
        same_not_finite=same_not_finite,
        different=test.size - equal,
        native_error=mean_error(*raw),
        sums=_sums(compared, base, errors),
        channels=channel_sums(first, second, test.shape),
        magnitudes=count_magnitudes(errors, whole=False),
        quanta=None,
        max_quanta=0,
        never_written=_never_written(test, first, second) + _never_written(reference, second, first),
        test=_side(test, first),
        reference=_side(reference, second),
        scores=compare_scores(first.reshape(test.shape), second.reshape(test.shape)) if as_scores else None,
        common=_most_frequent(reference) if is_exact else 0,
    )


def _exact_errors(test: Array, reference: Array) -> Float64s:
    """The absolute differences of whole numbers that float64 cannot represent exactly; any of them fits into uint64."""
    high, low = np.maximum(test, reference), np.minimum(test, reference)
    return (high.astype(np.uint64) - low.astype(np.uint64)).ravel().astype(np.float64)


def _sums(test: Float64s, reference: Float64s, errors: Float64s) -> DifferenceSums:
    return DifferenceSums(
        absolute=float(errors.sum()),
        max_absolute=float(errors.max(initial=0.0)),
        max_relative=_largest_relative(reference, errors),
        squared=_dot(errors, errors),
        test_squared=_dot(test, test),
        reference_squared=_dot(reference, reference),
        dot=_dot(test, reference),
    )


def _dot(first: Float64s, second: Float64s) -> float:
    """The sum of products, with the same bits on every machine. BLAS sums in another order on another kind of CPU."""
    return float(np.einsum("i,i->", first, second))


def _largest_relative(reference: Float64s, errors: Float64s) -> float:
    if not errors.any():
        return 0.0
    relative = errors / np.abs(reference)
    return float(np.fmax.reduce(relative, initial=0.0))


def _side(values: Array, real: Float64s) -> Side:
    nan = infinite = denormal = 0
    low, high = (float(real.min()), float(real.max())) if real.size else (math.nan, math.nan)
    if values.dtype.kind == "f":
        if not math.isfinite(low) or not math.isfinite(high):
            kept = real[np.isfinite(real)]
            nan = int(np.count_nonzero(np.isnan(real)))
            infinite = real.size - kept.size - nan
            low, high = (float(kept.min()), float(kept.max())) if kept.size else (math.nan, math.nan)
        small = _denormal(values, real)
        denormal = 0 if small is None else int(np.count_nonzero(small))
    between = int(np.count_nonzero((real > low) & (real < high)))
    return Side(nan, infinite, denormal, low, high, zlib.crc32(_bytes(values)), between)


def _bytes(values: Array) -> memoryview | bytes:
    return np.ascontiguousarray(values).reshape(-1).view(np.uint8).data if values.size else b""


def _denormal(values: Array, real: Float64s) -> npt.NDArray[np.bool_] | None:
    """A mask of the elements that are denormal; None where none is."""
    small: npt.NDArray[np.bool_] = np.abs(real) < _SMALLEST_NORMAL[values.dtype.itemsize]
    return small & (real != 0) if small.any() else None


def _never_written(values: Array, real: Float64s, other: Float64s) -> int:
    """Count denormal numbers that face an ordinary value.

    float16 has none: its denormals are ordinary values (up to 6e-5).
    """
    if values.dtype.kind != "f" or values.dtype.itemsize <= _ORDINARY_WIDTH:
        return 0
    denormal = _denormal(values, real)
    return 0 if denormal is None else int(np.count_nonzero(denormal & (np.abs(other) >= _CLEARLY_NORMAL)))


def _most_frequent(values: Array) -> int:
    """How many elements have the most frequent value."""
    if values.dtype.kind == "O":
        return max(Counter(values.ravel().tolist()).values(), default=0)
    return int(np.unique(values, return_counts=True)[1].max(initial=0))


def _compare_texts(test: Array, reference: Array) -> TensorDifference:
    different = int(np.count_nonzero(test.astype(object) != reference.astype(object)))
    common = _most_frequent(reference.astype(object))
    return _without_numbers(test, reference, different, same_shape=True, common=common)


def _incomparable(test: Array, reference: Array) -> TensorDifference:
    return _without_numbers(test, reference, max(test.size, reference.size), same_shape=False)


def _without_numbers(
    test: Array, reference: Array, different: int, same_shape: bool, common: int = 0
) -> TensorDifference:
    nothing = np.empty(0)
    return TensorDifference(
        elements=max(test.size, reference.size),
        compared=0,
        same_not_finite=0,
        different=different,
        native_error=math.nan,
        sums=_sums(nothing, nothing, nothing),
        channels=channel_sums(nothing, nothing, ()),
        magnitudes=count_magnitudes(nothing, whole=False),
        quanta=None,
        max_quanta=0,
        never_written=0,
        test=_nameless_side(test),
        reference=_nameless_side(reference),
        same_shape=same_shape,
        common=common,
    )


def _nameless_side(values: Array) -> Side:
    content: Any = repr(values.tolist()).encode() if values.dtype.kind in "OSU" else values.tobytes()
    return Side(0, 0, 0, math.nan, math.nan, zlib.crc32(content))


def _as_pairs(values: Array) -> Array:
    """Complex numbers as real and imaginary parts, in a last axis of two; real ones have no imaginary part."""
    wide = np.ascontiguousarray(values if values.dtype.kind == "c" else values.astype(np.complex128))
    return wide.view(np.dtype(f"f{wide.dtype.itemsize // 2}")).reshape(*values.shape, 2)
