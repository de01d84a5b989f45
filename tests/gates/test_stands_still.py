"""Outputs that stand still, in a run or in a place, are seen however generous the tolerances of sizes are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from evaltools.gates.verdict import OutputVerdict, Yardsticks, judge_output
from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import OutputDifference, summarise_differences
from evaltools.report.words.verdicts import reasons_in_words

Values = npt.NDArray[Any]
SCALE = Scale(1 / 256, 0)


def difference(test: Values, reference: Values, scale: Scale | None = SCALE) -> OutputDifference:
    parts = [compare_tensors(*pair, scale, scale) for pair in zip(test, reference, strict=True)]
    return summarise_differences("y", reference.dtype.name, parts, dequantised=scale is not None)


def generous(found: OutputDifference, **changes: Any) -> Yardsticks:
    """A CPU variant that is as far away, and stands still nowhere."""
    moving = replace(found, repeated=0, late=0, displaced=0, **changes)
    return Yardsticks({"variant": moving}, {"int8": moving}, 30)


def decisive(verdict: OutputVerdict) -> str:
    return f"{verdict.grade}: {reasons_in_words(verdict.reasons[:1])}"


def scores(runs: int = 20, flattest: int = 9) -> Values:
    """Quantised scores of 300 classes: one run has none above 9 quanta, the others a best one."""
    found = np.random.default_rng(1).integers(0, 5, (runs, 300)).astype(np.uint8)
    found[np.arange(runs), np.arange(runs)] = 200
    found[7] = np.arange(300) % (flattest + 1)
    return found


@pytest.mark.parametrize("side", ["test", "reference"])
def test_a_run_without_numbers_is_diverged_even_if_its_numbers_are_small(side: str) -> None:
    """All the others are equal; the CPU variants differ by more than the whole of that run."""
    faulty, whole = scores(), scores()
    faulty[7] = 0
    found = difference(faulty, whole) if side == "test" else difference(whole, faulty)
    assert found.blank == 1
    verdict = judge_output(found, generous(found, blank=0))
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "blank")


def test_runs_that_are_level_on_cpu_kernels_too_may_be_level() -> None:
    faulty = scores()
    faulty[7] = 0
    found = difference(faulty, scores())
    assert judge_output(found, generous(found)).grade != "diverged"


def test_a_run_of_single_quanta_may_be_level() -> None:
    faulty, whole = scores(flattest=1), scores(flattest=1)
    faulty[7], faulty[3, 3] = 0, 196
    found = difference(faulty, whole)
    assert found.blank == 0


def test_few_numbers_may_be_the_same_by_chance() -> None:
    whole = np.array([[120 + run, 136 - run] for run in range(12)], np.uint8)
    assert difference(np.full_like(whole, 128), whole).blank == 0


def test_a_map_of_classes_that_is_level_in_one_run() -> None:
    """A twentieth of the map is of another class in every run; three pixels alone may be rounding."""
    whole = np.zeros((10, 400), np.int64)
    whole[:, :20] = 1
    faulty = whole.copy()
    faulty[4] = 0
    assert difference(faulty, whole, None).blank == 1
    whole[:, 3:20] = faulty[:, 3:20] = 0
    assert difference(faulty, whole, None).blank == 0


def classes(runs: int = 10) -> Values:
    """Maps of 64 x 64 classes with a border that moves by one column a run."""
    found = np.zeros((runs, 1, 64, 64), np.int64)
    for run in range(runs):
        found[run, 0, :, 20 + run :] = 1
    return found


def a_block_zero(maps: Values) -> None:
    maps[:, 0, 32:34] = 0


def a_column_zero(maps: Values) -> None:
    maps[:, 0, :, 50] = 0


@pytest.mark.parametrize(("fault", "place"), [(a_block_zero, "block 32 is 0."), (a_column_zero, "channel 50 is ")])
def test_a_place_of_a_map_of_classes_that_is_never_written_is_diverged(fault: Any, place: str) -> None:
    """The CPU variant moves a border in as many pixels, wherever in the map."""
    faulty, floor = classes(), classes()
    fault(faulty)
    random = np.random.default_rng(3)
    floor[random.random(floor.shape) < 0.015] = 2
    variant = difference(floor, classes(), None)
    verdict = judge_output(difference(faulty, classes(), None), Yardsticks({"variant": variant}, {}, 30))
    assert decisive(verdict).startswith(f"diverged: {place}")
    assert "of its elements differ, more than rounding to int8 explains" in decisive(verdict)
    other = judge_output(difference(np.roll(floor, 1, axis=2), np.roll(classes(), 1, axis=2), None),
                         Yardsticks({"variant": variant}, {}, 30))  # fmt: skip
    assert other.grade == "equivalent"


def test_a_list_of_numbers_has_no_places() -> None:
    whole = np.arange(40).reshape(4, 10)
    found = difference(whole, whole + 1, None)
    assert (found.farthest_channel, found.farthest_block) == (None, None)


def test_a_precision_that_moves_a_map_in_one_place_explains_that() -> None:
    """Rounding to fp16 moves a column as well: three times as many pixels of it are granted."""
    rounded, found = classes(), classes()
    rounded[:, 0, :15, 40], found[:, 0, :28, 40] = 5, 5
    yardsticks = Yardsticks({}, {"fp16": difference(rounded, classes(), None)}, 30)
    assert judge_output(difference(found, classes(), None), yardsticks).grade == "fp16"
    spread = classes()
    spread[:, 0, np.arange(15), np.arange(15)] = 5
    yardsticks = Yardsticks({}, {"fp16": difference(spread, classes(), None)}, 30)
    verdict = judge_output(difference(found, classes(), None), yardsticks)
    assert decisive(verdict).startswith("diverged: channel 40 is 0.43 of its elements differ")


def late(values: Values) -> Values:
    return np.concatenate((values[:1], values[:-1]))


def wide(dtype: str) -> Values:
    """Twenty runs of 1001 numbers."""
    found = np.random.default_rng(5).integers(0, 40, (20, 1001))
    return found.astype(dtype)


@pytest.mark.parametrize(("dtype", "scale"), [("uint8", SCALE), ("float32", None), ("int64", None)])
@pytest.mark.parametrize("side", ["test", "reference"])
def test_a_part_that_is_always_a_run_late_is_diverged(dtype: str, scale: Scale | None, side: str) -> None:
    """The last sixteenth, which begins inside one of the 32 parts."""
    faulty = wide(dtype)
    faulty[:, -62:] = late(faulty[:, -62:])
    sides = (faulty, wide(dtype)) if side == "test" else (wide(dtype), faulty)
    found = difference(*sides, scale)
    assert (found.late, found.late_part) == (0, 19)
    verdict = judge_output(found, generous(found, late_part=0))
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "late_part")


def test_a_part_that_hardly_moves_may_come_late() -> None:
    """Two of twenty runs have other numbers there; in four runs they come a run late."""
    whole = wide("uint8")
    whole[:, -62:] = 3
    whole[[4, 11], -62:] = 9
    faulty = whole.copy()
    faulty[:, -62:] = late(faulty[:, -62:])
    found = difference(faulty, whole)
    assert found.late_part == 4
    assert judge_output(found, generous(found)).grade != "diverged"


def test_an_output_of_few_numbers_has_no_parts() -> None:
    whole = wide("float32")[:, :15]
    found = difference(late(whole), whole, None)
    assert (found.late, found.late_part) == (19, 0)


def two_scores(runs: int = 40) -> Values:
    """Two scores that add up to 255; half of the runs are within a few quanta of a certain answer."""
    random = np.random.default_rng(2)
    near = np.where(np.arange(runs) % 2, random.integers(0, 6, runs), random.integers(0, 256, runs))
    found: Values = np.stack((near, 255 - near), axis=1).astype(np.uint8)
    return found


@pytest.mark.parametrize("most", [2, 8])
def test_few_scores_may_become_those_of_another_run_by_rounding(most: int) -> None:
    """They are near each other, or no farther apart in these runs than in the others."""
    random = np.random.default_rng(6)
    moved = two_scores() + random.integers(-most, most + 1, (40, 2))
    found = difference(np.clip(moved, 0, 255).astype(np.uint8), two_scores())
    assert found.repeated > 0
    reasons = judge_output(found, generous(found)).reasons
    assert all(reason.kind != "repeated" for reason in reasons)


def test_few_scores_that_change_places_between_runs_are_no_rounding() -> None:
    whole = two_scores()
    swapped = whole.reshape(20, 2, 2)[:, ::-1].reshape(40, 2)
    found = difference(swapped, whole)
    assert found.repeated_far > 20
    assert decisive(judge_output(found, generous(found))).startswith("diverged: the outputs of ")
