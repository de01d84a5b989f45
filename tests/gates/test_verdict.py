"""The ladder of verdicts: its rungs are worked out by hand from the yardsticks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from evaltools.gates.verdict import Grade, OutputVerdict, Yardsticks, broken_variants, judge_boxes, judge_output, worst
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.difference import Scale, compare_tensors
from evaltools.metrics.output_difference import OutputDifference, Quanta, Scores, Values, summarise_differences
from evaltools.report.words.verdicts import reasons_in_words


def held_against(
    floor: Sequence[OutputDifference], precisions: Mapping[str, OutputDifference], node_count: int
) -> Yardsticks:
    return Yardsticks({f"variant {number}": found for number, found in enumerate(floor)}, precisions, node_count)


RAMP = np.linspace(1, 2, 100, dtype=np.float32)
RUNS = [compare_tensors(RAMP + np.float32(run), RAMP + np.float32(run + 0.9)) for run in range(2)]
WHOLE = summarise_differences("y", "float32", RUNS)
VARIED = replace(WHOLE, farthest_run=None, farthest_block=None, farthest_channel=None, gain=None, offset=None, max=0.0)
"""Judged by its size over all elements alone."""
UNMEASURED = held_against([], {}, 100)


def real(relative_rms: float | None, dtype: str = "float32") -> OutputDifference:
    return replace(VARIED, dtype=dtype, relative_rms=relative_rms)


def quantised(rms: float, largest: int, dtype: str = "uint8") -> OutputDifference:
    """Of so many elements that chance has no part in it."""
    quanta = Quanta(1, 1, 1, 1, largest, rms)
    return replace(
        VARIED, kind="quantised", dtype=dtype, quanta=quanta, relative_rms=0.09, elements=10**9, compared=10**9
    )


def exact(different: int) -> OutputDifference:
    return replace(VARIED, kind="exact", dtype="int32", elements=1000, different=different)


def boxes(unmatched: int, shift: float = 0.0) -> BoxAgreement:
    """Of 200 boxes (both sides together), some have no partner."""
    return BoxAgreement((200 - unmatched) // 2, unmatched, 0, 0, 0.0, 0.0, shift)


def grades(yardsticks: Yardsticks, *found: OutputDifference) -> list[Grade]:
    return [judge_output(one, yardsticks).grade for one in found]


def why(verdict: OutputVerdict) -> str:
    return reasons_in_words(verdict.reasons)


def test_the_worst_grade_of_several() -> None:
    assert (worst(["fp16", "int8", "bf16", "equivalent"]), worst(["diverged", "int8"])) == ("int8", "diverged")
    assert worst([]) == "equivalent"


def test_without_yardsticks_floats_are_judged_by_roundings_and_nodes() -> None:
    """16 roundings of 2^-24 * sqrt(100) = 9.5e-6; 4 * 2^-11 * sqrt(100) = 0.0195; 4 * 2^-8 * 10 = 0.156."""
    found = [real(rms) for rms in (9.5e-6, 9.6e-6, 0.0195, 0.0196, 0.156, 0.157)]
    assert grades(UNMEASURED, *found) == ["equivalent", "fp16", "fp16", "bf16", "bf16", "diverged"]


def test_measured_yardsticks_are_doubled_and_the_floor_quadrupled() -> None:
    measured = {"fp16": real(1e-3), "bf16": real(8e-3), "int8": real(0.03)}
    yardsticks = held_against([real(1e-6), real(1e-5), real(0.0)], measured, 1)
    found = [real(rms) for rms in (3.9e-5, 4.1e-5, 1.9e-3, 2.1e-3, 0.0159, 0.0161, 0.059, 0.061)]
    expected = ["equivalent", "fp16", "fp16", "bf16", "bf16", "int8", "int8", "diverged"]
    assert grades(yardsticks, *found) == expected


def test_an_output_that_a_precision_does_not_move_may_be_off_by_a_rounding() -> None:
    """2^-11 = 4.88e-4; for int8 one rounding per node, 2^-8 * sqrt(100) = 0.039."""
    yardsticks = held_against([], {"fp16": real(0.0), "int8": real(0.0)}, 100)
    found = [real(rms) for rms in (4.8e-4, 4.9e-4, 0.039, 0.04)]
    assert grades(yardsticks, *found) == ["fp16", "int8", "int8", "diverged"]


def test_half_of_the_signal_lost_is_diverged_whatever_the_yardsticks() -> None:
    yardsticks = held_against([], {"fp16": real(0.9), "bf16": real(0.9)}, 10**6)
    assert grades(yardsticks, real(0.5), real(0.51)) == ["not decided", "diverged"]


def test_what_a_model_amplifies_decides_only_where_the_difference_is_a_tenth_of_it() -> None:
    yardsticks = held_against([real(2e-6)], {"fp16": real(1e-3), "bf16": real(0.2)}, 1)
    assert grades(yardsticks, real(0.019), real(0.021), real(0.4), real(0.41)) == [
        "bf16",
        "not decided",
        "not decided",
        "diverged",
    ]
    noisy = held_against([real(0.2)], {}, 1)
    assert grades(noisy, real(0.019), real(0.021)) == ["equivalent", "not decided"]


def test_float16_outputs_may_be_off_by_their_own_rounding() -> None:
    assert grades(UNMEASURED, real(4.8e-4, "float16"), real(4.9e-4, "float16")) == ["equivalent", "fp16"]


def test_a_difference_from_an_all_zero_reference_is_diverged() -> None:
    verdict = judge_output(real(None), UNMEASURED)
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "no_relative_size")


def test_one_quantum_everywhere_is_equivalent() -> None:
    assert grades(UNMEASURED, quantised(1.0, 1)) == ["equivalent"]


def test_without_yardsticks_quantised_outputs_may_be_off_by_one_quantum_on_average() -> None:
    found = [replace(quantised(rms, most), relative_rms=0.2) for rms, most in ((0.3, 2), (1.0, 9), (1.01, 9))]
    assert grades(UNMEASURED, *found) == ["int8", "int8", "diverged"]


def test_a_few_elements_may_be_off_by_more() -> None:
    """16 elements: sqrt(1 + 4/sqrt(16)) = 1.414."""
    yardsticks = held_against([quantised(0.1, 1)], {"int8": quantised(1.0, 3)}, 1)
    found = [replace(quantised(rms, 9), elements=16, compared=16) for rms in (2.82, 2.83)]
    assert grades(yardsticks, *found) == ["int8", "diverged"]


def test_quantised_outputs_against_measured_noise() -> None:
    """Equivalent up to twice the noise, in the mean (1.0) and at most (4); int8 up to four times (2.0)."""
    yardsticks = held_against([quantised(0.5, 2), quantised(0.1, 1)], {}, 1)
    found = [quantised(1.0, 4), quantised(1.0, 5), quantised(2.0, 5), quantised(2.1, 5)]
    assert grades(yardsticks, *found) == ["equivalent", "int8", "int8", "diverged"]


def test_quantised_outputs_without_a_noise_floor_are_judged_by_their_relative_size() -> None:
    """4 * 2^-8 * sqrt(100) = 0.156 of the reference's root mean square."""
    small, large = (replace(quantised(9.0, 30), relative_rms=size) for size in (0.15, 0.17))
    assert grades(held_against([], {}, 100), small, large) == ["int8", "diverged"]


