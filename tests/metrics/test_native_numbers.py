"""The native tools' numbers against loops in float32, values worked out by hand and recorded ones."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.metrics.native_numbers import NativeError, mean_error, native_percentile, shortest, summarise_errors


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


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([30, 50, 10, 40, 20], {0: 10, 5: 10, 19: 10, 20: 20, 50: 30, 95: 50, 99: 50}),
        ([10, 20, 30, 40], {50: 30}),
        ([761], {5: 761, 50: 761, 95: 761, 100: 761}),
        ([1, 3, 2], {100: 3}),
        ([], {50: 0}),
    ],
    ids=["5 * percent // 100", "the upper middle", "as printed for one run", "the largest, not the last", "none"],
)
def test_the_sample_at_a_truncated_index(values: list[float], expected: dict[int, float]) -> None:
    given = list(values)
    assert {percent: native_percentile(given, percent) for percent in expected} == expected
    assert given == values


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_percentage_outside_the_range_is_refused(percent: int) -> None:
    with pytest.raises(ValueError, match=rf"{percent} is not a percentage; use 0 to 100"):
        native_percentile([1], percent)


def test_every_float32_is_written_with_the_digits_that_numpy_prints() -> None:
    bits = np.random.default_rng(7).integers(0, 1 << 32, 20_000, dtype=np.uint32)
    values = bits.view(np.float32)
    for value in values[np.isfinite(values)]:
        assert repr(shortest(float(value))) == repr(float(str(value)))


@pytest.mark.parametrize("around", [0, 1 << 23, 1 << 24, 1 << 25, -(1 << 24)])
def test_whole_numbers_have_as_few_digits(around: int) -> None:
    for value in np.arange(around - 300, around + 300).astype(np.float32):
        assert shortest(float(value)) == float(str(value))


@pytest.mark.parametrize("value", [0.1, 1e300, -1e300, float(np.finfo(np.float32).max) * (1 + 1e-12), math.inf])
def test_what_is_no_float32_stays_as_it_is(value: float) -> None:
    assert shortest(value) == value


def test_nan_stays_nan() -> None:
    assert math.isnan(shortest(math.nan))
