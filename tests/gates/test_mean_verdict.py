"""Verdicts on means: by the interval of the paired test, and by Welch's where examples are others."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from scipy import stats

from evaltools.gates.mean_verdict import mean_verdict, unpaired_mean_verdict
from evaltools.report.words.verdicts import score_change_in_words
from evaltools.stats.means import MeanChange


@pytest.mark.parametrize(
    ("change", "better", "kind"),
    [
        (0.0, "higher", "equivalent"),
        (-0.02, "higher", "worse"),
        (-0.02, "lower", "better"),
        (0.02, "higher", "better"),
        (0.006, "higher", "not decided"),
    ],
)
def test_a_verdict_follows_from_interval_and_direction(
    change: float, better: Literal["higher", "lower"], kind: str
) -> None:
    deviation = 0.03 if kind == "not decided" else 0.01
    verdict = mean_verdict("score", MeanChange(64, change, deviation, 64, 1.0), better, margin=0.005, against="cpu")
    assert (verdict.kind, verdict.against, verdict.change) == (kind, "cpu", change)
    assert verdict.low is not None
    assert verdict.low < change


def test_an_undecided_verdict_names_the_examples_that_decide() -> None:
    """With so many, the whole interval lies within the margin in 80 % of cases."""
    verdict = mean_verdict("score", MeanChange(50, 0.0005, 0.0707, 50, 1.0), "higher", 0.005)
    assert verdict.kind == "not decided"
    assert verdict.examples_needed is not None
    half = 1.96 * 0.0707 / math.sqrt(verdict.examples_needed)
    spread = stats.norm(0.0005, half / 1.96)
    assert spread.cdf(0.005 - half) - spread.cdf(half - 0.005) == pytest.approx(0.8, abs=0.05)
    assert f"about {verdict.examples_needed} examples would tell" in score_change_in_words(verdict)


def test_where_no_example_differs_that_comes_first() -> None:
    """None of 50: at most 1 - 0.05 ** (1 / 50) = 5.8 % of such examples."""
    said = score_change_in_words(mean_verdict("score", MeanChange(50, 0.0, 0.0, 0, 1.0), "higher", 0.005))
    assert said == "unchanged: no answer of 50 changes it; at most 5.8 % of such examples can (95 %)"


def test_one_example_decides_nothing() -> None:
    verdict = mean_verdict("score", MeanChange(1, -0.5, 0.0, 1, 1.0), "higher", 0.005)
    assert (verdict.kind, verdict.low) == ("not decided", None)


def test_means_of_other_examples_are_tested_by_welch() -> None:
    before, now = (0.8, 0.1, 40), (0.76, 0.2, 60)
    expected = stats.ttest_ind_from_stats(0.76, 0.2, 60, 0.8, 0.1, 40, equal_var=False).pvalue
    verdict = unpaired_mean_verdict("score", before, now, "higher")
    assert verdict is not None
    assert verdict.p_value == pytest.approx(expected)
    assert verdict.kind == "not decided"
    worse = unpaired_mean_verdict("score", before, (0.6, 0.2, 60), "higher")
    better = unpaired_mean_verdict("score", before, (0.6, 0.2, 60), "lower")
    assert worse is not None
    assert better is not None
    assert (worse.kind, better.kind) == ("worse", "better")
    assert unpaired_mean_verdict("score", (0.8, 0.0, 1), now, "higher") is None


def test_two_constants_of_many_examples_differ() -> None:
    """Of 120 scores there are 120! / 60!^2 ways to choose 60."""
    worse = unpaired_mean_verdict("anomalies", (0.0, 0.0, 60), (1.0, 0.0, 60), "lower")
    assert worse is not None
    assert worse.kind == "worse"
    assert worse.p_value == pytest.approx(2 / math.comb(120, 60))
    assert score_change_in_words(worse) == "WORSE: +1"
    few = unpaired_mean_verdict("anomalies", (0.0, 0.0, 2), (1.0, 0.0, 2), "lower")
    assert few is not None
    assert few.kind == "not decided"
    assert few.p_value == pytest.approx(1 / 3)


def test_the_same_constant_is_not_decided() -> None:
    same = unpaired_mean_verdict("score", (1.0, 0.0, 60), (1.0, 0.0, 40), "higher")
    assert same is not None
    assert same.kind == "not decided"