def test_a_step_of_int8_is_257_of_int16() -> None:
    span = replace(VARIED.reference, low=-32768.0, high=32767.0)
    found = [
        replace(quantised(rms, 300, "int16"), relative_rms=0.2, max=300.0, reference=span) for rms in (256.9, 257.1)
    ]
    assert grades(UNMEASURED, *found) == ["int8", "diverged"]


def test_a_step_of_int8_is_relative_to_what_the_values_span() -> None:
    """Values that span 51 of 255 quanta: a fifth of a quantum on average."""
    narrow = replace(VARIED.reference, low=0.0, high=51.0)
    found = [replace(quantised(rms, 9), relative_rms=0.2, max=9.0, reference=narrow) for rms in (0.2, 0.21)]
    assert grades(UNMEASURED, *found) == ["int8", "diverged"]


def test_exact_outputs_without_yardsticks() -> None:
    assert grades(UNMEASURED, exact(1), exact(2)) == ["int8", "diverged"]


def test_exact_outputs_against_yardsticks() -> None:
    """2 * 1 %, 2 * 3 %, 2 * 5 %; without int8 there is nothing beyond."""
    yardsticks = held_against([exact(10), exact(0)], {"fp16": exact(30), "bf16": exact(50)}, 1)
    found = [exact(different) for different in (20, 21, 60, 61, 100, 101)]
    assert grades(yardsticks, *found) == ["equivalent", "fp16", "fp16", "bf16", "bf16", "diverged"]


