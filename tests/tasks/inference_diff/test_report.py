"""An inference diff as it is printed and written, from a result made by hand."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.cli.shared.terminal import make_console
from evaltools.gates.limits import LimitCheck
from evaltools.gates.verdict import OutputVerdict
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference, Quanta, Scores, Values
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.proto import message_class
from evaltools.report.tables.evaluation import print_result
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.section import Chart
from evaltools.result.verdict import Reason, Verdict
from evaltools.task_kind import with_task_figures
from evaltools.tasks.inference_diff.page import sections
from evaltools.tasks.inference_diff.result import (
    DiffComparison,
    InferenceDiff,
    JudgedOutput,
    Repeatability,
    RunTimes,
    Variant,
)
from tests import results

VALUES = Values(0, 0, 0, -1.0, 1.0, False, False, 4)
DIFFERENCE = OutputDifference(
    output="scores",
    dtype="float32",
    kind="real",
    runs=4,
    elements=400,
    compared=400,
    different=40,
    native=NativeError(0.00123456789, 0.5, 0.001, 0.002),
    mean=0.0125,
    max=0.75,
    max_relative=None,
    p50=0.001,
    p90=0.002,
    p99=0.5,
    relative_rms=0.1,
    snr_db=20.0,
    cosine=0.9987654321,
    quanta=None,
    never_written=0,
    same_shape=True,
    test=VALUES,
    reference=VALUES,
    scores=None,
)
FAR_OFF = Verdict("diverged", "outputs", "reference", "scores", reasons=[Reason.of_text("far off")])
REFERENCE_TIMES, TEST_TIMES = [2000] * 12, [1000] * 9 + [4000] * 3
FLOOR = replace(DIFFERENCE, mean=0.0001, p99=0.0002, max=0.0003, relative_rms=1e-7, snr_db=140.0, cosine=1.0)


def judged(
    difference: OutputDifference = DIFFERENCE,
    grade: Any = "diverged",
    in_boxes: bool = False,
    held_against: tuple[str, ...] = (),
) -> JudgedOutput:
    verdict = OutputVerdict(grade, [Reason.of_text("far off")], "relative RMS", {})
    return JudgedOutput(difference, verdict, in_boxes, list(held_against))


def comparison(name: str, *outputs: JudgedOutput, **changes: Any) -> DiffComparison:
    made = DiffComparison(name, list(outputs), None, None, None, [], None)
    return replace(made, **changes)


def configuration(name: str, times: list[int], role: str = "test") -> ConfigurationResult:
    return replace(
        results.configuration(name, role),
        inference_latency=summarise_latency(times),
        verdicts=[] if role == "reference" else [FAR_OFF],
    )


def run_times(times: list[int]) -> RunTimes:
    return RunTimes(7000, summarise_latency([time + 500 for time in times]), [*times])


def result(*comparisons: DiffComparison, floor: tuple[OutputDifference, ...] = (), **changes: Any) -> EvaluationResult:
    reference = replace(configuration("reference", REFERENCE_TIMES, "reference"), delegates=[])
    tests = [configuration(entry.configuration, TEST_TIMES) for entry in comparisons]
    details = InferenceDiff(
        num_runs=4,
        invocations_per_run=3,
        warmup_runs=1,
        seed=1,
        compat="",
        signature="",
        inputs=[],
        reference_loaded_from=None,
        noise_floor_runs=2,
        noise_floor=[Variant(f"floor {place}", [], None, [entry], None) for place, entry in enumerate(floor)],
        precisions=[],
        reference_repeatability=None,
        not_saved=None,
        comparisons=list(comparisons),
        times={"reference": run_times(REFERENCE_TIMES)} | {entry.name: run_times(TEST_TIMES) for entry in tests},
    )
    made = results.result(reference, *tests)
    return with_task_figures(replace(made, task="inference_diff", part=replace(details, **changes), failed=[]))


def printed(made: EvaluationResult) -> list[str]:
    text = io.StringIO()
    print_result(made, make_console(text), "all")
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_native_lines() -> None:
    assert native_lines(result(comparison("test", judged()))) == [
        "INFO: Num evaluation runs: 4",
        "INFO: Reference run latency: avg=2000(us), std_dev=0(us)",
        "INFO: Test run latency: avg=1750(us), std_dev=1299(us)",
        "INFO: OutputDiff[0]: avg_error=0.00123457, std_dev=0.5",
    ]


def test_native_lines_keep_the_numbers_of_outputs_and_print_what_is_no_number() -> None:
    text = judged(replace(DIFFERENCE, native=None))
    damaged = judged(replace(DIFFERENCE, native=NativeError(None, None, None, None)))
    lines = native_lines(result(comparison("test", judged(), text, damaged)))
    assert lines[3:] == [
        "INFO: OutputDiff[0]: avg_error=0.00123457, std_dev=0.5",
        "INFO: OutputDiff[2]: avg_error=nan, std_dev=nan",
    ]


def test_a_loaded_reference_has_no_times() -> None:
    made = result(comparison("test", judged()))
    loaded = replace(made.configurations[0], inference_latency=None, delegation=None, finished_examples=0)
    made = replace(made, configurations=[loaded, made.configurations[1]])
    assert native_lines(made)[:2] == [
        "INFO: Num evaluation runs: 4",
        "INFO: Reference run latency: avg=0(us), std_dev=0(us)",
    ]
    assert ["reference", *"-----"] in [line.split() for line in printed(made)]


def test_proto_fields() -> None:
    made = result(comparison("test", judged(), judged(replace(DIFFERENCE, native=None))))
    message = message_class("EvaluationStageMetrics").FromString(native_proto(made, made.configurations[1]))
    assert message.num_runs == 4
    metrics = message.process_metrics.inference_profiler_metrics
    reference, test = metrics.reference_latency, metrics.test_latency
    assert (reference.last_us, reference.sum_us, reference.avg_us, reference.std_deviation_us) == (2000, 24000, 2000, 0)
    assert (test.last_us, test.max_us, test.min_us, test.sum_us) == (4000, 4000, 1000, 21000)
    (error,) = metrics.output_errors
    figures = (error.avg_value, error.std_deviation, error.min_value, error.max_value)
    assert figures == pytest.approx((0.00123456789, 0.5, 0.001, 0.002))


def test_the_table_puts_the_worst_of_the_noise_floor_beside_each_output() -> None:
    other = replace(FLOOR, mean=0.00005, max=0.0004, snr_db=139.0, cosine=0.9999999)
    both = judged(held_against=("floor 0", "floor 1"))
    lines = printed(result(comparison("a", both), comparison("b", both), floor=(FLOOR, other)))
    assert lines[0].split() == ["output", "configuration", "mean", "p99", "max", "rel", "RMS", "SNR", "dB", "cosine"]
    assert lines[1].split() == ["scores", "(float32)", "a", "0.0125", "0.5", "0.75", "0.1", "20.0", "0.9987654"]
    assert lines[2].split() == ["b", "0.0125", "0.5", "0.75", "0.1", "20.0", "0.9987654"]
    assert lines[3].split()[:3] == ["noise", "floor,", "4"]
    assert lines[3].split()[4:] == ["0.0001", "0.0002", "0.0004", "1e-07", "139.0", "0.9999999"]
    assert lines[4] == "kind of output: scores values (--output_kind states it)"
    assert lines[5] == "minimum required tolerance, a, scores: abs=0.75 (no rel alone would do)"


def test_each_configuration_has_the_noise_floor_that_it_is_held_against() -> None:
    far = replace(FLOOR, relative_rms=0.5, runs=2)
    made = result(
        comparison("a", judged(held_against=("floor 0", "floor 1"))),
        comparison("b", judged(held_against=("floor 0",))),
        comparison("c", judged()),
        floor=(replace(FLOOR, runs=2), far),
    )
    rows = [re.split("  +", line)[1:] for line in printed(made)[1:6]]
    assert [row[0] for row in rows] == [
        "a, 4 runs",
        "b, 4 runs",
        "c, 4 runs",
        "noise floor of a, 2 runs",
        "noise floor of b, 2 runs",
    ]
    assert [row[4] for row in rows[-2:]] == ["0.5", "1e-07"]


def test_quanta_and_scores_have_columns_where_an_output_has_them() -> None:
    whole = replace(DIFFERENCE, dtype="int8", quanta=Quanta(300, 60, 30, 10, 5, 0.9), max_relative=0.25)
    scored = replace(DIFFERENCE, output="best", scores=Scores(8, 6, 0.85))
    lines = printed(result(comparison("test", judged(whole), judged(scored))))
    assert lines[0].endswith("quanta off 0/1/2/more %  same best   top-5")
    assert "75 / 15 / 7.5 / 2.5" in lines[1]
    assert lines[2].endswith("75.0 %  85.0 %")
    assert "minimum required tolerance, test, scores: abs=0.75 or rel=0.25, 5 quanta" in lines


def test_what_has_no_figures_is_a_dash_and_needs_no_tolerance() -> None:
    text = replace(DIFFERENCE, dtype="string", mean=None, max=None, relative_rms=None, snr_db=None, cosine=None)
    same = replace(text, output="same", different=0)
    lines = printed(result(comparison("test", judged(text), judged(same))))
    assert lines[1].split() == ["scores", "(string)", "test", "-", "0.5", "-", "-", "-", "-"]
    assert "minimum required tolerance, test, scores: none would do" in lines
    assert "minimum required tolerance, test, same: 0" in lines


def test_of_many_outputs_the_worst_are_shown_in_the_models_order() -> None:
    many = [replace(DIFFERENCE, output=f"o{place}", relative_rms=place / 100) for place in range(10)]
    outputs = [judged(entry, "diverged" if entry.output == "o0" else "equivalent") for entry in many]
    lines = printed(result(comparison("test", *outputs)))
    assert [line.split()[0] for line in lines[1:9]] == ["o0", "o3", "o4", "o5", "o6", "o7", "o8", "o9"]
    assert "... and 2 outputs with no larger differences, listed in the JSON result" in lines


def test_latencies_and_the_verdict_with_broken_limits() -> None:
    broken = LimitCheck("--max_avg_error=0.001", "scores", 0.00123456, False)
    checks = [broken, LimitCheck("--min_snr_db=9", "scores", None, False), LimitCheck("--max_quanta=9", "o", 1.0, True)]
    repeated = Repeatability(2, True, 0.0, None)
    lines = printed(result(comparison("test", judged(), limits=checks, repeatability=repeated)))
    cells = [re.split("  +", line) for line in lines]
    assert ["latency", "p50", "vs ref", "delegated", "p90", "run+read p50", "first run"] in cells
    assert ["reference", "2 ms", "-", "2 ms", "2.5 ms", "7 ms"] in cells
    assert ["test", "1 ms", "2.00x", "9/10", "4 ms", "1.5 ms", "7 ms"] in cells
    assert [line for line in lines if line.startswith("test: ")] == [
        "test: diverged: scores: far off",
        "test: repeatable, 2 runs gave the same outputs a second time",
        "test: LIMIT BROKEN --max_avg_error=0.001: scores has 0.001235",
        "test: LIMIT BROKEN --min_snr_db=9: scores has no number",
        "test: diverged; 2.00x the speed of reference; XNNPACK (9 of 10 nodes)",
    ]


def test_boxes_stand_in_for_their_outputs() -> None:
    boxes = BoxAgreement(matched=4, lost=2, new=1, class_changes=3, sum_iou=3.0, moved=0.4, score_shift=0.0123)
    floor = [
        Variant("XNNPACK", [], None, [FLOOR], BoxAgreement(0, 0, 0, 0, 0.0, 0.0, 0.0)),
        Variant("broken", [], "failed", [], None),
    ]
    held = judged(in_boxes=True, held_against=("XNNPACK",))
    lines = printed(
        result(comparison("test", held, boxes=boxes), noise_floor=[*floor, replace(floor[0], name="other")])
    )
    assert lines[:2] == [
        "boxes, test: 4 matched (mean IoU 0.7500, score shift at most 0.012), 2 lost, 1 new, 3 of another class",
        "boxes, noise floor, XNNPACK: 0 matched (mean IoU -, score shift at most 0), 0 lost, 0 new, 0 of another class",
    ]
    assert not any("tolerance" in line or "broken" in line for line in lines)


def test_an_output_that_no_number_compares_is_not_drawn_as_identical() -> None:
    broken = replace(DIFFERENCE, relative_rms=None, snr_db=None)
    numerics = sections(result(comparison("gpu", judged(broken)), floor=(FLOOR,)))[0]
    (drawn,) = [block for block in numerics.blocks if isinstance(block, Chart) and "floor" in block.caption]
    assert "scores, gpu: no relative size. CPU variants up to 1e-07" in drawn.told
    (point,) = [value for value in drawn.spec["data"]["values"] if not value["floor"]]
    assert point["size"] == pytest.approx(1e-6)


def test_what_could_not_be_run_again_says_why() -> None:
    repeated = Repeatability(0, None, None, "gone [away]")
    lines = printed(result(comparison("test", judged(), repeatability=repeated)))
    assert "test: could not be run a second time: gone [away]" in lines
