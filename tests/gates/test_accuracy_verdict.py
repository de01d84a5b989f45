"""Accuracy: equivalent, worse, better, not decided."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evaltools.gates.accuracy_verdict import accuracy_verdict
from evaltools.gates.units import DEFAULT_MARGIN
from evaltools.metrics.proportions import PairedCounts, change_interval, mcnemar_p


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((50_000, 40, 35), "equivalent within 0.5 points: -0.01 points "),
        ((50_000, 150, 30), "equivalent within 0.5 points: -0.24 points "),
        ((5000, 178, 42), "WORSE by 2.72 points "),
        ((5000, 42, 178), "better by 2.72 points "),
        ((5000, 41, 32), "not decided: -0.18 points "),
        ((200, 3, 4), "not decided: +0.50 points "),
    ],
)
def test_a_verdict_follows_from_the_interval(counts: tuple[int, int, int], words: str) -> None:
    pairs = PairedCounts(*counts)
    found = accuracy_verdict("top1", pairs)
    bounds = change_interval(pairs)
    low, high = bounds.low, bounds.high
    within = low >= -DEFAULT_MARGIN and high <= DEFAULT_MARGIN
    assert found.kind == ("equivalent" if within else "worse" if high < 0 else "better" if low > 0 else "not decided")
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-6)
    assert (found.metric, found.change, found.p_value) == ("top1", pairs.change, mcnemar_p(pairs))
    assert found.why.startswith(f"{words}({100 * low:+.2f} to {100 * high:+.2f})")


def test_a_clear_change_within_the_margin_is_equivalent() -> None:
    assert accuracy_verdict("top1", PairedCounts(50_000, 150, 30), margin=0.001).kind == "worse"


def test_the_margin_and_the_number_of_examples_that_would_tell_are_named() -> None:
    open_verdict = accuracy_verdict("top1", PairedCounts(5000, 41, 32))
    needed = open_verdict.examples_needed
    assert needed is not None
    assert open_verdict.why.endswith(
        f"; about {needed} examples would decide in 80 % of cases whether it is within 0.5 points"
    )
    wide = accuracy_verdict("top1", PairedCounts(50_000, 40, 35), margin=0.02)
    assert wide.why.startswith("equivalent within 2 points: ")


def test_nothing_measured_is_nothing_decided() -> None:
    verdict = accuracy_verdict("top1", PairedCounts(0, 0, 0))
    assert (verdict.examples_needed, verdict.why) == (
        None,
        "not decided: +0.00 points (-100.00 to +100.00)",
    )


@pytest.mark.parametrize(("counts", "p_value"), [((200, 4, 0), None), ((4, 4, 0), None), ((5000, 60, 30), 0.2)])
def test_a_word_never_contradicts_the_test(counts: tuple[int, int, int], p_value: float | None) -> None:
    pairs = PairedCounts(*counts)
    assert change_interval(pairs).high < 0
    assert (mcnemar_p(pairs) if p_value is None else p_value) > 0.05
    assert accuracy_verdict("top1", pairs, p_value=p_value).kind == "not decided"


@pytest.mark.parametrize("tests", [1, 2, 5])
def test_beside_other_tests_so_many_examples_decide_in_80_of_100_cases(tests: int) -> None:
    """Runs with the same shares are drawn; the exact test of each must do with its part of the error."""
    verdict = accuracy_verdict("top1", PairedCounts(500, 20, 9), tests=tests)
    assert verdict.examples_needed is not None
    chance = np.random.default_rng(7)
    drawn = chance.multinomial(verdict.examples_needed, [20 / 500, 9 / 500, 471 / 500], 1000)
    decided = [
        stats.binomtest(int(lost), int(lost + gained)).pvalue <= 0.05 / tests and lost > gained
        for lost, gained, _ in drawn
    ]
    assert np.mean(decided) == pytest.approx(0.8, abs=0.04)
