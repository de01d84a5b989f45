"""Runs held against the same runs of the yardsticks: class maps of 64 by 64 pixels, one of which is hard for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.gates.paired_runs import ByRun, YardsticksByRun
from evaltools.gates.verdict import OutputVerdict, Yardsticks, judge_output
from evaltools.metrics.difference import compare_tensors
from evaltools.metrics.output_difference import OutputDifference, differences_by_run, summarise_differences

Maps = npt.NDArray[Any]
HARD = 0
"""The run in which kernels differ in half of the pixels."""


def maps() -> Maps:
    """In each of ten runs an object of class 5, which begins in the upper rows, and grows from run to run."""
    found = np.zeros((10, 64, 64), np.int64)
    for run in range(10):
        found[run, : 10 + 2 * run, 4 : 30 + 2 * run] = 5
    return found


def other_kernels() -> Maps:
    """The hard run has another class in most of its object, each other one five pixels more of it."""
    found = maps()
    found[HARD, 1:10, 5:] = 7
    found[1:, 40, :5] = 5
    return found


def compared(test: Maps, reference: Maps) -> tuple[OutputDifference, ByRun]:
    parts = [compare_tensors(*pair) for pair in zip(test, reference, strict=True)]
    found = summarise_differences("map", "int64", parts)
    return found, dict(enumerate(differences_by_run(parts, found)))


def judged(test: Maps, runs_are_known: bool = True) -> OutputVerdict:
    found, by_run = compared(test, maps())
    floor, floor_by_run = compared(other_kernels(), maps())
    runs = YardsticksByRun({"other kernels": floor_by_run} if runs_are_known else {}, {})
    return judge_output(found, Yardsticks({"other kernels": floor}, {}, 30, runs=runs), by_run=by_run)


def kinds(verdict: OutputVerdict) -> tuple[str, str]:
    return verdict.grade, verdict.reasons[0].kind


def test_a_run_that_is_wrong_is_not_excused_by_one_that_is_hard() -> None:
    """Without the runs one by one it is: the hard run differs by more."""
    wrong = maps()
    wrong[6, 10:30, 20:60] = np.arange(20)[:, None] % 3 + 8
    verdict = judged(wrong)
    assert kinds(verdict) == ("diverged", "farthest")
    assert verdict.reasons[0].numbers["index"] == 6
    assert verdict.reasons[0].names["part"] == "run"
    assert judged(wrong, runs_are_known=False).grade == "equivalent"


def test_the_hard_run_may_differ_as_much_as_it_does_with_other_kernels() -> None:
    other = other_kernels()
    other[HARD, 1:10, 5:] = 9
    assert judged(other).grade == "equivalent"


@pytest.mark.parametrize("run", [HARD, 5])
def test_a_run_without_an_object_is_diverged_where_other_kernels_see_one(run: int) -> None:
    empty = maps()
    empty[run] = 0
    assert kinds(judged(empty)) == ("diverged", "blank")


def test_a_run_in_which_other_kernels_see_no_object_either_may_be_without() -> None:
    empty = maps()
    empty[3] = 0
    found, by_run = compared(empty, maps())
    yardsticks = Yardsticks({"as empty": found}, {}, 30, runs=YardsticksByRun({"as empty": by_run}, {}))
    assert judge_output(found, yardsticks, by_run=by_run).grade == "equivalent"


def test_a_block_that_is_empty_in_every_run_is_diverged() -> None:
    torn = maps()
    torn[:, 0] = 0
    verdict = judged(torn)
    assert kinds(verdict) == ("diverged", "blank_block")
    assert (verdict.reasons[0].numbers["block"], verdict.reasons[0].numbers["blank"]) == (0, 10)


def test_a_block_that_is_empty_in_two_runs_alone_may_have_lost_a_speck() -> None:
    torn = maps()
    torn[2:4, 0] = 0
    assert all(reason.kind != "blank_block" for reason in judged(torn).reasons)


def test_a_map_that_is_moved_by_one_pixel_is_diverged_however_far_kernels_are_apart() -> None:
    assert kinds(judged(np.roll(maps(), 1, axis=2))) == ("diverged", "displaced")
