"""The rule for outputs: its six points, each worked out by hand on a few runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from evaltools.gates import verdict
from evaltools.gates.verdict import (
    PASSES,
    Grade,
    NoiseFloor,
    OutputVerdict,
    Seen,
    far_variants,
    judge_boxes,
    judge_output,
    worst,
)
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import RunDifference, differences_by_run, summarise_differences

Array = npt.NDArray[Any]
RANDOM = np.random.default_rng(3)
RUNS = [RANDOM.normal(0, 1, 64).astype(np.float32) for _ in range(10)]
STEPS = Scale(0.5, 0)


def seen(
    tests: Sequence[Array],
    references: Sequence[Array] = RUNS,
    scale: Scale | None = None,
    as_scores: bool = False,
    numbers: Sequence[int] | None = None,
) -> Seen:
    """The difference of some runs; ``numbers`` are theirs."""
    pairs = zip(tests, references, strict=True)
    parts = [compare_tensors(test, reference, scale, scale, as_scores) for test, reference in pairs]
    dtype = str(tests[0].dtype)
    runs = differences_by_run(dtype, parts, scale is not None)
    named = dict(zip(numbers or range(len(runs)), runs, strict=True))
    return Seen(named, summarise_differences("y", dtype, parts, dequantised=scale is not None))


def off(size: float, runs: Sequence[Array] = RUNS, only: int | None = None) -> list[Array]:
    """Each element off by a share of itself, up and down in turns; ``only`` in one run."""
    signs = np.where(np.arange(runs[0].size) % 2, 1, -1).reshape(runs[0].shape)
    return [
        (run * (1 + size * signs)).astype(run.dtype) if only is None or place == only else run
        for place, run in enumerate(runs)
    ]


def measured(floor: Sequence[float] = (), precisions: Mapping[str, float] | None = None, **changes: Any) -> NoiseFloor:
    """CPU variants and precisions that are off by so much."""
    return NoiseFloor(
        {f"variant {place}": seen(off(size)) for place, size in enumerate(floor)},
        {name: seen(off(size)) for name, size in (precisions or {}).items()},
        node_count=1,
        **changes,
    )


PRECISIONS = {"fp16": 1e-3, "bf16": 1e-2}


def grades(noise_floor: NoiseFloor, *sizes: float) -> list[Grade]:
    return [judge_output(seen(off(size)), noise_floor).grade for size in sizes]


def why(verdict: OutputVerdict) -> str:
    return "; ".join(verdict.reasons)


def test_the_documentation_has_the_rule_word_for_word() -> None:
    start = "A test is compared with the reference."
    rule = start + (verdict.__doc__ or "").partition(start)[2].rstrip()
    assert rule in (Path(__file__).resolve().parents[2] / "docs" / "compare.md").read_text()


def test_the_worst_grade_of_several() -> None:
    assert (worst(["fp16", "int8", "identical"]), worst(["diverged", "int8"])) == ("int8", "diverged")
    assert worst([]) == "identical"


def test_identical_is_a_grade_of_its_own_and_says_how_sure_it_is() -> None:
    found = judge_output(seen(RUNS), measured())
    assert (found.grade, why(found)) == (
        "identical",
        "identical in every element of 10 runs; 95 % confident: fewer than 26 % of such inputs differ",
    )


def test_twice_the_floor_is_equivalent_and_twice_a_precision_within_it() -> None:
    noise_floor = measured([1e-5, 0.0], PRECISIONS)
    sizes = (1.9e-5, 2.1e-5, 1.9e-3, 2.1e-3, 1.9e-2, 2.1e-2)
    assert grades(noise_floor, *sizes) == ["equivalent", "fp16", "fp16", "bf16", "bf16", "diverged"]


def test_what_copies_that_round_once_more_explain_is_open_up_to_one_and_a_half_times_the_worst() -> None:
    copies = {"int8, rounded once more": 1e-2, "int8, rounded once more (2)": 2e-2}
    assert grades(measured([1e-5], copies), 2.9e-2, 3.1e-2) == ["not decided", "diverged"]
    assert grades(measured([1e-5], {"int8": 2e-2}), 3.9e-2, 4.1e-2) == ["not decided", "diverged"]


def test_an_output_that_kernels_of_the_cpu_move_by_its_size_is_decided_by_no_operator() -> None:
    """It is rounding alone, as where two paths are subtracted; less than half of its size may be looked at."""
    drowned, amplified = (judge_output(seen(off(0.4)), measured([size])) for size in (0.6, 0.4))
    assert (drowned.grade, drowned.operators_may_decide) == ("not decided", False)
    assert "CPU kernels alone move this output by 0.6 of its size" in why(drowned)
    assert (amplified.grade, amplified.operators_may_decide) == ("not decided", True)


def test_one_run_in_ten_decides() -> None:
    noise_floor = measured([1e-5], PRECISIONS)
    assert judge_output(seen(off(0.05, only=7)), noise_floor).grade == "diverged"
    assert "run 7 is worst" in why(judge_output(seen(off(0.05, only=7)), noise_floor))


def test_where_variants_are_equal_a_few_roundings_are_granted() -> None:
    """Sixteen of 2^-24 for one node: 9.5e-7; of fp16 three, 3 * 2^-11, of bf16 two, 2^-7."""
    noise_floor = measured([0.0], {"fp16": 0.0, "bf16": 0.0})
    assert grades(noise_floor, 5e-7, 1.4e-3, 1.6e-3, 7e-3, 9e-3) == ["equivalent", "fp16", "bf16", "bf16", "diverged"]


def test_a_drift_of_a_hundredth_per_run_is_judged_where_it_has_come_to() -> None:
    """9 % in the last of ten runs, beside a precision of 2 %; over all runs together it is 5 %."""
    drifting = [(run * np.float32(1 + 0.01 * place)).astype(np.float32) for place, run in enumerate(RUNS)]
    assert judge_output(seen(drifting), measured([1e-5], {"bf16": 0.03})).grade == "diverged"


def test_one_run_halved_is_no_pass_on_a_model_that_amplifies_rounding() -> None:
    halved = [run * np.float32(0.5 if place == 3 else 1) for place, run in enumerate(RUNS)]
    assert judge_output(seen(halved), measured([0.3])).grade == "not decided"
    assert judge_output(seen(halved), measured([0.03])).grade == "diverged"


def test_a_class_that_is_dead_changes_an_answer_and_is_within_no_precision() -> None:
    """Of twenty pictures one has it as best, by little."""
    reference = [np.eye(10, dtype=np.float32)[run % 9] * 0.5 + np.float32(0.05) for run in range(20)]
    reference[7] = np.array([0.1] * 8 + [0.12, 0.13], np.float32)
    dead = [np.where(np.arange(10) == 9, 0, run).astype(np.float32) for run in reference]
    bf16 = seen([run * np.float32(1.1) for run in reference], reference, as_scores=True)
    verdict_on_it = judge_output(seen(dead, reference, as_scores=True), NoiseFloor({}, {"bf16": bf16}, 1))
    assert verdict_on_it.grade not in PASSES
    assert "answers changed: 1 of 20" in why(verdict_on_it)


def test_a_channel_that_is_off_is_not_lost_in_the_others() -> None:
    """One of 64 is half as large again: 0.06 of the run, or less beside large ones."""
    runs = [run * np.where(np.arange(64) == 5, 0.1, 1).astype(np.float32) for run in RUNS]
    larger = [run * np.where(np.arange(64) == 5, 1.5, 1).astype(np.float32) for run in runs]
    noise_floor = NoiseFloor({"variant": seen(off(1e-5, runs), runs)}, {"bf16": seen(off(0.02, runs), runs)}, 1)
    found = judge_output(seen(larger, runs), noise_floor)
    assert found.grade == "diverged"
    assert "channel 5 of axis 0 is off by 0.5" in why(found)


def test_a_channel_next_to_0_is_no_reason_by_itself() -> None:
    """Channel 5 is a hundredth of all: rounding of the whole moves it by 1e-4 of its own."""
    small = np.where(np.arange(64) == 5, 0.01, 1).astype(np.float32)
    runs = [run * small for run in RUNS]
    noise_floor = NoiseFloor({"variant": seen(off(5e-6, runs), runs)}, {"fp16": seen(off(1e-3, runs), runs)}, 1)
    rounded, larger = (
        [run * (1 + by * (np.arange(64) == 5)).astype(np.float32) for run in runs] for by in (1e-4, 1.5e-3)
    )
    found = [judge_output(seen(tests, runs), noise_floor) for tests in (rounded, larger)]
    assert [each.grade for each in found] == ["equivalent", "fp16"]
    assert found[1].reasons[0] == "channel 5 of axis 0 is off by 0.0015, where 1e-05 is explained by CPU kernels"


@pytest.mark.parametrize("axis", [1, 2, 3])
def test_a_score_that_died_beside_pixels_is_seen_on_whichever_axis_it_lies(axis: int) -> None:
    """Four coordinates about 300, and a score of 0.1: a ten-thousandth of all."""
    pixels, scores = RANDOM.uniform(100, 500, (10, 1, 4, 6, 7)), RANDOM.uniform(0, 0.2, (10, 1, 1, 6, 7))
    heads = np.moveaxis(np.concatenate([pixels, scores], axis=2), 2, axis + 1).astype(np.float32)
    number = (slice(None),) * (axis + 1) + (4,)
    dead, larger, rounded = heads.copy(), heads.copy(), heads.astype(np.float16).astype(np.float32)
    dead[number] = 0
    larger[number] *= 1.5
    runs = list(heads)
    noise_floor = NoiseFloor({"variant": seen(off(1e-6, runs), runs)}, {"fp16": seen(list(rounded), runs)}, 10)
    found = [judge_output(seen(list(tests), runs), noise_floor) for tests in (dead, larger, rounded, heads)]
    assert [each.grade for each in found] == ["diverged", "diverged", "fp16", "identical"]
    assert f"channel 4 of axis {axis} is off by 1, where" in why(found[0])


def test_a_channel_of_a_quantised_output_counts_but_for_one_quantum() -> None:
    """Row 7 of 8 is about 0, and counts as four quanta."""
    rows = np.repeat(np.arange(8), 8).reshape(8, 8)
    runs = [np.where(rows == 7, 0, RANDOM.integers(50, 100, (8, 8))).astype(np.int8) for _ in range(10)]
    by_one, by_nine = ([run + (rows == 7) * np.int8(step) for run in runs] for step in (1, 9))
    far = [run + (rows == 3) * np.int8(2) for run in by_one]
    noise_floor = NoiseFloor({"variant": seen(off(0.05, runs), runs, STEPS)}, {}, 1)
    found = [judge_output(seen(tests, runs, STEPS), noise_floor) for tests in (by_one, far, by_nine)]
    assert [each.grade for each in found] == ["equivalent", "equivalent", "diverged"]
    assert ["max 1 quantum" in why(found[0]), "max 2 quanta" in why(found[1])] == [True, True]


def test_a_variant_with_other_boxes_is_no_yardstick() -> None:
    """It loses 3 of 10 partners; the boxes that it has stay where they are."""
    lossy, right = (Seen({0: RunDifference(0.01, changed, 20)}) for changed in (6, 0))
    assert far_variants({"lossy": lossy, "right": right}, {"bf16": Seen({0: RunDifference(0.01, 1, 20)})}) == ["lossy"]
    assert not far_variants({"lossy": lossy}, {"bf16": Seen({0: RunDifference(0.01, 2, 20)})})


def test_what_a_model_amplifies_decides_only_where_the_difference_is_small() -> None:
    noise_floor = measured([1e-5], {"bf16": 0.2})
    assert grades(noise_floor, 0.019, 0.021, 0.39, 0.41) == ["bf16", "not decided", "not decided", "diverged"]
    assert "this model amplifies rounding" in why(judge_output(seen(off(0.1)), noise_floor))


def test_int8_excuses_no_model_that_is_int8_already_but_one_beside_its_float_model() -> None:
    assert grades(measured([1e-5], {"int8": 0.03}), 0.05) == ["not decided"]
    assert grades(measured([1e-5], {"int8": 0.03}, other_model=True), 0.05) == ["int8"]


def test_beside_another_model_twelve_roundings_are_granted() -> None:
    """12 * 2^-8 for one node is 0.047; it is not measured, and so amplifies nothing."""
    assert grades(measured([0.0], {}, other_model=True), 0.046, 0.048) == ["int8", "diverged"]


QUANTISED = [RANDOM.integers(-100, 100, 64).astype(np.int8) for _ in range(10)]


@pytest.mark.parametrize(("step", "grade"), [(1, "equivalent"), (2, "not decided"), (4, "diverged")])
def test_one_quantum_is_equivalent(step: int, grade: Grade) -> None:
    """Two of about 58, as int8 moves it; four are more than twice that."""
    moved = [(run + step).astype(np.int8) for run in QUANTISED]
    shaken = seen([(run + 2).astype(np.int8) for run in QUANTISED], QUANTISED, STEPS)
    smaller = replace(shaken, runs={run: replace(each, size=each.size * 0.9) for run, each in shaken.runs.items()})
    noise_floor = NoiseFloor({"variant": seen(QUANTISED, QUANTISED, STEPS)}, {"int8": smaller}, 1)
    assert judge_output(seen(moved, QUANTISED, STEPS), noise_floor).grade == grade


def scores(best: Sequence[int], second: Sequence[int]) -> list[Array]:
    """Runs of five classes with two close ones."""
    runs = []
    for first, other in zip(best, second, strict=True):
        run = np.array([1, 2, 3, 4, 5], np.uint8) * 10
        run[first], run[other] = 101, 100
        runs.append(run)
    return runs


def test_answers_that_changed_are_no_pass_however_close_the_classes_are() -> None:
    """The best and the second change places, which is one quantum each."""
    reference, swapped = scores([0, 1, 2, 3] * 5, [4] * 20), scores([4] * 20, [0, 1, 2, 3] * 5)
    one = [*swapped[:1], *reference[1:]]
    noise_floor = NoiseFloor({"variant": seen(reference, reference, STEPS, as_scores=True)}, {}, 1)
    found = [judge_output(seen(test, reference, STEPS, as_scores=True), noise_floor) for test in (one, swapped)]
    assert [verdict.grade for verdict in found] == ["not decided", "diverged"]
    assert "more answers changed than rounding explains, but few" in why(found[0])
    assert "answers changed: 1 of 20" in why(found[0])


@pytest.mark.parametrize(
    ("changed", "other_model", "grade"), [(10, True, "not decided"), (11, True, "diverged"), (3, False, "diverged")]
)
def test_beside_another_model_half_of_the_answers_may_change(changed: int, other_model: bool, grade: Grade) -> None:
    """Of twenty, with no precision that changes any; in one model a tenth at most is open."""
    reference, swapped = scores([0, 1, 2, 3] * 5, [4] * 20), scores([4] * 20, [0, 1, 2, 3] * 5)
    variant = seen(reference, reference, STEPS, as_scores=True)
    noise_floor = NoiseFloor({"variant": variant}, {"int8": variant}, 1, other_model=other_model)
    test = [*swapped[:changed], *reference[changed:]]
    assert judge_output(seen(test, reference, STEPS, as_scores=True), noise_floor).grade == grade


def test_a_pass_that_answers_alone_keep_from_equivalent_says_so() -> None:
    """One of twenty changed, with fp16 too and with no CPU kernels, which move the values as much."""
    reference, swapped = scores([0, 1, 2, 3] * 5, [4] * 20), scores([4] * 20, [0, 1, 2, 3] * 5)
    one = seen([*swapped[:1], *reference[1:]], reference, STEPS, as_scores=True)
    kernels = replace(one, runs={run: replace(each, changed=0) for run, each in one.runs.items()})
    found = judge_output(one, NoiseFloor({"variant": kernels}, {"fp16": one}, 1))
    assert found.grade == "fp16"
    assert found.reasons[0] == "1 of 20 answers changed in 20 runs, where CPU kernels change 0"


def test_few_answers_that_all_changed_are_not_called_few() -> None:
    """A variant changes two of four; the test all four, which is not decided by so few."""
    reference, swapped = scores([0, 1, 2, 3], [4] * 4), scores([4] * 4, [0, 1, 2, 3])
    variant = seen([*swapped[:2], *reference[2:]], reference, STEPS, as_scores=True)
    found = judge_output(seen(swapped, reference, STEPS, as_scores=True), NoiseFloor({"variant": variant}, {}, 1))
    assert found.grade == "not decided"
    assert "all answers changed, more than rounding explains" in why(found)
    assert "few" not in why(found)


def test_as_many_answers_may_change_as_in_what_explains_them() -> None:
    reference = scores([0, 1, 2, 3] * 5, [4] * 20)
    one = [*scores([4], [0]), *reference[1:]]
    variant = [*reference[:-1], *scores([4], [3])]
    noise_floor = NoiseFloor({"variant": seen(variant, reference, STEPS, as_scores=True)}, {}, 1)
    assert judge_output(seen(one, reference, STEPS, as_scores=True), noise_floor).grade == "equivalent"


def test_answers_are_compared_over_the_runs_of_the_noise_floor() -> None:
    """Of twenty runs two changed, which are among the four of the floor, where none did."""
    reference = scores([0, 1, 2, 3] * 5, [4] * 20)
    test = [*scores([4, 4], [0, 1]), *reference[2:]]
    floor = seen(reference[:4], reference[:4], STEPS, as_scores=True)
    found = judge_output(seen(test, reference, STEPS, as_scores=True), NoiseFloor({"variant": floor}, {}, 1))
    assert found.grade == "diverged", "two of four"


NOT_FINITE = "the test has 1 NaN of 640 values"
FAULTS: Mapping[str, Callable[[], list[Array]]] = {
    "the test's output is 7 everywhere": lambda: [np.full(64, 7, np.float32)] * 10,
    "the test's output is the same in every run": lambda: [RUNS[0]] * 10,
    "the outputs of 9 of 10 runs are earlier ones": lambda: [RUNS[0], *RUNS[:-1]],
    "in 1 of 10 runs one side has the same number everywhere": lambda: [np.zeros(64, np.float32), *RUNS[1:]],
    NOT_FINITE: lambda: [*RUNS[:-1], np.where(np.arange(64) == 3, np.nan, RUNS[-1]).astype(np.float32)],
    "10 denormal numbers": lambda: [np.where(np.arange(64) == 3, 1e-40, run).astype(np.float32) for run in RUNS],
    "the shapes of the outputs differ": lambda: [run[:63] for run in RUNS],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_broken_diverges_whatever_rounding_explains(fault: str) -> None:
    found = judge_output(seen(FAULTS[fault]()), measured([0.09], {"bf16": 9.0}))
    assert found.grade == "diverged"
    assert found.reasons[0].startswith(fault)


def test_a_reference_without_numbers_decides_nothing() -> None:
    runs = [*RUNS[:-1], np.full(64, np.nan, np.float32)]
    assert judge_output(seen(runs, runs), measured([0.0])).grade == "not decided"


def test_few_numbers_that_come_again_are_chance() -> None:
    """Two numbers of eight bits: outputs of different inputs coincide."""
    references = [np.array([value, 200 - value], np.uint8) for value in (10, 90, 50, 70, 30, 20, 40, 60, 80, 99)]
    tests = [np.clip(run + np.array([2, -2]), 0, 255).astype(np.uint8) for run in references]
    tests[1] = tests[0]
    references[1] = references[0] + np.uint8(1)
    shaken = seen([run + np.uint8(3) for run in references], references, STEPS)
    found = judge_output(seen(tests, references, STEPS), NoiseFloor({}, {"int8": shaken}, 1, other_model=True))
    assert found.grade == "int8"


def test_a_reference_with_few_outputs_shows_little() -> None:
    """Two of twenty runs are not 0."""
    reference = [np.zeros(1, np.float32)] * 18 + [np.array([value], np.float32) for value in (0.3, 0.7)]
    floor = NoiseFloor({"variant": seen(reference, reference)}, {}, 1)
    found = judge_output(seen([run * np.float32(1 + 1e-7) for run in reference], reference), floor)
    assert found.grade == "not decided"
    assert "there are 3 different outputs in 20 runs, which show little; try others" in why(found)


def test_interrupted_or_unmeasured_nothing_is_decided_but_what_needs_nothing() -> None:
    for noise_floor, said in (
        (measured([1e-5], missing="interrupted before the end"), "interrupted before the end"),
        (measured(), "no noise floor was measured (--noise_floor_runs)"),
    ):
        assert grades(noise_floor, 5e-7, 1e-2) == ["equivalent", "not decided"]
        assert said in why(judge_output(seen(off(1e-2)), noise_floor))
        assert judge_output(seen(RUNS), noise_floor).grade == "identical"
        assert judge_output(seen(FAULTS[NOT_FINITE]()), noise_floor).grade == "diverged"


def test_what_keeps_a_limit_before_the_time_is_over_is_decided() -> None:
    """More variants and precisions only make limits wider; a precision is granted three roundings, measured or not."""
    late = "not all was measured in time"
    with_floats = measured([1e-5], missing=late, has_floats=True)
    assert grades(with_floats, 1.9e-5, 2.3e-4, 1.4e-3, 7e-3, 1e-2) == [
        "equivalent", "fp16", "fp16", "bf16", "not decided",
    ]  # fmt: skip
    assert grades(measured([1e-5], missing=late), 2.3e-4) == ["not decided"]
    assert grades(measured([1e-5], {"fp16": 2e-3}, has_floats=True, missing=late), 3.9e-3) == ["fp16"]
    ended = measured([1e-5], missing="interrupted", interrupted=True, has_floats=True)
    assert grades(ended, 1.9e-5, 2.3e-4) == ["equivalent", "not decided"]


def test_differences_within_a_rounding_of_the_largest_value_inside_are_cancellation() -> None:
    """1000 * 2^-23 is 1.2e-4; the output itself is about 1e-4."""
    small = [run * np.float32(1e-4) for run in RUNS]
    noise_floor = NoiseFloor({"variant": seen(small, small)}, {"fp16": seen(small, small)}, 1, largest=1000.0)
    found = judge_output(seen(off(0.3, small), small), noise_floor)
    assert found.grade == "not decided"
    assert found.reasons[0].startswith("no difference is larger than one rounding of the largest value inside")
    assert judge_output(seen(off(0.3, small), small), replace(noise_floor, largest=0.1)).grade == "diverged"


def test_a_variant_that_is_broken_or_far_is_unusable() -> None:
    """Far is above 0.1, and above three times what the precisions move."""
    floor = {"near": seen(off(0.09)), "far": seen(off(0.5)), "still": seen([RUNS[0]] * 10)}
    assert far_variants(floor, {"bf16": seen(off(0.01))}) == ["far", "still"]
    assert far_variants(floor, {"bf16": seen(off(0.2))}) == ["still"]


def test_whole_numbers_count_beside_those_that_are_not_the_most_frequent() -> None:
    """Of 1000 pixels 20 are not background: 10 others are half of these."""
    reference = [np.where(np.arange(1000) % 50 == place, 3, 0) for place in range(10)]
    test = [np.where(np.arange(1000) % 100 == place, 5, run) for place, run in enumerate(reference)]
    assert {run.size for run in seen(test, reference).runs.values()} == {0.5}


def boxes(matched: int, lost: int = 0, overlap: float = 1.0) -> BoxAgreement:
    return BoxAgreement(matched, lost, lost, 0, overlap * matched, 0.0, 0.0)


BOX_FLOOR = Seen({0: RunDifference(0.001, 0, 20)})


@pytest.mark.parametrize(
    ("found", "grade"),
    [
        (boxes(10), "identical"),
        (boxes(10, overlap=0.999), "equivalent"),
        (boxes(10, overlap=0.98), "fp16"),
        (boxes(5, lost=5), "diverged"),
        (boxes(0, lost=1), "diverged"),
        (boxes(0), "not decided"),
    ],
)
def test_boxes_by_how_far_they_move_and_how_many_have_no_partner(found: BoxAgreement, grade: Grade) -> None:
    noise_floor = NoiseFloor({"variant": BOX_FLOOR}, {"fp16": Seen({0: RunDifference(0.02, 0, 20)})}, 1)
    assert judge_boxes({0: found}, noise_floor).grade == grade


def test_half_of_the_boxes_elsewhere_is_more_than_int8_explains() -> None:
    """Of boxes that matter the shaken model loses a seventh."""
    shaken = Seen({run: RunDifference(0.2, 3, 20) for run in range(10)})
    noise_floor = NoiseFloor({"variant": BOX_FLOOR}, {"int8": shaken}, 64)
    assert judge_boxes(dict.fromkeys(range(10), boxes(5, lost=5)), noise_floor).grade == "diverged"
