"""An inference diff as it is printed and written, from a result made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.gates.decide import LimitCheck
from evaltools.gates.verdict import OutputVerdict
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.latency import summarise_latency
from evaltools.metrics.native_numbers import NativeError
from evaltools.metrics.output_difference import OutputDifference, Quanta, Scores, Values
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.proto import message_class
from evaltools.result.result import Result, Row
from evaltools.result.section import Chart, Lines, Note, Table, text_of
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.collecting import with_concluded
from evaltools.tasks.inference_diff.differences import concluded
from evaltools.tasks.inference_diff.page import WithReading
from evaltools.tasks.inference_diff.result import (
    DiffComparison,
    InferenceDiff,
    JudgedOutput,
    Repeatability,
    Variant,
)
from tests import results
from tests.results import row_with

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
FAR_OFF = Verdict("diverged", "outputs", "reference", "scores", texts=["far off"])
REFERENCE_TIMES, TEST_TIMES = [2000] * 12, [1000] * 9 + [4000] * 3
FLOOR = replace(DIFFERENCE, mean=0.0001, p99=0.0002, max=0.0003, relative_rms=1e-7, snr_db=140.0, cosine=1.0)


def judged(
    difference: OutputDifference = DIFFERENCE,
    grade: Any = "diverged",
    in_boxes: bool = False,
    compared_with: tuple[str, ...] = (),
) -> JudgedOutput:
    verdict = OutputVerdict(grade, ["far off"])
    return JudgedOutput(difference, verdict, in_boxes, list(compared_with))


def comparison(name: str, *outputs: JudgedOutput, **changes: Any) -> DiffComparison:
    made = DiffComparison(name, list(outputs), None, None, None, [], None)
    return replace(made, **changes)


def configuration(name: str, times: list[int], role: str = "test") -> Row:
    return row_with(
        results.configuration(name, role),
        latency=summarise_latency(times),
        verdicts=[] if role == "reference" else [FAR_OFF],
    )


def result(
    *comparisons: DiffComparison,
    floor: tuple[OutputDifference, ...] = (),
    other_outputs: Sequence[str] = (),
    **changes: Any,
) -> Result:
    """``changes`` are those of everything that is not about one configuration."""
    reference = replace(configuration("reference", REFERENCE_TIMES, "reference"), delegates=[])
    tests = [configuration(entry.configuration, TEST_TIMES) for entry in comparisons]
    found = InferenceDiff(
        num_runs=4,
        seed=1,
        inputs=[],
        noise_floor_runs=2,
        noise_floor=[Variant(f"floor {place}", [], None, [entry], None) for place, entry in enumerate(floor)],
        comparisons=list(comparisons),
    )
    shown = comparisons[0].outputs if comparisons else []
    names = [(each.difference.output, f"tensor{place}", str(place)) for place, each in enumerate(shown)]
    times = {entry.name: WithReading(1500.0, 7000.0) for entry in (reference, *tests)}
    made = replace(results.result(reference, *tests), command="inference_diff", failed=[])
    return with_concluded(made, concluded(replace(found, **changes), names, other_outputs, times))


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
    loaded = row_with(made.rows[0], latency=None, delegation=None, examples=0)
    made = replace(made, rows=[loaded, made.rows[1]])
    assert native_lines(made)[:2] == [
        "INFO: Num evaluation runs: 4",
        "INFO: Reference run latency: avg=0(us), std_dev=0(us)",
    ]


def test_proto_fields() -> None:
    made = result(comparison("test", judged(), judged(replace(DIFFERENCE, native=None))))
    message = message_class("EvaluationStageMetrics").FromString(native_proto(made, made.rows[1]))
    assert message.num_runs == 4
    metrics = message.process_metrics.inference_profiler_metrics
    reference, test = metrics.reference_latency, metrics.test_latency
    assert (reference.last_us, reference.sum_us, reference.avg_us, reference.std_deviation_us) == (2000, 24000, 2000, 0)
    assert (test.last_us, test.max_us, test.min_us, test.sum_us) == (4000, 4000, 1000, 21000)
    (error,) = metrics.output_errors
    figures = (error.avg_value, error.std_deviation, error.min_value, error.max_value)
    assert figures == pytest.approx((0.00123456789, 0.5, 0.001, 0.002))


def outputs_of(made: Result) -> list[dict[str, str]]:
    """The rows of the table of outputs by heading."""
    (section,) = [section for section in made.blocks if section.title == "Outputs"]
    table = section.blocks[0]
    assert isinstance(table, Table)
    return [dict(zip(table.columns, map(text_of, row), strict=True)) for row in table.rows]


def lines_of(made: Result, title: str) -> list[str | Note]:
    (section,) = [section for section in made.blocks if section.title == title]
    return [line for block in section.blocks if isinstance(block, Lines) for line in block.lines]


def test_the_table_puts_the_worst_of_the_noise_floor_below_each_output() -> None:
    other = replace(FLOOR, mean=0.00005, max=0.0004, snr_db=139.0, cosine=0.9999999)
    both = judged(compared_with=("floor 0", "floor 1"))
    rows = outputs_of(result(comparison("a", both), comparison("b", both), floor=(FLOOR, other)))
    assert [row["configuration"] for row in rows] == ["a", "noise floor, 4 runs", "b", "noise floor, 4 runs"]
    figures = ("relative RMS", "largest", "SNR", "cosine", "mean", "p99")
    assert [rows[0][name] for name in figures] == ["0.1", "0.75", "20.0 dB", "0.9987654", "0.013", "0.5"]
    assert [rows[1][name] for name in figures] == ["1e-07", "0.0004", "139.0 dB", "0.9999999", "0.0001", "0.0002"]


def test_each_configuration_has_the_noise_floor_that_it_is_compared_with() -> None:
    far = replace(FLOOR, relative_rms=0.5, runs=2)
    made = result(
        comparison("a", judged(compared_with=("floor 0", "floor 1"))),
        comparison("b", judged(compared_with=("floor 0",))),
        comparison("c", judged()),
        floor=(replace(FLOOR, runs=2), far),
    )
    assert [(row["configuration"], row["relative RMS"]) for row in outputs_of(made)] == [
        ("a", "0.1"),
        ("noise floor, 2 runs", "0.5"),
        ("b", "0.1"),
        ("noise floor, 2 runs", "1e-07"),
        ("c", "0.1"),
    ]


def test_quanta_and_scores_have_columns() -> None:
    whole = replace(DIFFERENCE, dtype="int8", quanta=Quanta(300, 60, 30, 10, 5, 0.9), max_relative=0.25)
    scored = replace(DIFFERENCE, output="best", scores=Scores(8, 6, 0.85))
    first, second = outputs_of(result(comparison("test", judged(whole), judged(scored))))
    assert (first["quanta off 0/1/2/more"], first["largest relative"]) == ("75 / 15 / 7.5 / 2.5 %", "0.25")
    assert (second["same best"], second["top-5"]) == ("75.0 %", "85.0 %")


def test_what_has_no_figures_is_a_dash() -> None:
    text = replace(DIFFERENCE, dtype="string", mean=None, max=None, relative_rms=None, snr_db=None, cosine=None)
    (row,) = outputs_of(result(comparison("test", judged(text))))
    assert [row[name] for name in ("relative RMS", "largest", "SNR", "cosine", "mean")] == ["-"] * 5


def test_of_many_outputs_the_worst_are_shown_in_the_models_order() -> None:
    many = [replace(DIFFERENCE, output=f"o{place}", relative_rms=place / 100) for place in range(14)]
    rows = outputs_of(result(comparison("test", *map(judged, many))))
    assert [row["output"].partition(" ")[0] for row in rows] == [f"o{place}" for place in range(2, 14)]


def test_broken_limits_are_on_the_first_screen_and_repeats_below() -> None:
    broken = LimitCheck("--max_avg_error=0.001", "scores", 0.00123456, False)
    checks = [broken, LimitCheck("--min_snr_db=9", "scores", None, False), LimitCheck("--max_quanta=9", "o", 1.0, True)]
    made = result(comparison("test", judged(), limits=checks, repeatability=Repeatability(2, True, 0.0, None)))
    assert lines_of(made, "Inputs in short") == [
        Note("test", "LIMIT BROKEN --max_avg_error=0.001: scores has 0.001235", "bad"),
        Note("test", "LIMIT BROKEN --min_snr_db=9: scores has no number", "bad"),
    ]
    assert lines_of(made, "Outputs") == [Note("test", "repeatable, 2 runs gave the same outputs a second time")]


def test_boxes_stand_in_for_their_outputs() -> None:
    boxes = BoxAgreement(matched=4, lost=2, new=1, class_changes=3, sum_iou=3.0, moved=0.4, score_shift=0.0123)
    floor = [
        Variant("XNNPACK", [], None, [FLOOR], BoxAgreement(0, 0, 0, 0, 0.0, 0.0, 0.0)),
        Variant("broken", [], "failed", [], None),
    ]
    held = judged(in_boxes=True, compared_with=("XNNPACK",))
    made = result(comparison("test", held, boxes=boxes), noise_floor=[*floor, replace(floor[0], name="other")])
    assert outputs_of(made) == []
    assert [line.of for line in lines_of(made, "Outputs") if isinstance(line, Note)] == ["test", "noise floor, XNNPACK"]


def test_an_output_that_no_number_compares_is_not_drawn_as_identical() -> None:
    broken = replace(DIFFERENCE, relative_rms=None, snr_db=None)
    made = result(comparison("gpu", judged(broken)), floor=(FLOOR,))
    (drawn,) = [block for section in made.blocks if section.place == "glance" for block in section.blocks]
    assert isinstance(drawn, Chart)
    assert "scores, gpu: no relative size. CPU variants up to 1e-07" in drawn.text
    assert [mark.x for mark in drawn.marks if not mark.beside] == [None]


def test_what_could_not_be_run_again_says_why() -> None:
    repeated = Repeatability(0, None, None, "gone [away]")
    made = result(comparison("test", judged(), repeatability=repeated))
    assert lines_of(made, "Outputs") == [Note("test", "could not be run a second time: gone [away]", "open")]
