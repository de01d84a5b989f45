"""What the native tool prints of a classifier, and its protobuf."""

from __future__ import annotations

from typing import Any

import numpy as np

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.own.result import OwnPart


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers as C++ streams print them, ``%g``, accuracies in float32; the preprocessing ``std_dev`` is always 0."""
    preprocessing, inference, classification = _figures(result, configuration)
    printed = [
        f"Num evaluation runs: {classification.topk.example_count}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev=0(us)",
        latency_line("Inference", inference),
    ]
    return printed + [
        f"Top-{k} Accuracy: {np.float32(accuracy):g}"
        for k, accuracy in enumerate(classification.topk.accuracies, start=1)
    ]


def fill(message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
    """Fill an ``EvaluationStageMetrics``.

    Field presence is the native tool's: every field of the inference latency, the preprocessing latency without
    ``std_deviation_us``, no ``total_latency``.
    """
    preprocessing, inference, classification = _figures(result, configuration)
    message.num_runs = classification.topk.example_count
    metrics = message.process_metrics.image_classification_metrics
    fill_latency(metrics.pre_processing_latency, preprocessing, with_std=False)
    fill_latency(metrics.inference_latency, inference)
    metrics.inference_metrics.num_inferences = classification.topk.example_count
    metrics.topk_accuracy_metrics.topk_accuracies.extend(classification.topk.accuracies)


def _figures(
    result: EvaluationResult, configuration: ConfigurationResult
) -> tuple[Latency, Latency | None, ClassificationMetrics]:
    """The figures that every measured configuration has."""
    part: OwnPart = result.part
    assert part.topk is not None
    preprocessing = configuration.preprocessing_latency or part.preprocessing_latency
    return preprocessing, configuration.inference_latency, part.topk.classified[configuration.name].metrics
