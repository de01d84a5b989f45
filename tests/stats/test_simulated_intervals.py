"""A short form of ``python -m benchmarks intervals``: intervals hold the truth, and gates err rarely."""

from __future__ import annotations

import pytest

from benchmarks.intervals import few_differing, latency_ratios, paired_shares, planned, shares

TRIALS = 300
MOST_WRONG = 0.06 + 0.035
"""Three standard errors of so few trials beyond what is promised."""


@pytest.mark.once
def test_gates_on_shares_err_in_at_most_6_of_100_cases() -> None:
    for row in (*shares(TRIALS), *paired_shares(TRIALS)):
        assert row.wrong_pass is not None
        assert row.wrong_fail is not None
        assert max(row.wrong_pass, row.wrong_fail) <= MOST_WRONG, row


@pytest.mark.once
def test_a_change_that_few_pictures_make_has_intervals_that_hold_it() -> None:
    for row in few_differing(100, numbers=(6, 12)):
        assert row.coverage is not None
        assert row.wrong_pass is not None
        assert row.coverage >= 0.9, row
        assert row.wrong_pass <= 0.13, row


@pytest.mark.once
def test_a_latency_ratio_allows_for_neighbours() -> None:
    for row in latency_ratios(TRIALS):
        assert row.coverage is not None
        assert row.coverage >= 0.9, row


@pytest.mark.once
def test_as_many_examples_as_said_decide_in_80_of_100_cases() -> None:
    for question, rates, said, decided in planned(TRIALS):
        assert decided >= 0.73, (question, rates, said)
