"""Means, pooled figures and their changes: independent implementations, and how often the interval holds the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from evaltools.metrics.means import GROUPS, MeanChange, contributions, groups_of, mean_change, mean_of_scores


def unseen(count: int, confidence: float = 0.975) -> float:
    """The largest share of which none is among ``count`` with the rest of this confidence."""
    return float(1 - (1 - confidence) ** (1 / count))


def test_a_change_reaches_as_far_as_the_paired_t_test_and_what_was_not_seen() -> None:
    chance = np.random.default_rng(1)
    before, after = chance.random(40), chance.random(40)
    found = mean_change(before, after, bounds=(0.0, 1.0)).interval()
    expected = stats.ttest_rel(after, before).confidence_interval(0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low - unseen(40), expected.high + unseen(40)), rel=1e-9)


def test_a_mean_reaches_as_far_as_students_t_and_the_bounds_of_scores_that_were_not_seen() -> None:
    values = np.random.default_rng(2).random(30)
    found = mean_of_scores(float(values.mean()), values, (0.0, 1.0)).interval()
    assert found is not None
    low, high = stats.t.interval(0.95, 29, values.mean(), stats.sem(values))
    assert found.low == pytest.approx(low - values.mean() * unseen(30))
    assert found.high == pytest.approx(high + (1 - values.mean()) * unseen(30))


def test_without_bounds_the_scores_that_were_seen_are_the_bounds() -> None:
    chance = np.random.default_rng(4)
    before = chance.uniform(2.0, 5.0, 50)
    found = mean_change(before, before + 0.1)
    assert not found.is_bounded
    assert found.span == before.max() + 0.1
    assert found.bound(0.975, upper=True) == pytest.approx(0.1 + found.span * unseen(50), rel=1e-6)


def test_without_a_difference_the_interval_still_has_a_width() -> None:
    scores = [0.5, 0.75, 1.0] * 40
    found = mean_change(scores, scores, bounds=(0.0, 1.0))
    interval = found.interval()
    assert (found.change, found.differing, found.span) == (0.0, 0, 1.0)
    assert interval is not None
    assert interval.high == -interval.low == pytest.approx(unseen(120))


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


@pytest.mark.parametrize("flips", [0.002, 0.02, 0.3])
def test_the_bound_holds_the_truth_as_often_as_it_says(flips: float) -> None:
    """Scores that change on a share of examples alone, as those of a delegate do: rarely, and then by much."""
    chance = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        changed = chance.random(300) < flips
        before = np.full(300, 0.8)
        after = np.where(changed, before - 0.5 * chance.random(300), before)
        held += mean_change(before, after, (0.0, 1.0)).bound(0.95, upper=False) <= -0.25 * flips
    assert held / 400 >= 0.94


def test_as_many_examples_as_are_needed_decide() -> None:
    change = MeanChange(count=100, change=-0.004, deviation=0.05, differing=100, span=1.0)
    needed = change.examples_to_decide(limit=0.01, confidence=0.95)
    assert needed is not None
    means = np.random.default_rng(6).normal(-0.004, 0.05 / np.sqrt(needed), 4000)
    bounds = [MeanChange(needed, mean, 0.05, needed, 1.0).bound(0.95, upper=False) for mean in means]
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


Floats = npt.NDArray[np.float64]


def ratio(rows: Sequence[Any]) -> float:
    """The sum of all values by that of their squares."""
    values = np.fromiter(rows, np.float64)
    return float(values.sum() / np.square(values).sum())


def widths(values: Floats) -> tuple[float, float]:
    """The mean of what examples contribute, and the standard error of the figure that they give."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def error_by_each(values: Floats) -> float:
    """The standard error by Tukey's jackknife of each example, from the sums without it."""
    without = (values.sum() - values) / (np.square(values).sum() - np.square(values))
    return float(np.sqrt((len(values) - 1) / len(values) * np.square(without - without.mean()).sum()))


@pytest.mark.parametrize("count", [2001, 5000, 20_000])
def test_groups_give_the_figure_and_nearly_the_error_of_the_jackknife_of_each_example(count: int) -> None:
    values = np.random.default_rng(count).exponential(1.0, count)
    mean, error = widths(contributions(ratio, list(values)))
    assert mean == pytest.approx(values.sum() / np.square(values).sum(), rel=1e-12)
    assert error == pytest.approx(error_by_each(values), rel=0.15)


def test_the_change_of_a_figure_on_the_same_examples_has_the_error_of_the_jackknife_of_each_change() -> None:
    chance = np.random.default_rng(3)
    before = chance.exponential(1.0, 5000)
    after = before * chance.normal(1.0, 0.01, 5000)
    found = contributions(ratio, list(after)) - contributions(ratio, list(before))

    def without(values: Floats) -> Floats:
        left: Floats = (values.sum() - values) / (np.square(values).sum() - np.square(values))
        return left

    changes = without(after) - without(before)
    expected = np.sqrt(4999 / 5000 * np.square(changes - changes.mean()).sum())
    assert widths(found)[1] == pytest.approx(expected, rel=0.15)


def test_groups_are_of_one_size_and_the_figure_is_asked_for_once_for_each() -> None:
    asked: list[int] = []

    def figure(rows: Sequence[Any]) -> float:
        asked.append(len(rows))
        return ratio(rows)

    contributions(figure, list(np.linspace(1, 2, 2100)))
    assert sorted(asked) == sorted([2100, *(2100 - np.bincount(groups_of(2100)))])
    assert set(np.bincount(groups_of(2100))) == {10, 11}
    assert len(asked) == 1 + GROUPS
