"""Intervals and tests of shares, against statsmodels, brute force and simulation."""

from __future__ import annotations

import numpy as np
import pytest

from evaltools.metrics.interval import holm
from evaltools.metrics.proportions import (
    PairedCounts,
    change_bound,
    change_interval,
    change_z,
    mcnemar_p,
    share_bound,
    wilson_interval,
)
from tests.metrics.likelihood import likeliest_share_lost


@pytest.mark.parametrize(("successes", "count"), [(0, 1), (1, 1), (0, 50), (50, 50), (7, 10), (35_800, 50_000)])
@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_wilson_as_statsmodels(successes: int, count: int, confidence: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    found = wilson_interval(successes, count, confidence)
    low, high = proportion_confint(successes, count, alpha=1 - confidence, method="wilson")
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    assert found.confidence == confidence


@pytest.mark.parametrize(("successes", "count"), [(1, 0), (0, 0), (3, 2), (-1, 2)])
def test_what_is_no_share(successes: int, count: int) -> None:
    with pytest.raises(ValueError, match="is not a share"):
        wilson_interval(successes, count)


@pytest.mark.parametrize(("lost", "gained"), [(0, 0), (0, 5), (5, 5), (41, 32), (1, 30), (700, 801)])
def test_mcnemar_as_statsmodels(lost: int, gained: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    expected = mcnemar([[100, lost], [gained, 100]], exact=True).pvalue
    assert mcnemar_p(PairedCounts(200 + lost + gained, lost, gained)) == pytest.approx(min(1.0, expected), abs=1e-12)


@pytest.mark.parametrize("counts", [(44, 1, 0), (200, 12, 3), (5000, 41, 32), (30, 0, 9), (60, 0, 0)])
@pytest.mark.parametrize("change", [-0.2, -0.01, 0.0, 0.03])
def test_the_score_uses_the_likeliest_rates_under_the_hypothesis(counts: tuple[int, int, int], change: float) -> None:
    pairs = PairedCounts(*counts)
    share_lost = likeliest_share_lost(pairs, change)
    variance = pairs.count * (2 * share_lost + change - change * change)
    distance = pairs.gained - pairs.lost - pairs.count * change
    if variance < 1e-6:
        assert distance == 0
        assert change_z(pairs, change) == 0
    else:
        assert change_z(pairs, change) == pytest.approx(distance / np.sqrt(variance), rel=1e-4, abs=1e-6)


def test_the_interval_ends_where_the_score_is_the_quantile() -> None:
    pairs = PairedCounts(5000, 41, 32)
    found = change_interval(pairs)
    assert change_z(pairs, found.low) == pytest.approx(1.959964, abs=1e-5)
    assert change_z(pairs, found.high) == pytest.approx(-1.959964, abs=1e-5)
    assert found.low < pairs.change < found.high


def test_the_square_of_the_score_without_change_is_mcnemars_statistic() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    expected = mcnemar([[100, 41], [32, 100]], exact=False, correction=False).statistic
    assert change_z(PairedCounts(5000, 41, 32), 0.0) ** 2 == pytest.approx(expected)


@pytest.mark.parametrize("counts", [(10, 10, 0), (10, 0, 10), (1, 1, 0), (1, 0, 0), (0, 0, 0), (4, 2, 2)])
def test_bounds_at_the_edge(counts: tuple[int, int, int]) -> None:
    pairs = PairedCounts(*counts)
    low, high = (change_bound(pairs, 0.95, upper) for upper in (False, True))
    assert -1 <= low <= pairs.change <= high <= 1
    mirrored = PairedCounts(pairs.count, pairs.gained, pairs.lost)
    assert change_bound(mirrored, 0.95, upper=True) == pytest.approx(-low)


def test_counts_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="3 lost and 2 gained of 4 examples"):
        PairedCounts(4, 3, 2)


@pytest.mark.parametrize("rates", [(0.01, 0.005), (0.03, 0.03), (0.1, 0.02), (0.002, 0.002)])
def test_the_interval_of_the_change_holds_the_truth_in_95_of_100_samples(rates: tuple[float, float]) -> None:
    lost, gained = rates
    drawn = np.random.default_rng(7).multinomial(2000, [lost, gained, 1 - lost - gained], 2000)
    scores = np.array([change_z(PairedCounts(2000, int(a), int(b)), gained - lost) for a, b, _ in drawn])
    assert 0.93 <= np.mean(np.abs(scores) <= 1.959964) <= 0.97


@pytest.mark.parametrize("p_values", [[0.01], [0.01, 0.04, 0.03], [0.5, 0.5], [0.001, 0.2, 0.02, 0.02, 1.0], []])
def test_holm_as_statsmodels(p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    expected = multipletests(p_values, method="holm")[1].tolist() if p_values else []
    assert holm(p_values) == pytest.approx(expected)


@pytest.mark.parametrize(("successes", "count"), [(0, 7), (1, 7), (5, 7), (7, 7), (190, 200)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_the_bound_of_a_share_is_clopper_and_pearsons(successes: int, count: int, confidence: float) -> None:
    """As statsmodels has it, whose two ends each have half of the error."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(successes, count, 2 * (1 - confidence), "beta")
    assert share_bound(successes, count, confidence, upper=False) == pytest.approx(low, abs=1e-12)
    assert share_bound(successes, count, confidence, upper=True) == pytest.approx(high, abs=1e-12)
