"""What examples add to a figure of all of them: against Tukey's jackknife written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.metrics.jackknife import GROUPS, contributions, groups_of

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
