"""What a result of an inference diff made by hand gives to programs; what it says is in ``tests/report/tables``."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.metrics.output_difference import OutputDifference
from evaltools.native.lines.evaluation import native_proto
from evaltools.proto import message_class
from evaltools.report.words.next_steps import FOR_A_DIFFERENCE, after_evaluation
from evaltools.result.section import Chart
from tests.tasks.inference_diff.results import DIFFERENCE, FLOOR, comparison, judged, result


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


def test_an_output_that_no_number_compares_is_not_drawn_as_identical() -> None:
    broken = replace(DIFFERENCE, relative_rms=None, snr_db=None)
    made = result(comparison("gpu", judged(broken)), floor=(FLOOR,))
    (drawn,) = [block for section in made.blocks if section.place == "glance" for block in section.blocks]
    assert isinstance(drawn, Chart)
    assert (drawn.lines, drawn.text[:26]) == (["gpu: no relative size"], "CPU variants: up to 1e-07.")
    assert [mark.x for mark in drawn.marks if not mark.beside] == [None]


@pytest.mark.parametrize(("difference", "is_sought"), [(DIFFERENCE, True), (replace(DIFFERENCE, max=0.0), False)])
def test_an_operator_is_sought_only_where_there_is_a_difference(difference: OutputDifference, is_sought: bool) -> None:
    """Outputs that are 0 everywhere decide nothing, though none differs."""
    made = result(comparison("gpu", judged(difference)))
    assert any(step.text == FOR_A_DIFFERENCE for step in after_evaluation(made, made.rows[1])) == is_sought
