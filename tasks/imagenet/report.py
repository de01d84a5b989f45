"""How the figures are shown: the native tool's lines and protobuf; table and page have files of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.latency import Latency
from evaltools.native.lines.latency import fill_latency
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.imagenet.result import ImagenetPart
from evaltools.tasks.imagenet.table import print_figures
from evaltools.tasks.shared.next_steps import to_the_outputs as next_steps

if TYPE_CHECKING:
    from evaltools.result.section import Section

__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]


def sections(result: EvaluationResult) -> list[Section]:
    """Those of a page; what draws them is imported for a page only."""
    from evaltools.tasks.imagenet import page

    return page.sections(result)


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers as C++ streams print them, ``%g``, accuracies in float32; the preprocessing ``std_dev`` is always 0."""
    preprocessing, inference, classification = _figures(result, configuration)
    printed = [
        f"Num evaluation runs: {classification.topk.example_count}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev=0(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
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
) -> tuple[Latency, Latency, ClassificationMetrics]:
    """The figures that every measured configuration has."""
    part: ImagenetPart = result.part
    assert configuration.inference_latency is not None
    preprocessing = configuration.preprocessing_latency or part.data.preprocessing_latency
    return preprocessing, configuration.inference_latency, part.classified[configuration.name].metrics
