"""The native tools' faces: their lines on stdout, their binary protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency
from evaltools.report.result import ConfigurationResult, EvaluationResult


def native_lines(result: EvaluationResult) -> list[str]:
    """The lines of ``imagenet_image_classification/run_eval`` for each measured test configuration.

    Numbers are printed as C++ streams print them, ``%g``. Several configurations give one block each, headed by its
    name. The preprocessing ``std_dev`` is always 0 in the native tool.
    """
    measured = measured_tests(result)
    lines: list[str] = []
    for configuration in measured:
        if len([entry for entry in result.configurations if entry.role == "test"]) > 1:
            lines.append(f"Configuration: {configuration.name}")
        lines.extend(_block(result.data.preprocessing_latency, configuration))
    return [f"INFO: {line}" for line in lines]


def _block(preprocessing: Latency, configuration: ConfigurationResult) -> list[str]:
    inference, classification = _figures(configuration)
    lines = [
        f"Num evaluation runs: {classification.topk.example_count}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev=0(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
    ]
    return lines + [
        f"Top-{k} Accuracy: {accuracy:g}" for k, accuracy in enumerate(classification.topk.accuracies, start=1)
    ]


def _figures(configuration: ConfigurationResult) -> tuple[Latency, ClassificationMetrics]:
    """The figures that every measured configuration has."""
    assert configuration.inference_latency is not None
    assert configuration.classification is not None
    return configuration.inference_latency, configuration.classification


def measured_tests(result: EvaluationResult) -> Sequence[ConfigurationResult]:
    """The test configurations that have figures, in the order given."""
    return [entry for entry in result.configurations if entry.role == "test" and entry.status == "measured"]


def native_proto(result: EvaluationResult, configuration: ConfigurationResult) -> bytes:
    """``EvaluationStageMetrics`` of one configuration, serialised.

    Field presence is the native tool's: every field of the inference latency, the preprocessing latency without
    ``std_deviation_us``, no ``total_latency``.
    """
    from evaltools.proto import message_class

    inference, classification = _figures(configuration)
    message = message_class("EvaluationStageMetrics")()
    message.num_runs = classification.topk.example_count
    metrics = message.process_metrics.image_classification_metrics
    _fill_latency(metrics.pre_processing_latency, result.data.preprocessing_latency)
    _fill_latency(metrics.inference_latency, inference)
    metrics.inference_latency.std_deviation_us = inference.std_us
    metrics.inference_metrics.num_inferences = classification.topk.example_count
    metrics.topk_accuracy_metrics.topk_accuracies.extend(classification.topk.accuracies)
    data: bytes = message.SerializeToString()
    return data


def _fill_latency(message: Any, latency: Latency) -> None:
    message.last_us = latency.last_us
    message.max_us = latency.max_us
    message.min_us = latency.min_us
    message.sum_us = latency.sum_us
    message.avg_us = latency.avg_us
