"""Sample sizes against simulation and against the tests that they are for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaltools.metrics.interval import Interval
from evaltools.metrics.power import (
    chance_to_decide,
    examples_to_decide,
    examples_to_judge_figure,
    examples_to_keep,
)
from evaltools.metrics.proportions import PairedCounts, change_bound


@pytest.mark.parametrize(("limit", "flip_rate"), [(0.01, 0.05), (0.02, 0.0)])
def test_a_plan_is_what_a_gate_decides_of_simulated_evaluations(limit: float, flip_rate: float) -> None:
    """The bounds of a gate on evaluations that are drawn: as many as said decide in 80 of 100, clearly fewer do not."""
    found = examples_to_keep(limit, flip_rate)
    assert found is not None
    generator = np.random.default_rng(11)
    for count, least, most in ((found, 0.77, 0.87 if flip_rate else 1.0), (int(found * 0.7), 0.0, 0.77)):
        drawn = generator.multinomial(count, [flip_rate / 2, flip_rate / 2, 1 - flip_rate], 2000)
        kinds, numbers = np.unique(drawn[:, :2], axis=0, return_counts=True)
        decided = [
            -change_bound(counts, 0.95, upper=False) <= limit or -change_bound(counts, 0.95, upper=True) > limit
            for counts in (PairedCounts(count, int(lost), int(gained)) for lost, gained in kinds)
        ]
        share = float(np.sum(numbers[decided]) / 2000)
        assert least <= share <= most
        assert chance_to_decide(count, flip_rate / 2, flip_rate / 2, limit) == pytest.approx(share, abs=0.03)


def test_a_plan_and_what_an_inconclusive_gate_says_are_one_number() -> None:
    assert examples_to_keep(0.005, 0.01) == examples_to_decide(PairedCounts(200, 1, 1), 0.005) == 2708
    assert examples_to_keep(0.0001, 0.2) is None


def test_a_drop_on_the_limit_is_never_decided() -> None:
    assert examples_to_decide(PairedCounts(200, 2, 0), 0.01) is None
    assert examples_to_decide(PairedCounts(0, 0, 0), 0.01) is None


def test_the_first_number_where_nothing_flipped() -> None:
    """Without a flip the bound is exact, 0.95 = 1 - (1 - limit)^n."""
    assert examples_to_decide(PairedCounts(10, 0, 0), 0.005) == int(np.ceil(np.log(0.05) / np.log(1 - 0.005)))


@pytest.mark.parametrize(("shift", "margin"), [(0.0, 0.1), (0.08, 0.02), (0.03, 0.06)])
def test_as_many_examples_as_said_judge_a_mean_in_80_of_100_cases(shift: float, margin: float) -> None:
    """Of normal scores, by Student's interval."""
    pilot = Interval(shift - 1.959964 / 10, shift + 1.959964 / 10)
    needed = examples_to_judge_figure(shift, pilot, margin, 100)
    assert needed is not None
    drawn = np.random.default_rng(12).normal(shift, 1.0, (1500, needed))
    means, errors = drawn.mean(axis=1), drawn.std(axis=1, ddof=1) / np.sqrt(needed)
    reach = stats.t.ppf(0.975, needed - 1) * errors
    decided = (np.abs(means) > reach) | (np.abs(means) + reach <= margin)
    assert decided.mean() == pytest.approx(0.8, abs=0.03)
    more = examples_to_judge_figure(shift, pilot, margin, 100, alpha=0.01)
    assert more is not None
    assert more >= needed


def test_a_figure_that_does_not_vary_is_decided_by_no_number() -> None:
    assert examples_to_judge_figure(0.0, Interval(0.0, 0.0), 0.01, 100) is None