def test_identical_outputs_are_equivalent() -> None:
    verdict = judge_output(replace(VARIED, different=0), UNMEASURED)
    assert verdict.grade == "equivalent"
    assert verdict.reasons[0].kind == "identical"
    assert pytest.approx((1 - (verdict.reasons[0].numbers["at_most"] or 0)) ** 2) == 0.05


def test_a_constant_on_both_sides_is_judged_by_its_value() -> None:
    test, reference = np.full(4, 1.0, np.float32), np.full(4, 1.001, np.float32)
    found = summarise_differences("y", "float32", [compare_tensors(test, reference)] * 2)
    assert grades(UNMEASURED, found) == ["fp16"]


NAN = replace(VARIED.test, nan=2)
GENEROUS = held_against([real(1.0)], {"int8": real(1.0)}, 10**6)


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (replace(VARIED, same_shape=False), "the shapes of the outputs differ"),
        (replace(VARIED, test=NAN, compared=198), "the test has 2 NaN of 200 values"),
        (
            replace(VARIED, test=replace(NAN, infinite=1), reference=NAN, compared=197, same_not_finite=2),
            "the test has 2 NaN and 1 infinite and the reference has 2 NaN of 200 values",
        ),
        (replace(VARIED, never_written=7), "7 denormal numbers"),
    ],
)
def test_damage_beats_every_figure_and_every_tolerance(damaged: OutputDifference, reason: str) -> None:
    verdict = judge_output(replace(damaged, relative_rms=1e-9), GENEROUS)
    assert (verdict.grade, verdict.tolerances) == ("diverged", {})
    assert why(verdict).startswith(reason)
    assert grades(GENEROUS, real(1e-9)) == ["equivalent"]


def test_nothing_can_be_told_where_the_reference_itself_has_nan() -> None:
    both = replace(VARIED, test=NAN, reference=NAN, compared=198, same_not_finite=2)
    assert grades(UNMEASURED, both) == ["not decided"]


def test_the_same_infinities_on_both_sides_are_equal() -> None:
    values = np.array([1.0, -np.inf, 3.0], np.float32)
    near = np.array([1.0, -np.inf, 3.0000002], np.float32)
    for test in (values, near):
        found = summarise_differences("y", "float32", [compare_tensors(test, values)])
        assert grades(UNMEASURED, found) == ["equivalent"]
    other = summarise_differences("y", "float32", [compare_tensors(-values, values)])
    assert grades(GENEROUS, other) == ["diverged"]


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (replace(VARIED.test, constant=True, low=0.0), "the test's output is 0 everywhere"),
        (replace(VARIED.test, distinct_outputs=1), "the test's output is the same in every run"),
    ],
)
def test_an_output_that_stands_still_is_diverged_unless_the_difference_is_noise(test: Values, reason: str) -> None:
    small = judge_output(replace(VARIED, test=test, relative_rms=1e-9), UNMEASURED)
    large = judge_output(replace(VARIED, test=test, relative_rms=1e-3), UNMEASURED)
    assert (small.grade, large.grade) == ("equivalent", "diverged")
    assert why(large).startswith(reason)


