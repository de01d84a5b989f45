"""What the native tool prints of a classifier, and its protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evaltools.native.lines.evaluation import fill_of_pictures, lines_of_pictures
from evaltools.result.result import Result, Row
from evaltools.tasks.framework.topk_figures import METRICS


def lines(_result: Result, configuration: Row) -> list[str]:
    """Numbers as C++ streams print them, ``%g``, accuracies in float32."""
    return lines_of_pictures(configuration) + [
        f"Top-{k} Accuracy: {np.float32(accuracy):g}" for k, accuracy in enumerate(_accuracies(configuration), start=1)
    ]


def fill(message: Any, _result: Result, configuration: Row) -> None:
    """Fill an ``EvaluationStageMetrics``; field presence is the native tool's."""
    metrics = message.process_metrics.image_classification_metrics
    fill_of_pictures(message, metrics, configuration)
    metrics.topk_accuracy_metrics.topk_accuracies.extend(_accuracies(configuration))


def _accuracies(configuration: Row) -> Sequence[float]:
    """Top-1, Top-2 and so on, which every measured configuration has."""
    values = [figure.value for metric in METRICS if (figure := configuration.figures.get(metric.name)) and figure.count]
    return [value for value in values if value is not None]
