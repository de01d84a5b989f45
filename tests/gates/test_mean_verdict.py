"""Verdicts on means: by the interval of the paired test, and by Welch's where examples are others."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from evaltools.gates.accuracy_verdict import RESTS_ON_TWO, margin_of_mean, mean_verdict
from evaltools.metrics.means import MeanChange, mean_change
from evaltools.metrics.proportions import PairedCounts, mcnemar_p


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
    verdict = mean_verdict("score", MeanChange(64, change, deviation, 64), better, margin=0.005, against="cpu")
    assert (verdict.kind, verdict.against, verdict.change) == (kind, "cpu", change)
    assert verdict.low is not None
    assert verdict.low < change


def test_an_undecided_verdict_names_the_examples_that_decide() -> None:
    """With so many, the whole interval lies within the margin, or on one side of no change, in 80 % of cases."""
    verdict = mean_verdict("score", MeanChange(50, 0.0005, 0.0707, 50), "higher", 0.005)
    assert verdict.kind == "not decided"
    assert verdict.examples_needed is not None
    needed = verdict.examples_needed
    half = 1.96 * 0.0707 / math.sqrt(needed)
    spread = stats.norm(0.0005, 0.0707 / math.sqrt(needed))
    is_equivalent = spread.cdf(0.005 - half) - spread.cdf(half - 0.005)
    assert is_equivalent + spread.cdf(-half) + spread.sf(half) == pytest.approx(0.8, abs=0.05)
    assert f"about {verdict.examples_needed} examples would decide" in verdict.why


def test_where_no_example_differs_that_comes_first() -> None:
    """None of 50: at most 1 - 0.05 ** (1 / 50) = 5.8 % of such examples."""
    said = mean_verdict("score", MeanChange(50, 0.0, 0.0, 0), "higher", 0.005).why
    assert said == "unchanged: no answer of 50 changed it; 95 % confident: fewer than 5.8 % of such examples do"


def test_one_example_decides_nothing() -> None:
    verdict = mean_verdict("score", MeanChange(1, -0.5, 0.0, 1), "higher", 0.005)
    assert (verdict.kind, verdict.low) == ("not decided", None)


def test_few_unequal_examples_without_bounds_decide_nothing_and_name_no_number() -> None:
    """The 12 equal losses of 94 from which 65823 examples were once told."""
    verdict = mean_verdict("error", MeanChange(94, 0.0005, 0.002, 12), "lower", 0.005)
    assert (verdict.kind, verdict.low, verdict.examples_needed) == ("not decided", None, None)
    said = verdict.why
    assert said.endswith("only 12 examples differ and none has known bounds, so others may decide")
    bounded = mean_verdict("error", MeanChange(94, 0.0005, 0.002, 4, span=3.0), "lower", 0.005)
    assert bounded.low is not None
    assert (bounded.kind, bounded.examples_needed) == ("not decided", None)


def test_a_clear_change_is_judged_by_the_paired_interval() -> None:
    """A t interval of 2.38 to 3.28 was once shown as -2.52 to 8.19, for all that a score could be."""
    verdict = mean_verdict("mse", MeanChange(200, 2.83, 3.227, 200), "lower", 0.25)
    assert (verdict.kind, verdict.texts) == ("worse", ["WORSE: +2.83 (+2.38 to +3.28)"])


def test_what_an_interval_cannot_see_is_said_where_it_passes() -> None:
    verdict = mean_verdict("iou", MeanChange(50, 0.0001, 0.001, 50), "higher", 0.005)
    assert verdict.kind == "equivalent"
    assert verdict.why.endswith("; losses that hit fewer than 1 in 17 examples may be unseen")
    bounded = mean_verdict("iou", MeanChange(50, 0.0001, 0.001, 50, span=1.0), "higher", 0.005)
    assert bounded.why.endswith("may be unseen, with them (-0.132 to +0.132) by the stated bounds")
    assert "unseen" not in mean_verdict("iou", MeanChange(50, -0.1, 0.001, 50), "higher", 0.005).why


def test_where_two_examples_make_too_much_of_what_varies_nothing_is_decided() -> None:
    change = MeanChange(50, -0.02, 0.001, 50, by_two=0.51)
    verdict = mean_verdict("iou", change, "higher", 0.005)
    assert (verdict.kind, verdict.examples_needed) == ("not decided", None)
    assert verdict.why.endswith(RESTS_ON_TWO)
    assert verdict.low is not None
    assert mean_verdict("iou", replace(change, by_two=0.5), "higher", 0.005).kind == "worse"
    of_many = MeanChange(800, -0.02, 0.001, 800, by_two=0.25)
    assert mean_verdict("iou", of_many, "higher", 0.005).kind == "not decided"
    assert mean_verdict("iou", replace(of_many, differing=60), "higher", 0.005).kind == "worse"


def test_two_examples_leave_nothing_open_where_even_theirs_is_less_than_the_margin() -> None:
    """Rounding: one example moves by a millionth, the others by less, and 0.005 counts as none."""
    before = np.linspace(0.2, 0.9, 60)
    moved = before + np.where(np.arange(60) == 7, 1e-6, 1e-9 * np.arange(60))
    change = mean_change(before, moved, bounds=(0, 1))
    assert change.rests_on_two
    assert 1e-6 <= change.furthest < 1.1e-6
    verdict = mean_verdict("score", change, "higher", 0.005)
    assert verdict.kind == "equivalent"
    assert "losses that hit fewer than 1 in 21 examples may be unseen" in verdict.why
    assert mean_verdict("score", change, "higher", 0.9e-6).why.endswith(RESTS_ON_TWO)


def test_a_reference_of_0_has_no_margin_of_1_percent() -> None:
    verdict = mean_verdict("shift", MeanChange(50, 0.02, 0.001, 50), "lower", margin_of_mean(0.0, None))
    assert (verdict.kind, verdict.margin) == ("not decided", 0.0)
    assert verdict.why.endswith("the reference's value is 0, of which nothing is a share; state margin= or --margin")


def test_scores_that_are_0_or_1_need_mcnemars_test_too() -> None:
    counts = PairedCounts(100, lost=6, gained=0)
    found = MeanChange(100, -0.06, 0.2387, 6, flips=counts)
    assert mean_verdict("right", found, "higher", 0.005).kind == "worse"
    fewer = MeanChange(100, -0.05, 0.219, 5, flips=PairedCounts(100, lost=5, gained=0))
    assert fewer.interval() is not None
    assert mcnemar_p(PairedCounts(100, lost=5, gained=0)) > 0.05
    assert mean_verdict("right", fewer, "higher", 0.005).kind == "not decided"
