"""How far off is too far: in each element, and to one side."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.locate.parts.difference import one_sided
from evaltools.locate.parts.part import TensorRuns
from evaltools.locate.search.arithmetic import Arithmetic
from evaltools.locate.search.findings import evidence_of, to_one_side
from evaltools.locate.search.judge import Limit, limit_of


def steps(largest: tuple[float, ...], one_sided: tuple[float, ...], **floors: float) -> TensorRuns:
    return TensorRuns(0, "x", "steps", largest, one_sided=one_sided, floors=floors)


def test_a_run_is_beyond_by_its_largest_error_or_to_one_side() -> None:
    runs = steps((1.0, 1.0, 3.0, 1.0), (0.1, -0.9, 0.0, 0.41))
    assert Limit(1.0, 0.4).beyond(runs) == 3
    assert Limit(1.0).beyond(runs) == 1
    assert Limit(1.0, 0.4).share(runs) == 3.0


def test_floats_have_no_side() -> None:
    runs = TensorRuns(0, "x", "absolute", (0.5, 2.0))
    assert Limit(1.0, 0.4).beyond(runs) == 1
    assert limit_of(runs, Arithmetic(), "fp32").one_sided == math.inf


@pytest.mark.parametrize(
    ("approximated", "of_kernels", "allowed"),
    [
        (False, 0.0, 0.4),
        (False, 0.25, 0.4),
        (False, 0.35, 0.5),
        (True, 0.0, 1.4),
    ],
)
def test_what_kernels_do_themselves_is_allowed_with_a_margin(
    approximated: bool, of_kernels: float, allowed: float
) -> None:
    runs = TensorRuns(0, "x", "steps", (1.0,), floors={"kernels": 1.0, "kernels, one side": of_kernels})
    assert limit_of(runs, Arithmetic(approximated=approximated), "fp32").one_sided == pytest.approx(allowed)


def test_averages_of_one_sign_may_differ_in_all_halves_and_a_step_everywhere_is_seen() -> None:
    sums = np.add.outer(np.arange(-128, -19), np.arange(-128, -19))
    up = np.floor(sums / 2 + 0.5).astype(np.int8)
    away = np.trunc(sums / 2 - 0.5).astype(np.int8)
    limit = limit_of(steps((1.0,), (0.0,)), Arithmetic(bias=0.5), "fp32")
    assert limit.one_sided == pytest.approx(0.65)
    side = one_sided(away, up)
    assert -0.5 < side < -0.4
    assert limit.beyond(steps((1.0,), (side,))) == 0
    assert limit.beyond(steps((1.0,), (one_sided(up + np.int8(1), up),))) == 1


def test_a_lower_precision_has_no_limit_to_one_side() -> None:
    assert limit_of(steps((1.0,), (0.9,)), Arithmetic(), "fp16").one_sided == math.inf


def test_evidence_says_where_no_single_element_is_too_far_off() -> None:
    seen = evidence_of("single", (3, 3), steps((1.0, 1.0), (-0.93, -0.9)), Limit(1.0, 0.4))
    assert (seen.part, seen.beyond, seen.runs, seen.agrees) == ("3", 2, 2, True)
    assert "-0.93 steps or more on average" in seen.note
    assert to_one_side(steps((2.0,), (0.9,)), Limit(1.0, 0.4)) == ""
