"""The native benchmark's percentile against values worked out by hand and against recorded ones."""

from __future__ import annotations

import pytest

from evaltools.metrics.native_numbers import native_percentile


@pytest.mark.parametrize(
    ("percent", "expected"),
    [(0, 10), (5, 10), (19, 10), (20, 20), (50, 30), (95, 50), (99, 50)],
)
def test_the_index_is_truncated(percent: int, expected: int) -> None:
    """Of five samples the index is 5 * percent // 100: 0 up to 19 %, 1 from 20 %, 2 at 50 %, 4 from 80 %."""
    assert native_percentile([30, 50, 10, 40, 20], percent) == expected


def test_the_median_of_an_even_number_is_the_upper_middle() -> None:
    """Index 4 * 50 // 100 = 2; other definitions give 25 or 20."""
    assert native_percentile([10, 20, 30, 40], 50) == 30


def test_one_sample_is_every_percentile() -> None:
    """As printed by the native tool for one run: p5=761 median=761 p95=761."""
    assert [native_percentile([761], percent) for percent in (5, 50, 95, 100)] == [761] * 4


def test_a_hundred_percent_is_the_largest_sample_and_not_the_last() -> None:
    assert native_percentile([1, 3, 2], 100) == 3


def test_no_sample_gives_zero() -> None:
    assert native_percentile([], 50) == 0


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_percentage_outside_the_range_is_refused(percent: int) -> None:
    with pytest.raises(ValueError, match=rf"{percent} is no percentage; use 0 to 100"):
        native_percentile([1], percent)


def test_values_stay_in_their_order() -> None:
    values = [3, 1, 2]
    native_percentile(values, 50)
    assert values == [3, 1, 2]
