"""The native tool's error figures against loops in float32 and values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.metrics.native_numbers import NativeError, mean_error, summarise_errors


def test_unsigned_numbers_do_not_wrap_around() -> None:
    assert mean_error(np.array([250, 3], np.uint8), np.array([3, 250], np.uint8)) == 247.0


def test_the_sum_is_taken_one_by_one_in_float32() -> None:
    random = np.random.default_rng(1)
    test, reference = (random.normal(size=1000).astype(np.float32) for _ in range(2))
    total = np.float32(0)
    for first, second in zip(test, reference, strict=True):
        total = total + abs(first - second)
    assert mean_error(test.reshape(10, 100), reference.reshape(10, 100)) == float(total / np.float32(1000))


def test_small_errors_vanish_behind_a_large_one() -> None:
    """Float32 numbers near 1e8 are 8 apart: adding 1 changes nothing."""
    errors = np.array([1e8] + [1.0] * 15, np.float32)
    assert mean_error(errors, np.zeros(16, np.float32)) == 1e8 / 16


def test_whole_numbers_beyond_float32_lose_their_last_digits() -> None:
    assert mean_error(np.array([2**24 + 1, 7], np.int32), np.array([2**24, 5], np.int32)) == 1.0
    extremes = np.array([np.iinfo(np.int64).max]), np.array([np.iinfo(np.int64).min])
    assert mean_error(*extremes) == 2.0**64


def test_no_element_has_no_mean() -> None:
    assert math.isnan(mean_error(np.empty((0, 3), np.float32), np.empty((0, 3), np.float32)))


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_nan_and_infinity_spread_without_a_warning() -> None:
    one = np.array([1.0, 1.0], np.float32)
    assert math.isnan(mean_error(np.array([1.0, np.nan], np.float32), one))
    assert mean_error(np.array([1.0, -np.inf], np.float32), one) == math.inf
    infinite = np.array([np.inf, 1.0], np.float32)
    assert math.isnan(mean_error(infinite, infinite))


def test_deviation_is_that_of_the_population_of_runs() -> None:
    """Mean 2.5, mean square 7.5, variance 1.25."""
    expected = NativeError(2.5, float(str(np.sqrt(np.float32(1.25)))), 1.0, 4.0)
    assert summarise_errors([1.0, 2.0, 3.0, 4.0]) == expected


def test_the_average_sums_in_float32() -> None:
    assert summarise_errors([2.0**24] + [1.0] * 3).avg_error == 2.0**24 / 4


def test_a_variance_that_rounds_below_zero_is_nan_only_in_the_native_tool() -> None:
    """In float32 the two add up to twice the larger one: the squared average is above the mean of the squares."""
    tenth = np.float32(0.1)
    errors = [float(tenth), float(np.nextafter(tenth, np.float32(1)))]
    average = float(np.float32(errors[0]) + np.float32(errors[1])) / 2
    assert average**2 > (errors[0] ** 2 + errors[1] ** 2) / 2
    assert summarise_errors(errors, native=True).std_dev is None
    assert summarise_errors(errors).std_dev == 0.0


def test_a_run_that_is_no_number_leaves_no_average() -> None:
    nothing = NativeError(None, None, None, None)
    assert (summarise_errors([1.0, math.nan]), summarise_errors([math.nan, 1.0])) == (nothing, nothing)
    assert summarise_errors([1.0, math.inf]) == NativeError(None, None, 1.0, None)
