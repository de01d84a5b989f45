"""Means and their changes: independent implementations, and how often the interval holds the truth."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, stats

from evaltools.metrics.bounds_of_means import guaranteed_bound, skewed_t_bound
from evaltools.metrics.means import MeanChange, mean_change, mean_of_scores, seen_share
from evaltools.metrics.proportions import PairedCounts, change_bound, change_interval, share_bound

Floats = npt.NDArray[np.float64]


def symmetric(values: Floats) -> Floats:
    """The values and their mirror images: no skewness."""
    return np.concatenate([values, 2 * values.mean() - values])


def hall(values: Floats, share: float) -> float:
    """The bound of a mean at a quantile of t, by solving Hall's transformation as he writes it."""
    count, spread = len(values), values.std(ddof=1)
    skewness = stats.skew(values)
    quantile = stats.t.ppf(share, count - 1)

    def excess(mean: float) -> float:
        score = (values.mean() - mean) / spread
        found = score + skewness * score**2 / 3 + skewness**2 * score**3 / 27 + skewness / (6 * count)
        return float(math.sqrt(count) * found - quantile)

    reach = 20 * spread / math.sqrt(count)
    return float(optimize.brentq(excess, values.mean() - reach, values.mean() + reach))


def test_a_change_without_skewness_has_the_interval_of_the_paired_t_test() -> None:
    chance = np.random.default_rng(1)
    before, differences = chance.random(80), symmetric(chance.normal(2.83, 1.0, 40))
    found = mean_change(before, before + differences).interval()
    expected = stats.ttest_rel(before + differences, before).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_a_skewed_mean_has_the_outer_one_of_t_and_halls_bound() -> None:
    values = -np.random.default_rng(2).exponential(1.0, 60)
    found = mean_of_scores(float(values.mean()), values).interval()
    assert found is not None
    low, high = stats.t.interval(0.95, 59, values.mean(), stats.sem(values))
    assert found.low == pytest.approx(hall(values, 0.975), rel=1e-6)
    assert found.low < low
    assert found.high == pytest.approx(high)


@pytest.mark.parametrize("upper", [False, True])
def test_the_lean_of_a_bound_turns_with_the_values(upper: bool) -> None:
    found = skewed_t_bound(1.0, 2.0, 1.5, 30, 0.95, upper)
    assert skewed_t_bound(-1.0, 2.0, -1.5, 30, 0.95, not upper) == pytest.approx(-found)


def test_the_skewness_and_what_two_examples_carry_are_of_the_differences() -> None:
    chance = np.random.default_rng(3)
    before, after = chance.random(50), chance.random(50)
    found = mean_change(before, after)
    squares = np.sort((after - before - (after - before).mean()) ** 2)
    assert found.skewness == pytest.approx(stats.skew(after - before))
    assert found.by_two == pytest.approx(squares[-2:].sum() / squares.sum())
    assert not found.rests_on_two
    after[7] += 100.0
    assert mean_change(before, after).rests_on_two


def test_two_of_many_examples_may_have_less_than_two_of_few() -> None:
    """Their share falls with the number of examples unless the variance is unbounded, as of Pareto's losses below 2."""
    chance = np.random.default_rng(7)

    def withheld(losses: Floats) -> float:
        found = [mean_change(np.zeros(800), -row).rests_on_two for row in losses]
        later = [mean_of_scores(float(row.mean()), row).rests_on_two for row in losses]
        assert found == later
        return float(np.mean(found))

    assert withheld(chance.exponential(1.0, (100, 800))) == 0
    assert withheld(chance.pareto(1.5, (100, 800))) > 0.9


def test_scores_that_are_0_or_1_change_as_shares_do() -> None:
    before, after = np.array([1.0] * 60 + [0.0] * 40), np.array([1.0] * 57 + [0.0] * 42 + [1.0])
    found, counts = mean_change(before, after), PairedCounts(100, lost=3, gained=1)
    assert found.flips == counts
    assert found.interval() == change_interval(counts)
    assert found.bound(0.9, upper=True) == change_bound(counts, 0.9, upper=True)
    assert found.reversed().bound(0.9, upper=True) == pytest.approx(-found.bound(0.9, upper=False))
    assert mean_change(before, after + 0.5).flips is None


def test_without_a_difference_stated_bounds_still_guarantee_some() -> None:
    """No example of 120 changes by more than 1: as many as the exact bound allows, at half of the error."""
    scores = [0.5, 0.75, 1.0] * 40
    found = mean_change(scores, scores, bounds=(0.0, 1.0))
    interval = found.interval()
    assert (found.change, found.differing, found.span) == (0.0, 0, 1.0)
    assert interval is not None
    assert interval.high == -interval.low == pytest.approx(share_bound(0, 120, 1 - 0.0125, upper=True))


@pytest.mark.parametrize(("count", "spread"), [(12, 0.02), (50, 0.0), (50, 0.2), (300, 0.01), (300, 0.5), (5000, 0.1)])
def test_a_gambler_who_bets_against_the_guaranteed_bound_wins_at_least_as_much_as_it_says(
    count: int, spread: float
) -> None:
    """His money is counted value by value; below that bound he wins more, and he wins little where the mean is."""
    values = 0.5 + spread * (np.random.default_rng(4).random(count) - 0.5)
    values[:2] -= 0.9 * values[:2] * (spread > 0.1)
    found = mean_of_scores(float(values.mean()), values, (0.0, 1.0)).guaranteed(0.95, upper=False)

    def money(mean: float) -> float:
        bets = (0.9, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.008)
        return float(np.mean([np.prod(1 + bet * (values - mean) / mean) for bet in bets]))

    assert 0 < found < values.mean()
    assert money(found) >= 20
    assert money(0.9 * found) > money(found)
    assert money(float(values.mean())) < 20


