"""Sample sizes against simulation and against the tests that they are for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from evaltools.stats.power import _normal_power, examples_to_decide, examples_to_see, mcnemar_power
from evaltools.stats.proportions import PairedCounts, expected_bound


@pytest.mark.parametrize(
    ("count", "drop", "flip_rate"), [(5000, 0.005, 0.01), (500, 0.02, 0.05), (300, 0.05, 0.05), (2000, 0.001, 0.04)]
)
def test_power_is_the_share_of_simulated_evaluations_that_see_the_drop(
    count: int, drop: float, flip_rate: float
) -> None:
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


def test_with_many_flips_the_normal_approximation_goes_on_where_the_sum_ends() -> None:
    exact = mcnemar_power(1_900_000, 0.0003, 0.01)
    assert exact == pytest.approx(_normal_power(1_900_000, 0.0003, 0.01, 0.05), abs=0.01)
    assert examples_to_see(0.0001, 0.2) is None
    assert 0.79 < mcnemar_power(examples_to_see(0.0005, 0.2) or 0, 0.0005, 0.2) < 0.81


@pytest.mark.parametrize(("drop", "flip_rate"), [(0.0, 0.1), (0.2, 0.1), (0.1, 1.5), (-0.1, 0.1)])
def test_rates_that_cannot_be(drop: float, flip_rate: float) -> None:
    with pytest.raises(ValueError, match="0 < drop <= flip rate <= 1"):
        examples_to_see(drop, flip_rate)


@pytest.mark.parametrize(("counts", "limit"), [((200, 1, 0), 0.02), ((200, 10, 8), 0.005), ((100, 8, 0), 0.05)])
def test_as_many_examples_as_said_decide(counts: tuple[int, int, int], limit: float) -> None:
    pairs = PairedCounts(*counts)
    found = examples_to_decide(pairs, limit)
    assert found is not None
    assert found > pairs.count, "these decide nothing"
    lost, gained = (found * flips / pairs.count for flips in (pairs.lost, pairs.gained))
    low, high = (expected_bound(found, lost, gained, 0.95, upper) for upper in (False, True))
    assert low >= -limit or high < -limit


def test_a_drop_on_the_limit_is_never_decided() -> None:
    assert examples_to_decide(PairedCounts(200, 2, 0), 0.01) is None
    assert examples_to_decide(PairedCounts(0, 0, 0), 0.01) is None


def test_the_first_number_where_nothing_flipped() -> None:
    """Without a flip the bound is -z^2 / (n + z^2), so n = z^2 (1 / limit - 1)."""
    quantile = stats.norm.ppf(0.95)
    assert examples_to_decide(PairedCounts(10, 0, 0), 0.005) == int(np.ceil(quantile**2 * (1 / 0.005 - 1)))
