"""The native lines and the native protobuf."""

from __future__ import annotations

from evaltools.metrics.latency import summarise_latency
from evaltools.native.lines.evaluation import native_lines, native_proto
from evaltools.proto import message_class
from tests.results import classified, configuration, result, row_with


def test_one_configuration_gives_one_block_without_a_heading() -> None:
    made = result(configuration("reference", "reference"), configuration("test"), preprocessing=summarise_latency([7]))
    assert native_lines(made) == [
        "INFO: Num evaluation runs: 4",
        "INFO: Preprocessing latency: avg=7(us), std_dev=0(us)",
        "INFO: Inference latency: avg=2000(us), std_dev=1000(us)",
        "INFO: Top-1 Accuracy: 0.5",
        "INFO: Top-2 Accuracy: 0.75",
    ]


def test_numbers_have_six_significant_digits() -> None:
    long = row_with(configuration("test"), latency=summarise_latency([1234567, 1234568]))
    lines = native_lines(result(long, answered={"test": classified(1 / 3, 1.0, count=3)}))
    assert lines[2:] == [
        "INFO: Inference latency: avg=1.23457e+06(us), std_dev=0(us)",
        "INFO: Top-1 Accuracy: 0.333333",
        "INFO: Top-2 Accuracy: 1",
    ]


def test_several_configurations_are_headed_by_their_names() -> None:
    lines = native_lines(result(configuration("a"), configuration("b b")))
    assert [line for line in lines if "Configuration" in line] == [
        "INFO: Configuration: a",
        "INFO: Configuration: b b",
    ]


def test_a_configuration_without_figures_has_no_block() -> None:
    missing = row_with(configuration("gone"), status="not measured", reason="x", latency=None)
    assert native_lines(result(missing)) == []


def test_proto_fields() -> None:
    made = result(configuration("test"), preprocessing=summarise_latency([5, 7]))
    message = message_class("EvaluationStageMetrics").FromString(native_proto(made, made.rows[0]))
    metrics = message.process_metrics.image_classification_metrics
    latency = metrics.inference_latency
    assert (latency.last_us, latency.max_us, latency.min_us, latency.sum_us) == (3000, 3000, 1000, 4000)
    assert (latency.avg_us, latency.std_deviation_us) == (2000.0, 1000)
    assert metrics.pre_processing_latency.sum_us == 12
    assert list(metrics.topk_accuracy_metrics.topk_accuracies) == [0.5, 0.75]
