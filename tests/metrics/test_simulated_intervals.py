"""A short form of ``python -m benchmarks intervals``: intervals hold the truth, and gates err rarely."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from scipy import stats

from benchmarks.intervals import (
    correlated_ratios,
    few_differing,
    gates_of_several,
    latency_ratios,
    lost_means,
    medians,
    own_means,
    planned,
    shares,
    unquiet_ratios,
)
from evaltools.metrics.proportions import PairedCounts, change_bound

TRIALS, FEW_TRIALS = 600, 250


@pytest.mark.once
def test_gates_on_shares_err_in_at_most_6_of_100_cases() -> None:
    for row in shares(TRIALS):
        assert row.wrong_pass is not None
        assert row.wrong_fail is not None
        assert max(row.wrong_pass, row.wrong_fail) <= 0.06, row


@pytest.mark.once
@pytest.mark.parametrize(
    ("count", "lost", "gained"),
    [(652, 0.00415, 0.0007), (120, 0.04, 0.011)],
)
def test_gates_on_drops_err_in_at_most_6_of_100_cases(count: int, lost: float, gained: float) -> None:
    """Summed up over all numbers of flips, for a limit that is the truth; by the score alone it is up to 9 of 100."""
    most = int(stats.binom.ppf(1 - 1e-6, count, lost + gained))
    numbers = np.array([(losses, flips - losses) for flips in range(most + 1) for losses in range(flips + 1)])
    whole = np.column_stack([numbers, count - numbers.sum(axis=1)])
    probabilities = stats.multinomial.pmf(whole, count, [lost, gained, 1 - lost - gained])
    wrong = {True: 0.0, False: 0.0}
    for (losses, gains), probability in zip(numbers.tolist(), probabilities.tolist(), strict=True):
        if probability >= 1e-6:
            counts = PairedCounts(count, losses, gains)
            wrong[True] += probability * (change_bound(counts, 0.95, upper=True) < gained - lost)
            wrong[False] += probability * (change_bound(counts, 0.95, upper=False) > gained - lost)
    assert max(wrong.values()) <= 0.06


@pytest.mark.once
def test_a_change_that_few_pictures_make_has_intervals_that_hold_it() -> None:
    for row in few_differing(250, numbers=(8,)):
        assert row.coverage is not None
        assert row.wrong_pass is not None
        assert row.wrong_fail is not None
        assert row.coverage >= 0.94, row
        assert max(row.wrong_pass, row.wrong_fail) <= 0.06, row


@pytest.mark.once
def test_a_latency_ratio_allows_for_neighbours_and_for_processes() -> None:
    for row in latency_ratios(FEW_TRIALS):
        assert row.coverage is not None
        assert row.given >= 0.75, row
        assert row.coverage >= 0.93, row


@pytest.mark.once
def test_a_latency_ratio_of_correlated_pairs_is_given_and_wrong_in_at_most_5_of_100_cases() -> None:
    for row in correlated_ratios(TRIALS):
        assert row.coverage is not None
        assert row.given * (1 - row.coverage) <= 0.05, row


@pytest.mark.once
def test_a_latency_ratio_of_an_unquiet_machine_holds_the_truth_or_is_withheld() -> None:
    """Where a third of one side is slow it is rarely withheld."""
    for row in unquiet_ratios(150):
        assert row.coverage is not None
        assert row.given >= 0.85 or "of one side" not in row.noise, row
        assert row.coverage >= 0.93, row


def test_a_guaranteed_bound_of_an_own_metric_is_wrong_in_at_most_5_of_100_cases() -> None:
    """The one by the spread is as well, where the losses are no rarer than what 94 examples show."""
    for row in own_means(150):
        assert row.wrong_pass is not None
        assert row.wrong_fail is not None
        is_guaranteed = "guaranteed" in row.what
        if is_guaranteed or "94 examples, 1 %" not in row.noise:
            assert max(row.wrong_pass, row.wrong_fail) <= (0.05 if is_guaranteed else 0.075), row
        assert row.given == 1 or not is_guaranteed, row


@pytest.mark.parametrize("place", range(6))
def test_a_mean_whose_examples_show_what_there_is_errs_rarely_and_its_interval_is_narrow(place: int) -> None:
    """Normal and exponential differences, of 50, 200 and 800 examples, beside what it once was."""
    before, now = islice(lost_means(400), 2 * place, 2 * place + 2)
    assert before.noise == now.noise
    assert before.width is not None
    assert now.width is not None
    assert now.width < before.width
    assert now.coverage is not None
    assert now.coverage >= 0.92, now
    assert now.wrong_pass is not None
    assert now.wrong_fail is not None
    assert max(now.wrong_pass, now.wrong_fail) <= 0.075, now


@pytest.mark.once
def test_a_median_allows_for_neighbours_and_for_processes() -> None:
    """Where most are withheld, as of times that resemble each other for long, few of all are wrong."""
    given = [row for row in medians(TRIALS // 2) if row.given]
    assert len(given) == 6
    for row in given:
        assert row.coverage is not None
        if row.given > 0.5:
            assert row.coverage >= 0.925, row
        assert row.given * (1 - row.coverage) <= 0.07, row


@pytest.mark.once
def test_as_many_examples_as_said_decide_in_80_of_100_cases() -> None:
    for question, rates, said, decided in planned(300):
        assert decided >= 0.75, (question, rates, said)
        assert decided <= 0.9 or "drop" in question, (question, rates, said)


@pytest.mark.once
def test_a_gate_of_several_limits_fails_by_chance_as_rarely_as_one() -> None:
    for row in gates_of_several(TRIALS):
        assert row.wrong_fail is not None
        assert row.wrong_fail <= 0.06, row
