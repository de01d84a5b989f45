"""Bounds from draws: as wide as the number of examples that differ allows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from evaltools.metrics.proportions import share_bound
from evaltools.metrics.resampled import (
    FEWEST_EXAMPLES,
    ResampledChange,
    differing_examples,
    resample_weights,
    resampled_change,
)


def change_of(influences: npt.NDArray[np.float64], draws: int = 1000) -> ResampledChange:
    """A figure that each example changes by so much."""
    weights = resample_weights(len(influences), draws, 3)
    differences = weights @ influences
    differing = differing_examples(weights, differences)
    return ResampledChange(float(influences.sum()), differences.tolist(), len(influences), differing)


def test_with_many_differences_it_is_nearly_the_percentile() -> None:
    found = change_of(np.random.default_rng(1).normal(-0.01, 0.04, 300) / 300)
    low, high = np.quantile(found.differences, [0.05, 0.95])
    assert found.bound(0.95, upper=True) == pytest.approx(high, abs=0.0005)
    assert found.bound(0.95, upper=False) == pytest.approx(low, abs=0.0005)


@pytest.mark.parametrize("few", [1, 3, 6, 12, 20])
def test_examples_that_differ_are_counted(few: int) -> None:
    influences = np.zeros(400)
    influences[:few] = np.where(np.arange(few) % 3 == 0, 1, -1) / 400
    assert change_of(influences).differing == pytest.approx(few, rel=0.25)


def test_many_that_differ_are_more_than_twenty() -> None:
    assert change_of(np.random.default_rng(1).normal(0, 1, 2000)).differing > 40


@pytest.mark.parametrize("few", [1, 2, 3, 4])
def test_few_losses_have_the_exact_bound_of_their_share(few: int) -> None:
    found = change_of(np.where(np.arange(400) < few, -1 / 400, 0.0))
    exact = stats.beta.ppf(0.95, few + 1, 400 - few)
    assert 0.9 * exact < -found.bound(0.95, upper=False) < 1.12 * exact
    assert found.bound(0.95, upper=True) >= share_bound(0, 400, 0.95, upper=True) > 0


def test_without_a_difference_it_is_the_bound_of_as_many_examples_without_a_flip() -> None:
    found = change_of(np.zeros(100))
    unseen = share_bound(0, 100, 0.95, upper=True)
    assert found.bound(0.95, upper=False) == pytest.approx(-unseen)
    assert found.bound(0.95, upper=True) == pytest.approx(unseen)
    assert found.p_value() == 1.0


def test_too_few_examples_or_draws_say_nothing() -> None:
    assert math.isnan(ResampledChange(0.1, [0.1] * 1000, FEWEST_EXAMPLES - 1, 20).bound(0.95, upper=True))
    assert math.isnan(ResampledChange(0.1, [], 500, 20).bound(0.95, upper=True))


def test_draws_that_are_not_the_same_are_not_paired() -> None:
    assert resampled_change([0.1, 0.2], [0.3], 0.1, 100) is None
    assert resampled_change([None, 0.2], [0.3, None], 0.1, 100) is None
    found = resampled_change([0.1, None, 0.2], [0.3, 0.4, None], 0.2, 100)
    assert found is not None
    assert list(found.differences) == pytest.approx([0.2])


def test_the_p_value_is_where_the_interval_leaves_no_change() -> None:
    noise = np.random.default_rng(4).normal(0, 1, 300)
    found = change_of((noise - noise.mean() - 0.12) / 300)
    p_value = found.p_value()
    assert 0.01 < p_value < 0.5
    assert found.bound(1 - 0.45 * p_value, upper=True) > 0 > found.bound(1 - 0.55 * p_value, upper=True)


def test_as_many_examples_as_said_decide_in_80_of_100_cases() -> None:
    found = change_of(np.random.default_rng(5).normal(-0.02, 0.1, 300) / 300)
    needed = found.examples_to_decide(limit=0.03, confidence=0.95)
    assert needed is not None
    deviation = np.std(found.differences) * np.sqrt(300 / needed)
    reach = (found.change - found.bound(0.95, upper=False)) * np.sqrt(300 / needed)
    means = np.random.default_rng(8).normal(found.change, deviation, 4000)
    assert np.mean(means - reach >= -0.03) == pytest.approx(0.8, abs=0.03)
    assert found.examples_to_decide(limit=-found.change, confidence=0.95) is None


def test_the_percentile_counts_from_either_end_of_one_more_than_the_draws() -> None:
    """Cubes lie so far out that the percentile is the outer bound; the 10th of 999 has 1 % of them beyond it."""
    draws = [(place / 500) ** 3 for place in range(-499, 500)]
    found = ResampledChange(0.0, draws, 5000, differing=1e9)
    confidence = 1 - 10.005 / 1000
    assert stats.norm.ppf(confidence) * np.std(draws, ddof=1) < (490 / 500) ** 3
    assert found.bound(confidence, upper=True) == pytest.approx((490 / 500) ** 3)
    assert found.bound(confidence, upper=False) == pytest.approx(-((490 / 500) ** 3))