def test_a_single_run_says_nothing_about_the_input() -> None:
    single = replace(real(1e-9), runs=1, test=replace(VARIED.test, distinct_outputs=1))
    assert grades(UNMEASURED, single) == ["equivalent"]


def graded(found: BoxAgreement, floor: list[BoxAgreement], precisions: Mapping[str, BoxAgreement]) -> Grade:
    return judge_boxes(found, floor, precisions).grade


def test_boxes_without_yardsticks() -> None:
    assert [graded(boxes(lost), [], {}) for lost in (0, 8, 12)] == ["equivalent", "int8", "diverged"]


def test_boxes_against_yardsticks() -> None:
    """2 * 2 %, 2 * 5 %, 2 * 10 %; without int8 there is nothing beyond."""
    precisions = {"fp16": boxes(10), "bf16": boxes(20)}
    found = [graded(boxes(lost), [boxes(4), boxes(0)], precisions) for lost in (6, 10, 18, 22, 38, 42)]
    assert found == ["equivalent", "fp16", "fp16", "bf16", "bf16", "diverged"]


def test_scores_of_boxes_that_moved_more_than_among_cpu_variants_are_not_equivalent() -> None:
    precisions = {"bf16": boxes(0, 0.02)}
    assert graded(boxes(0, 0.02), [boxes(0, 0.01), boxes(0)], precisions) == "equivalent"
    assert graded(boxes(0, 0.021), [boxes(0, 0.01)], precisions) == "bf16"
    assert graded(boxes(0, 0.041), [boxes(0, 0.01)], precisions) == "diverged"
    assert (graded(boxes(0, 9e-6), [], {}), graded(boxes(0, 2e-5), [], {})) == ("equivalent", "int8")
    assert graded(boxes(0, 0.45), [], {}) == "diverged", "all scores are others"


def test_boxes_that_drift_are_not_equivalent() -> None:
    drifted = replace(boxes(0), moved=0.43)
    assert graded(drifted, [boxes(0)], {"fp16": boxes(0)}) == "diverged"
    assert graded(drifted, [replace(boxes(0), moved=0.3)], {}) == "equivalent"


def test_boxes_of_another_class_have_no_partner() -> None:
    assert graded(BoxAgreement(100, 0, 0, 6, 100.0, 0.0, 0.0), [], {}) == "diverged"


RUN = np.random.default_rng(5).normal(size=(40, 8, 16)).astype(np.float32)


def over_runs(test: npt.NDArray[Any], reference: npt.NDArray[Any] = RUN) -> OutputDifference:
    """Forty runs of an output of 8 x 16, against the same with a rounding of fp16 in it, or against others."""
    pairs = zip(test, reference, strict=True)
    return summarise_differences("y", "float32", [compare_tensors(*pair) for pair in pairs])


ROUNDED = RUN.astype(np.float16).astype(np.float32)
BY_PRECISION = held_against([over_runs(RUN)], {"fp16": over_runs(ROUNDED), "int8": over_runs(RUN * 1.02)}, 10)


def test_a_rounding_everywhere_is_within_its_precision() -> None:
    assert judge_output(over_runs(ROUNDED), BY_PRECISION).grade == "fp16"


def one_run_flipped(values: npt.NDArray[np.float32]) -> None:
    values[17] *= -1


def one_channel_larger(values: npt.NDArray[np.float32]) -> None:
    values[:, :, 5] *= 1.5


def one_corner_zero(values: npt.NDArray[np.float32]) -> None:
    values.reshape(40, -1)[:, :2] = 0


def one_value_cut_off(values: npt.NDArray[np.float32]) -> None:
    values[values == values.max()] = 2.0


