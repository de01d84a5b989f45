"""Bounds from draws: trusted only where many examples differ."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evaltools.stats.coco_bootstrap import percentile_interval
from evaltools.stats.proportions import PairedCounts, change_bound
from evaltools.stats.resampled import FEWEST_EXAMPLES, drawn_bound


def test_with_many_differences_it_is_the_percentile() -> None:
    draws = np.random.default_rng(1).normal(-0.01, 0.004, 1000)
    interval = percentile_interval(draws, 0.9)
    assert drawn_bound(draws.tolist(), 300, 0.95, upper=True) == interval.high
    assert drawn_bound(draws.tolist(), 300, 0.95, upper=False) == interval.low


def test_where_few_examples_differ_others_are_allowed_for() -> None:
    generator = np.random.default_rng(2)
    draws = (-0.02 * generator.poisson(2, 1000)).tolist()
    unseen = change_bound(PairedCounts(100, 0, 0), 0.95, upper=True)
    assert drawn_bound(draws, 100, 0.95, upper=True) == unseen > 0
    assert drawn_bound(draws, 100, 0.95, upper=False) == percentile_interval(np.array(draws), 0.9).low < -unseen


def test_too_few_examples_or_draws_say_nothing() -> None:
    assert math.isnan(drawn_bound([0.1] * 1000, FEWEST_EXAMPLES - 1, 0.95, upper=True))
    assert math.isnan(drawn_bound([], 500, 0.95, upper=True))


@pytest.mark.parametrize(("pictures", "rate"), [(94, 0.01), (100, 0.02), (50, 0.02), (300, 0.03)])
def test_a_drop_in_few_examples_is_rarely_ruled_out(pictures: int, rate: float) -> None:
    """A share ``rate`` of all examples loses its figure; a bound above half of that drop rules it out wrongly."""
    generator = np.random.default_rng(3)
    wrong = 0
    for _ in range(300):
        losses = generator.random(pictures) < rate
        draws = -generator.binomial(pictures, losses.mean(), 500) / pictures
        wrong += drawn_bound(draws.tolist(), pictures, 0.95, upper=False) > -rate / 2
    assert wrong / 300 < 0.1
    assert stats.binom.cdf(0, pictures, rate) < 0.5
