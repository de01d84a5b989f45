"""Verdicts on means: by the interval of the paired test, and by Welch's where examples are others."""

from __future__ import annotations

import math
from typing import Literal

import pytest
from scipy import stats

from evaltools.gates.accuracy_verdict import mean_verdict
from evaltools.metrics.means import MeanChange


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
    verdict = mean_verdict("score", MeanChange(64, change, deviation, 64, 0.01), better, margin=0.005, against="cpu")
    assert (verdict.kind, verdict.against, verdict.change) == (kind, "cpu", change)
    assert verdict.low is not None
    assert verdict.low < change


def test_an_undecided_verdict_names_the_examples_that_decide() -> None:
    """With so many, the whole interval lies within the margin in 80 % of cases."""
    verdict = mean_verdict("score", MeanChange(50, 0.0005, 0.0707, 50, 1.0), "higher", 0.005)
    assert verdict.kind == "not decided"
    assert verdict.examples_needed is not None
    needed = verdict.examples_needed
    half = 1.96 * 0.0707 / math.sqrt(needed) + 1 - 0.025 ** (1 / needed)
    spread = stats.norm(0.0005, 0.0707 / math.sqrt(needed))
    assert spread.cdf(0.005 - half) - spread.cdf(half - 0.005) == pytest.approx(0.8, abs=0.05)
    assert f"about {verdict.examples_needed} examples would decide" in verdict.why


def test_where_no_example_differs_that_comes_first() -> None:
    """None of 50: at most 1 - 0.05 ** (1 / 50) = 5.8 % of such examples."""
    said = mean_verdict("score", MeanChange(50, 0.0, 0.0, 0, 1.0), "higher", 0.005).why
    assert said == "unchanged: no answer of 50 changed it; 95 % confident: fewer than 5.8 % of such examples do"


def test_one_example_decides_nothing() -> None:
    verdict = mean_verdict("score", MeanChange(1, -0.5, 0.0, 1, 1.0), "higher", 0.005)
    assert (verdict.kind, verdict.low) == ("not decided", None)


def test_few_unequal_examples_without_bounds_decide_nothing_and_name_no_number() -> None:
    """The 12 equal losses of 94 from which 65823 examples were once told."""
    verdict = mean_verdict("error", MeanChange(94, 0.0005, 0.002, 12, 3.0), "lower", 0.005)
    assert (verdict.kind, verdict.low, verdict.examples_needed) == ("not decided", None, None)
    said = verdict.why
    assert said.endswith("only 12 examples differ and the metric states no bounds, so others may decide")
    bounded = mean_verdict("error", MeanChange(94, 0.0005, 0.002, 4, 3.0, is_bounded=True), "lower", 0.005)
    assert bounded.low is not None
    assert (bounded.kind, bounded.examples_needed) == ("not decided", None)