@pytest.mark.parametrize(
    ("fault", "part"),
    [
        (one_run_flipped, "run 17 "),
        (one_channel_larger, "channel 5 "),
        (one_corner_zero, "block 0 "),
        (one_value_cut_off, "the largest difference "),
    ],
)
def test_an_error_that_is_small_in_the_sum_is_seen_in_its_place(
    fault: Callable[[npt.NDArray[np.float32]], None], part: str
) -> None:
    faulty = RUN.copy()
    fault(faulty)
    generous = held_against([], {"int8": replace(over_runs(RUN * 1.02), relative_rms=0.2)}, 1)
    found = over_runs(faulty)
    assert found.relative_rms is not None
    assert found.relative_rms < 0.4
    verdict = judge_output(found, generous)
    assert verdict.grade == "diverged"
    assert why(verdict).startswith(part), why(verdict)


def test_an_output_given_twice_is_diverged_where_the_references_are_not_the_same() -> None:
    faulty = RUN.copy()
    faulty[9] = faulty[8]
    verdict = judge_output(over_runs(faulty), GENEROUS)
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "repeated")
    assert verdict.reasons[0].numbers == {"repeated": 1, "runs": 40}


@pytest.mark.parametrize("side", ["test", "reference"])
def test_an_output_that_comes_a_run_late_is_diverged(side: str) -> None:
    late = np.concatenate([RUN[:1], RUN[:-1]])
    pairs = zip(late, RUN, strict=True) if side == "test" else zip(RUN, late, strict=True)
    found = summarise_differences("y", "float32", [compare_tensors(*pair) for pair in pairs])
    assert found.repeated == 39
    verdict = judge_output(found, GENEROUS)
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "repeated")


def test_an_output_that_is_cut_off_is_diverged_unless_another_model_is() -> None:
    """Of 5120 normal numbers, about 200 lie beyond 2 on each side."""
    found = over_runs(np.clip(RUN, -2.0, 2.0))
    verdict = judge_output(found, GENEROUS)
    assert (verdict.grade, verdict.reasons[0].names) == ("diverged", {"side": "test", "end": "largest"})
    assert found.test.at_high == np.count_nonzero(RUN >= 2)
    assert verdict.reasons[0].numbers["value"] == 2
    other_model = replace(GENEROUS, other_model=True)
    assert all(reason.kind != "saturated" for reason in judge_output(found, other_model).reasons)


def over_quantised_runs(test: npt.NDArray[Any], reference: npt.NDArray[Any]) -> OutputDifference:
    pairs = zip(test, reference, strict=True)
    parts = [compare_tensors(*pair, Scale(1 / 256, -128), Scale(1 / 256, -128)) for pair in pairs]
    return summarise_differences("y", "int8", parts)


def test_scores_that_saturate_may_come_twice() -> None:
    """Of ten classes one has nearly all; rounding takes the rest away in one run, which then equals another run."""
    best = np.arange(20) % 10
    reference = np.full((20, 10), -128, np.int8)
    reference[np.arange(20), best] = 127
    reference[np.arange(10, 20), (best[10:] + 1) % 10] += 5
    test = reference.copy()
    test[13] = test[3]
    found = over_quantised_runs(test, reference)
    assert found.repeated == 1
    yardsticks = Yardsticks({}, {"int8": replace(found, repeated=0)}, 100)
    assert judge_output(found, yardsticks).reasons[0].kind != "repeated"


def test_a_few_whole_numbers_that_come_a_run_late_every_time_are_diverged() -> None:
    """Two scores that move by one or two quanta: each step may be rounding, all of them being late is none."""
    steps = np.array([0, 1, 3, 2, 2, 1, 3, 2, 4, 2, 1, 3], np.int8)
    reference = np.stack((steps, -steps), axis=1)
    late = np.concatenate([reference[:1], reference[:-1]])
    generous = Yardsticks({}, {"int8": over_quantised_runs(reference + np.int8(1), reference)}, 100)
    found = over_quantised_runs(late, reference)
    assert found.late == np.count_nonzero(np.diff(steps)) == 10
    assert judge_output(found, generous).grade == "diverged"
    late[5] += 1
    assert over_quantised_runs(late, reference).late == 0