def test_a_guaranteed_bound_is_exact_where_one_value_is_below_equal_ones() -> None:
    """No values of the same mean and deviation leave a gambler less, so that he wins there just what the bound asks."""
    values = np.array([0.7] * 39 + [0.3])
    found = guaranteed_bound(float(values.mean()), float(values.std(ddof=1)), (0.0, 1.0), 40, 0.95, upper=False)
    bets = (0.9, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.008)
    assert np.mean([np.prod(1 + bet * (values - found) / found) for bet in bets]) == pytest.approx(20, rel=0.005)


def test_a_guaranteed_bound_never_leaves_the_limits_and_needs_some() -> None:
    assert guaranteed_bound(0.0, 0.0, (0.0, 1.0), 50, 0.95, upper=False) == 0.0
    assert guaranteed_bound(0.9, 0.9, (0.0, 1.0), 3, 0.99, upper=False) == 0.0
    assert guaranteed_bound(0.1, 0.9, (0.0, 1.0), 3, 0.99, upper=True) == 1.0
    values = np.random.default_rng(4).random(300)
    assert math.isnan(mean_of_scores(float(values.mean()), values).guaranteed(0.95, upper=False))


def test_one_example_guarantees_nothing_and_two_do() -> None:
    assert math.isnan(MeanChange(1, 0.5, 0.0, 1, span=1.0).guaranteed(0.95, upper=True))
    assert -1 <= MeanChange(2, 0.5, 0.0, 2, span=1.0).guaranteed(0.95, upper=False) < 0.5


def test_a_guarantee_is_beside_an_interval_by_the_spread_and_nowhere_else() -> None:
    chance = np.random.default_rng(6)
    before, after = chance.random(60), chance.random(60)
    wide, narrow = mean_change(before, after, (0.0, 1.0)).guaranteed_interval(), mean_change(before, after).interval()
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low < narrow.high < wide.high
    assert mean_change(before, after).guaranteed_interval() is None
    assert mean_change(before, before, (0.0, 1.0)).guaranteed_interval() is None


@pytest.mark.parametrize("count", [50, 94, 1000])
def test_what_is_unseen_is_the_rule_of_three(count: int) -> None:
    """With one in so many examples, 5 % of such evaluations see none."""
    assert seen_share(count) == pytest.approx(count / 3, rel=0.05)
    assert (1 - 1 / seen_share(count)) ** count == pytest.approx(0.05, rel=0.1)


def test_one_example_has_no_interval() -> None:
    assert mean_change([0.5], [0.25]).interval() is None
    assert math.isnan(mean_change([0.5], [0.25]).bound(0.95, upper=True))
    assert mean_of_scores(0.5, [0.5], (0.0, 1.0)).interval() is None


@pytest.mark.parametrize("differing", [0, 5, 19])
def test_few_unequal_examples_of_a_metric_without_bounds_have_no_interval(differing: int) -> None:
    before = np.linspace(1.0, 9.0, 200)
    after = np.where(np.arange(200) < differing, before + 0.5, before)
    found = mean_change(before, after)
    assert found.interval() is None
    assert math.isnan(found.bound(0.95, upper=False))
    assert mean_change(before, after, (0.0, 10.0)).interval() is not None
    equal = np.where(np.arange(200) < differing, 2.0, 5.0)
    assert mean_of_scores(float(equal.mean()), equal).interval() is None
    more = np.where(np.arange(200) < 20, before + 0.5, before)
    assert mean_change(before, more).interval() is not None


def test_a_handful_of_unequal_examples_names_no_number_of_examples() -> None:
    before = np.full(300, 0.5)
    few, some = (np.where(np.arange(300) < count, 0.48, 0.5) for count in (9, 10))
    bounds = (0.0, 1.0)
    assert mean_change(before, few, bounds).examples_to_decide(0.01, 0.95) is None
    assert mean_change(before, few, bounds).examples_to_judge(0.005) is None
    assert mean_change(before, some, bounds).examples_to_decide(0.01, 0.95) is not None
    assert mean_change(before, some, bounds).examples_to_judge(0.005) is not None


def test_as_many_examples_as_are_needed_decide() -> None:
    change = MeanChange(count=100, change=-0.004, deviation=0.05, differing=100)
    needed = change.examples_to_decide(limit=0.01, confidence=0.95)
    assert needed is not None
    means = np.random.default_rng(6).normal(-0.004, 0.05 / np.sqrt(needed), 4000)
    bounds = [MeanChange(needed, mean, 0.05, needed).bound(0.95, upper=False) for mean in means]
    assert np.mean(np.array(bounds) >= -0.01) == pytest.approx(0.8, abs=0.02)
    assert change.examples_to_decide(limit=0.004, confidence=0.95) is None


def test_a_mean_of_scores_that_are_0_or_1_has_the_interval_of_a_share() -> None:
    from statsmodels.stats.proportion import proportion_confint

    scores = np.array([1.0] * 13 + [0.0] * 7)
    found = mean_of_scores(float(scores.mean()), scores).interval()
    expected = proportion_confint(13, 20, method="wilson")
    assert found is not None
    assert (found.low, found.high) == pytest.approx(expected)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_three_equal_scores_prove_little(score: float) -> None:
    interval = mean_of_scores(score, [score] * 3).interval()
    assert interval is not None
    assert interval.high - interval.low > 0.5
    unchanged = mean_change([score] * 3, [score] * 3).interval()
    assert unchanged is not None
    assert unchanged.high > 0.5


def test_equal_scores_of_an_unknown_range_have_no_interval() -> None:
    assert mean_of_scores(5.0, [5.0] * 60).interval() is None
