"""The binomial distribution against SciPy's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evaltools.metrics import binomial

NUMBERS = np.array([0, 1, 2, 7, 30, 1000, 250_000, 10_000_000])
SHARES = (0.0, 1e-7, 0.004, 0.3, 0.5, 0.97, 1.0)


def around(numbers: Any, share: float) -> Any:
    """Numbers of successes at both ends and around the mean, some of them impossible."""
    mean = np.floor(numbers * share)
    width = np.ceil(np.sqrt(numbers * share * (1 - share)))
    rows = [np.full(numbers.shape, -1), np.zeros(numbers.shape), *(mean + step * width for step in (-3, -1, 0, 1, 4))]
    return np.array([*rows, numbers - 1, numbers, numbers + 1]).astype(np.int64)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize(
    ("ours", "theirs"), [(binomial.at_most, stats.binom.cdf), (binomial.more_than, stats.binom.sf)]
)
def test_sums_of_probabilities(ours: Callable[..., Any], theirs: Callable[..., Any], share: float) -> None:
    most = around(NUMBERS, share)
    np.testing.assert_allclose(ours(most, NUMBERS, share), theirs(most, NUMBERS, share), rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("share", SHARES)
def test_single_probabilities(share: float) -> None:
    successes = np.clip(around(NUMBERS, share), 0, NUMBERS)
    expected = stats.binom.pmf(successes, NUMBERS, share)
    np.testing.assert_allclose(binomial.exactly(successes, NUMBERS, share), expected, rtol=1e-7, atol=1e-300)


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("probability", [1e-13, 0.025, 0.05, 0.4321, 0.95, 0.999])
def test_numbers_of_successes_with_a_probability(probability: float, share: float) -> None:
    """The first that holds, by the sums themselves; SciPy's is the same, where its sum is not a tie."""
    few = binomial.fewest_with(probability, NUMBERS, share)
    many = binomial.fewest_without(probability, NUMBERS, share)
    assert (stats.binom.cdf(few, NUMBERS, share) >= probability * (1 - 1e-9)).all()
    assert (stats.binom.cdf(few - 1, NUMBERS, share) < probability).all()
    assert (stats.binom.sf(many, NUMBERS, share) <= probability * (1 + 1e-9)).all()
    assert (stats.binom.sf(many - 1, NUMBERS, share) > probability * (1 - 1e-9)).all()


def test_a_tie_is_no_matter_of_rounding() -> None:
    """Two of 4 fair coins or fewer: 11 of 16 ways, whichever way a sum is rounded."""
    for probability in (11 / 16, np.nextafter(11 / 16, 1), np.nextafter(11 / 16, 0)):
        assert binomial.fewest_with(probability, 4, 0.5) == 2
        assert binomial.fewest_without(1 - probability, 4, 0.5) == 2