def test_runs_that_change_places_are_diverged() -> None:
    """Two of twelve runs, of outputs that differ little between the runs."""
    random = np.random.default_rng(3)
    reference = (100 * random.standard_normal(200) + random.standard_normal((12, 200))).astype(np.float32)
    test = reference.copy()
    test[[2, 9]] = reference[[9, 2]]
    found = over_runs(test, reference)
    assert found.repeated == 2
    verdict = judge_output(found, held_against([], {"int8": replace(found, repeated=0)}, 1))
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "repeated")


def test_a_factor_and_an_offset_are_no_rounding() -> None:
    """The same size as noise is within int8; alike in all elements it is not."""
    random = np.random.default_rng(4)
    reference = random.standard_normal((12, 200)) + 1.0
    size = np.sqrt(np.mean(np.square(reference)))
    noise = over_runs(reference + 0.1 * size * random.standard_normal((12, 200)), reference)
    larger, above = over_runs(1.1 * reference, reference), over_runs(reference + 0.1 * size, reference)
    mean = 0.1 * reference.mean() / size
    for found, expected in ((larger.gain, 0.1), (larger.offset, mean), (above.offset, 0.1)):
        assert found is not None
        assert found.value == pytest.approx(expected)
        assert found.of_runs == pytest.approx(expected, rel=0.05)
    yardsticks = held_against([], {"int8": noise}, 1)
    again = over_runs(reference + 0.1 * size * random.standard_normal((12, 200)), reference)
    assert grades(yardsticks, again, larger, above) == ["int8", "diverged", "diverged"]
    below = over_runs(reference - 0.1 * size, reference)
    words = [why(judge_output(found, yardsticks)) for found in (larger, below)]
    assert "10 % larger than the reference's" in words[0]
    assert "below the reference's by 10 %" in words[1]
    assert grades(replace(yardsticks, other_model=True), larger) == ["int8"]


def test_whole_numbers_that_hardly_move_may_stand_still() -> None:
    """Three pixels in 12 000 of the reference are of another class, or one score moves by two quanta in one run."""
    reference = np.zeros((12, 1000), np.int64)
    reference[0, 0] = reference[5, 7] = reference[9, 9] = 1
    pairs = zip(np.zeros_like(reference), reference, strict=True)
    labels = summarise_differences("y", "int64", [compare_tensors(*pair) for pair in pairs])
    assert judge_output(labels, UNMEASURED).reasons[0].kind == "different_elements"
    scores = np.full((12, 100), 7, np.int8)
    moved = scores.copy()
    moved[4, :30] = 9
    assert judge_output(over_quantised_runs(scores, moved), UNMEASURED).reasons[0].kind != "constant"
    moved[:, 0] = np.arange(12)
    assert judge_output(over_quantised_runs(scores, moved), UNMEASURED).reasons[0].kind == "constant"


def test_whole_numbers_that_stand_still_beside_a_reference_that_hardly_moves_are_no_pass() -> None:
    reference = np.full((20, 2), [10, -10], np.int8)
    reference[::3] = [12, -12]
    frozen = np.full_like(reference, [10, -10])
    floor = over_quantised_runs(reference, reference + np.array([1, 0], np.int8))
    coarse = over_quantised_runs(reference, reference + np.array([4, -4], np.int8))
    verdict = judge_output(over_quantised_runs(frozen, reference), held_against([floor], {"int8": coarse}, 30))
    assert (verdict.grade, verdict.reasons[0].kind) == ("not decided", "may_stand_still")
    assert verdict.reasons[0].numbers == {"distinct": 2, "runs": 20}
    also = over_quantised_runs(frozen, reference)
    assert judge_output(over_quantised_runs(frozen, reference), held_against([also], {}, 30)).grade == "equivalent"
    near = over_quantised_runs(frozen, np.clip(reference, -11, 11))
    assert judge_output(near, held_against([floor], {}, 30)).grade == "equivalent", "a quantum is rounding"


