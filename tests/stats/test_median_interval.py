"""The interval of a median of times, and the ratio of rounds, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaltools.stats.latency import median_interval, rounds_ratio


def test_of_one_process_by_hand() -> None:
    """Ten batches of three in an order without correlation, and the logarithms of their medians by Student's t."""
    medians = [9.0, 2.0, 6.0, 1.0, 8.0, 3.0, 10.0, 4.0, 7.0, 5.0]
    found = median_interval([[time for middle in medians for time in (middle, 0.5, 99.0)]])
    assert found is not None
    logarithms = np.log(medians)
    low, high = stats.t.interval(0.95, 9, logarithms.mean(), stats.sem(logarithms))
    assert (found.low, found.high) == pytest.approx((np.exp(low) - 0.25, np.exp(high) + 0.25))


def test_times_that_only_rise_have_none() -> None:
    assert median_interval([list(range(1000, 1200))]) is None


def test_of_three_processes_by_hand() -> None:
    found = median_interval([[100] * 30, [110] * 30, [103] * 30])
    assert found is not None
    logarithms = np.log([100, 110, 103])
    middle, half = logarithms.mean(), 4.30265273 * logarithms.std(ddof=1) / np.sqrt(3)
    assert found.low == pytest.approx(np.exp(middle - half) - 0.5)
    assert found.high == pytest.approx(np.exp(middle + half) + 0.5)


def test_outliers_at_the_end_and_times_that_stand_still_have_an_interval() -> None:
    found = median_interval([[75] * 27 + [50_000] * 3])
    assert found is not None
    assert 0 < found.low < 75 < found.high
    steady = median_interval([[53] * 50])
    assert steady is not None
    assert steady.high - steady.low == pytest.approx(1)


def test_too_few_times_have_none() -> None:
    assert median_interval([list(range(19))]) is None
    assert median_interval([]) is None
    assert median_interval([[], []]) is None


def test_two_rounds_are_too_few() -> None:
    assert median_interval([[100] * 30, [110] * 30]) is None
    found = rounds_ratio([[100], [200]], [[202], [398]])
    assert found is not None
    assert (found.pairs, found.interval) == (2, None)


def test_a_ratio_of_rounds_does_not_feel_how_fast_a_round_was() -> None:
    found = rounds_ratio([[100], [200], [50]], [[202], [398], [101]])
    assert found is not None
    logarithms = np.log([2.02, 1.99, 2.02])
    half = stats.t.ppf(0.975, 2) * logarithms.std(ddof=1) / np.sqrt(3)
    assert found.interval is not None
    assert found.pairs == 3
    assert found.ratio == pytest.approx(np.exp(logarithms.mean()))
    assert found.interval.low == pytest.approx(np.exp(logarithms.mean() - half))
    assert found.interval.high == pytest.approx(np.exp(logarithms.mean() + half))
