"""Sample sizes against simulation and against the tests that they are for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaltools.metrics.interval import Interval
from evaltools.metrics.power import (
    examples_to_decide,
    examples_to_judge,
    examples_to_judge_figure,
    examples_to_place,
    examples_to_see,
    mcnemar_power,
)
from evaltools.metrics.proportions import PairedCounts, share_bound


@pytest.mark.parametrize(
    ("count", "drop", "flip_rate"), [(5000, 0.005, 0.01), (500, 0.02, 0.05), (300, 0.05, 0.05), (2000, 0.001, 0.04)]
)
def test_power_is_the_share_of_simulated_evaluations_that_see_the_drop(
    count: int, drop: float, flip_rate: float
) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    generator = np.random.default_rng(11)
    lost, gained = (flip_rate + drop) / 2, (flip_rate - drop) / 2
    drawn = generator.multinomial(count, [lost, gained, 1 - flip_rate], 4000)
    seen = {
        (int(a), int(b)): mcnemar([[0, int(a)], [int(b), 0]], exact=True).pvalue <= 0.05
        for a, b, _ in np.unique(drawn, axis=0)
    }
    share = np.mean([seen[int(a), int(b)] for a, b, _ in drawn])
    assert mcnemar_power(count, drop, flip_rate) == pytest.approx(share, abs=0.02)


def test_without_a_drop_the_test_errs_in_at_most_5_of_100() -> None:
    assert 0.03 < mcnemar_power(20_000, 0.0, 0.02) <= 0.05


def test_the_number_found_has_the_power_asked_for_and_clearly_fewer_have_not() -> None:
    found = examples_to_see(0.005, 0.01, power=0.9)
    assert found is not None
    assert mcnemar_power(found, 0.005, 0.01) >= 0.9
    assert mcnemar_power(int(found * 0.97), 0.005, 0.01) < 0.9


def test_with_many_flips_the_power_is_connors() -> None:
    """The normal approximation of R. J. Connor 1987, which is good to a hundredth there."""
    distance, flip_rate = 0.0003 * np.sqrt(1_900_000), 0.01
    expected = stats.norm.cdf((distance - stats.norm.ppf(0.975) * np.sqrt(flip_rate)) / np.sqrt(flip_rate - 0.0003**2))
    assert mcnemar_power(1_900_000, 0.0003, flip_rate) == pytest.approx(expected, abs=0.01)
    assert examples_to_see(0.0001, 0.2) is None
    assert 0.79 < mcnemar_power(examples_to_see(0.0005, 0.2) or 0, 0.0005, 0.2) < 0.81


@pytest.mark.parametrize(("drop", "flip_rate"), [(0.0, 0.1), (0.2, 0.1), (0.1, 1.5), (-0.1, 0.1)])
def test_rates_that_cannot_be(drop: float, flip_rate: float) -> None:
    with pytest.raises(ValueError, match="0 < drop <= flip rate <= 1"):
        examples_to_see(drop, flip_rate)


def test_the_same_question_has_the_same_number_of_examples() -> None:
    """Far from equivalence a verdict asks what the power of the test is asked."""
    assert examples_to_judge(PairedCounts(1000, 40, 25), 0.005) == examples_to_see(0.015, 0.065)


@pytest.mark.parametrize(
    ("successes", "count", "limit"), [(180, 200, 0.88), (180, 200, 0.92), (7, 10, 0.5), (19, 20, 0.94)]
)
def test_as_many_examples_as_said_place_a_share_in_80_of_100_cases(successes: int, count: int, limit: float) -> None:
    found = examples_to_place(successes, count, limit, 0.95)
    assert found is not None
    bounds = [[share_bound(number, found, 0.95, upper) for upper in (False, True)] for number in range(found + 1)]
    decided = [number for number, (low, high) in enumerate(bounds) if low >= limit or high < limit]
    assert 0.8 <= stats.binom.pmf(decided, found, successes / count).sum() < 0.86


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