def test_a_score_that_moves_by_single_quanta_and_comes_a_run_late_is_diverged() -> None:
    """Two roundings of the same scores are as far apart, but not those of the run before."""
    scores = np.array([3, 4, 5, 4, 3, 5, 3, 4, 5, 3, 5, 4, 3, 5, 4, 3, 4, 5, 3, 4], np.int8)[:, None] * [[1, -1]]
    reference = scores.astype(np.int8)
    floor = over_quantised_runs(reference, reference + np.array([1, 0], np.int8))
    late = np.concatenate((reference[:1], reference[:-1]))
    verdict = judge_output(over_quantised_runs(late, reference), held_against([floor], {}, 30))
    assert verdict.grade == "diverged"
    assert verdict.reasons[0].kind == "repeated"


def test_scores_that_come_again_on_the_right_side_too_may_come_again() -> None:
    """Eight inputs give one and the same class all of the score; rounding adds three and takes one of these away."""
    scores = np.zeros((20, 12), np.int8)
    scores[:, 0], scores[:, 1] = 100, np.arange(20)
    scores[:8, 1] = 0
    test = scores.copy()
    test[8:11, 1], test[0, 1] = 0, 9
    found = over_quantised_runs(test, scores)
    assert found.repeated > 2
    assert all(reason.kind != "repeated" for reason in judge_output(found, UNMEASURED).reasons)
    late = np.concatenate((scores[:1], scores[:-1]))
    assert judge_output(over_quantised_runs(late[6:], scores[6:]), UNMEASURED).reasons[0].kind == "repeated"


@pytest.mark.parametrize("places", [1, -1])
def test_elements_that_stand_one_place_off_are_diverged_however_generous_the_tolerance(places: int) -> None:
    smooth = np.cumsum(np.random.default_rng(2).standard_normal((20, 600)), axis=1).astype(np.float32) + 40
    found = over_runs(np.roll(smooth, places, axis=1), smooth)
    assert found.relative_rms is not None
    verdict = judge_output(found, held_against([], {"int8": replace(found, displaced=0)}, 1))
    assert (verdict.grade, verdict.reasons[0].kind) == ("diverged", "displaced")
    assert verdict.reasons[0].numbers == {"displaced": 20, "runs": 20}
    noisy = smooth * np.random.default_rng(4).normal(1, found.relative_rms, smooth.shape).astype(np.float32)
    assert over_runs(noisy, smooth).displaced == 0


def test_yardsticks_that_are_broken() -> None:
    """Zeros, an output that stands still, and one that is alone far from the others."""
    sane = over_runs(RUN * np.float32(1.00001))
    frozen = over_runs(np.repeat(RUN[:1], 40, axis=0))
    floor = {"sane": sane, "zeros": over_runs(RUN * 0), "frozen": frozen}
    assert broken_variants(floor, {}) == ["zeros", "frozen"]
    assert broken_variants({"sane": sane, "wrong": over_runs(-RUN)}, {}) == ["wrong"]
    assert broken_variants({"sane": sane, "noisy": over_runs(RUN * 1.3)}, {"int8": over_runs(RUN * 1.2)}) == []


def test_other_best_classes_in_all_runs_are_diverged_and_a_tie_is_none() -> None:
    scores = Scores(positions=40, same_best=0, top5_overlap=None, tied_best=0)
    assert grades(UNMEASURED, replace(real(0.01), scores=scores)) == ["diverged"]
    assert grades(UNMEASURED, replace(real(1e-6), scores=replace(scores, tied_best=40))) == ["equivalent"]


def test_other_best_classes_in_most_runs_are_never_within_what_rounding_explains() -> None:
    """Rounding to int8 changes 24 of 40: twice that is granted, and more than half of the answers decides nothing."""

    def answers(same: int) -> OutputDifference:
        return replace(real(0.03), scores=Scores(positions=40, same_best=same, top5_overlap=None))

    yardsticks = held_against([real(0.0)], {"int8": answers(16)}, 1)
    assert grades(yardsticks, answers(20), answers(19), answers(0)) == ["int8", "not decided", "not decided"]
