"""Figures of one pair of tensors against plain NumPy formulas and values worked out by hand, percentiles too."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics.difference import Scale, compare_tensors, count_magnitudes, merge_magnitudes

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

HALF = Scale(0.5, 10)
DENORMAL = 1e-40


def float32(*values: float) -> npt.NDArray[np.float32]:
    return np.array(values, np.float32)


def test_sums_equal_plain_formulas() -> None:
    random = np.random.default_rng(1)
    test, reference = (random.normal(size=(4, 25)).astype(np.float32) for _ in range(2))
    found = compare_tensors(test, reference)
    first, second = test.astype(float), reference.astype(float)
    errors = abs(first - second)
    assert found.sums.absolute == pytest.approx(errors.sum())
    assert found.sums.max_absolute == errors.max()
    assert found.sums.max_relative == pytest.approx((errors / abs(second)).max())
    assert found.sums.squared == pytest.approx((errors**2).sum())
    assert found.sums.test_squared == pytest.approx((first**2).sum())
    assert found.sums.reference_squared == pytest.approx((second**2).sum())
    assert found.sums.dot == pytest.approx((first * second).sum())
    assert (found.elements, found.compared, found.different) == (100, 100, 100)
    assert (found.test.low, found.test.high) == (float(test.min()), float(test.max()))
    assert (found.reference.low, found.reference.high) == (float(reference.min()), float(reference.max()))


def test_nan_and_infinity_on_one_side_are_left_out_of_the_sums_and_counted() -> None:
    found = compare_tensors(float32(np.nan, 2, -np.inf, 5), float32(1, 1, 1, np.inf))
    assert (found.elements, found.compared, found.different) == (4, 1, 4)
    assert (found.sums.absolute, found.sums.test_squared) == (1.0, 4.0)
    assert (found.test.nan, found.test.infinite, found.test.low, found.test.high) == (1, 1, 2.0, 5.0)
    assert (found.reference.nan, found.reference.infinite, found.reference.high) == (0, 1, 1.0)


def test_nan_and_infinity_on_both_sides_are_no_difference() -> None:
    values = float32(np.nan, np.inf, -np.inf, 1)
    found = compare_tensors(values, values.copy())
    assert (found.different, found.compared) == (0, 1)
    assert compare_tensors(float32(np.inf), float32(-np.inf)).different == 1


def test_nothing_but_nan_has_no_range() -> None:
    found = compare_tensors(float32(np.nan), float32(np.nan))
    assert (found.compared, found.sums.max_absolute) == (0, 0.0)
    assert math.isnan(found.test.low)


def test_denormals_that_face_ordinary_values_are_torn_on_either_side() -> None:
    found = compare_tensors(float32(DENORMAL, DENORMAL, 1, 0), float32(1, 1e-7, DENORMAL, DENORMAL))
    assert (found.never_written, found.test.denormal, found.reference.denormal) == (2, 2, 2)
    assert compare_tensors(float32(DENORMAL, 0), float32(2 * DENORMAL, 1)).never_written == 0


def test_small_float16_numbers_are_denormal_but_not_torn() -> None:
    probabilities = np.array([2e-5, 1.0], np.float16)
    found = compare_tensors(probabilities, probabilities)
    assert (found.never_written, found.test.denormal) == (0, 1)


def test_float16_is_compared_without_overflow() -> None:
    found = compare_tensors(np.array([65504], np.float16), np.array([-65504], np.float16))
    assert (found.sums.max_absolute, found.sums.squared) == (131008.0, 131008.0**2)


def test_an_all_zero_reference_has_an_infinite_relative_difference() -> None:
    assert compare_tensors(float32(0, 1), float32(0, 0)).sums.max_relative == math.inf
    assert compare_tensors(float32(0, 0), float32(0, 0)).sums.max_relative == 0.0


@pytest.mark.parametrize("scale", [None, HALF])
def test_empty_tensors_are_equal(scale: Scale | None) -> None:
    empty = np.empty((0, 3), np.uint8)
    found = compare_tensors(empty, empty, scale, scale, as_scores=True)
    assert (found.elements, found.different, found.compared, found.same_shape) == (0, 0, 0, True)
    assert (found.sums.max_absolute, found.scores) == (0.0, None)
    assert math.isnan(found.native_error)


@pytest.mark.parametrize("shape", [(2, 3), (6, 1), (5,)])
def test_other_shapes_are_not_compared(shape: tuple[int, ...]) -> None:
    found = compare_tensors(np.zeros(shape, np.float32), np.zeros(6, np.float32))
    assert (found.same_shape, found.compared, found.different, found.elements) == (False, 0, 6, 6)
    assert math.isnan(found.native_error)


def test_equally_quantised_numbers_are_counted_in_quanta() -> None:
    test, reference = np.array([[250, 7], [8, 6], [9, 9]], np.uint8), np.array([[3, 7], [7, 8], [9, 10]], np.uint8)
    found = compare_tensors(test, reference, HALF, HALF)
    assert (found.quanta, found.max_quanta, found.different) == ((2, 2, 1, 1), 247, 4)
    assert (found.sums.max_absolute, found.sums.absolute, found.sums.squared) == (123.5, 125.5, 123.5**2 + 1.5)
    assert found.native_error == pytest.approx(251 / 6)
    assert (found.test.low, found.test.high) == (-2.0, 120.0)


def test_differently_quantised_numbers_are_compared_as_real_ones() -> None:
    """(14 - 10) / 2 = 2 and 8 / 4 = 2; (10 - 10) / 2 = 0 and 4 / 4 = 1."""
    test, reference = np.array([14, 10], np.uint8), np.array([8, 4], np.uint8)
    found = compare_tensors(test, reference, HALF, Scale(0.25, 0))
    assert (found.quanta, found.different, found.sums.absolute, found.native_error) == (None, 1, 1.0, 0.5)


def test_quantised_against_float_is_compared_in_real_units() -> None:
    found = compare_tensors(np.array([14, 10], np.uint8), float32(2, 0.25), HALF)
    assert (found.quanta, found.different, found.sums.absolute) == (None, 1, 0.25)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_64_bit_numbers_that_float64_does_not_tell_apart_differ(dtype: str) -> None:
    limits = np.iinfo(dtype)
    found = compare_tensors(np.array([[limits.max, 5]], dtype), np.array([[limits.max - 1, 5]], dtype))
    assert (found.different, found.sums.absolute) == (1, 1.0)
    far = compare_tensors(np.array([limits.max, limits.min], dtype), np.array([limits.min, limits.max], dtype))
    assert (far.different, far.sums.max_absolute) == (2, 2.0**64)


def test_texts_are_equal_or_not() -> None:
    test, reference = np.array([[b"a", b"", b"caf\xc3"]], object), np.array([[b"a", b"b", b"caf\xc3"]], object)
    found = compare_tensors(test, reference)
    assert (found.elements, found.compared, found.different) == (3, 0, 1)
    assert found.test.digest != found.reference.digest
    assert compare_tensors(test, float32(1, 2, 3)[None]).different == 3


def test_complex_numbers_are_two_numbers_each() -> None:
    found = compare_tensors(np.array([1 + 2j, 3j], np.complex64), np.array([1 + 1j, 3j], np.complex64))
    assert (found.elements, found.different, found.sums.absolute, found.native_error) == (4, 1, 1.0, 0.25)


def test_real_numbers_have_no_imaginary_part() -> None:
    mixed = np.array([1 + 2j], np.complex64), float32(1)
    for test, reference in (mixed, mixed[::-1]):
        found = compare_tensors(test, reference)
        assert (found.elements, found.different, found.sums.absolute) == (2, 1, 2.0)


def test_the_digest_tells_outputs_apart_whatever_their_layout() -> None:
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = compare_tensors(np.asfortranarray(values), values + float32(0, 0, 1))
    assert found.test.digest == compare_tensors(values, values).test.digest != found.reference.digest


def test_scores_are_compared_where_asked_for() -> None:
    found = compare_tensors(np.array([[1, 9]], np.uint8), np.array([[9, 1]], np.uint8), HALF, HALF, as_scores=True)
    assert found.scores is not None
    assert (found.scores.positions, found.scores.same_best) == (1, 0)
    assert compare_tensors(float32(1), float32(2)).scores is None


_OF_ANOTHER_CPU = """
import numpy as np
from evaltools.metrics.difference import compare_tensors
values = np.random.default_rng(3).normal(size=(2, 1001)).astype(np.float32)
print(compare_tensors(values[0], values[1]).sums)
"""


def test_sums_are_the_same_on_every_kind_of_cpu() -> None:
    """OpenBLAS, which NumPy is built with here, has another order of sums for each of these."""
    told = {
        subprocess.run(
            [sys.executable, "-c", _OF_ANOTHER_CPU],
            env={**os.environ, "OPENBLAS_CORETYPE": kind},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kind in ("Prescott", "Haswell")
    }
    assert len(told) == 1


def test_quantised_int32_has_real_differences_and_raw_native_errors() -> None:
    found = compare_tensors(np.array([5], np.int32), np.array([8], np.int32), HALF, HALF)
    assert (found.quanta, found.sums.absolute, found.native_error) == (None, 1.5, 3.0)


PERCENTS = (1, 10, 50, 90, 99, 100)


def exact(values: npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]], percent: float) -> float:
    return float(np.percentile(values, percent, method="inverted_cdf"))


def test_percentiles_of_real_magnitudes_are_within_04_percent() -> None:
    values = 10.0 ** np.random.default_rng(1).uniform(-30, 30, 5000)
    counted = count_magnitudes(values, whole=False)
    for percent in PERCENTS:
        assert counted.percentile(percent) == pytest.approx(exact(values, percent), rel=0.004)


def test_percentiles_of_whole_magnitudes_are_exact() -> None:
    values = np.random.default_rng(2).geometric(0.01, 999) - 1
    counted = count_magnitudes(values, whole=True)
    assert [counted.percentile(percent) for percent in PERCENTS] == [exact(values, percent) for percent in PERCENTS]


def test_the_rank_is_that_of_the_smallest_value_that_covers_the_share() -> None:
    counted = count_magnitudes(np.array([7, 0, 0, 0]), whole=True)
    assert (counted.percentile(75), counted.percentile(75.1)) == (0.0, 7.0)


@pytest.mark.parametrize("whole", [True, False])
def test_merging_equals_counting_everything_at_once(whole: bool) -> None:
    random = np.random.default_rng(3)
    chunks: list[npt.NDArray[np.float64]] = [random.integers(0, 500, size).astype(np.float64) for size in (100, 1, 0)]
    chunks.append(random.integers(400, 900, 57).astype(np.float64))
    merged = merge_magnitudes(count_magnitudes(chunk, whole) for chunk in chunks)
    everything = count_magnitudes(np.concatenate(chunks), whole)
    assert int(merged.counts.sum()) == 158
    assert sorted(zip(merged.bins.tolist(), merged.counts.tolist(), strict=True)) == sorted(
        zip(everything.bins.tolist(), everything.counts.tolist(), strict=True)
    )
    assert [merged.percentile(percent) for percent in PERCENTS] == [everything.percentile(p) for p in PERCENTS]


def test_an_empty_part_does_not_say_what_the_others_count() -> None:
    parts = [count_magnitudes(np.empty(0), whole=False), count_magnitudes(np.array([3, 3, 5]), whole=True)]
    assert merge_magnitudes(parts).percentile(50) == 3.0
    assert merge_magnitudes(reversed(parts)).percentile(50) == 3.0


def test_nothing_has_no_percentile() -> None:
    assert math.isnan(merge_magnitudes([]).percentile(50))
    assert math.isnan(count_magnitudes(np.empty((0, 4)), whole=False).percentile(50))
