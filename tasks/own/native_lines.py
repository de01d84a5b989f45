"""The lines of a task of your own, in the manner of the native tools."""

from __future__ import annotations

from typing import Any

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.own.result import OwnPart


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Number of examples, latencies, each metric; numbers as C++ streams print them."""
    part: OwnPart = result.part
    assert configuration.inference_latency is not None
    preprocessing, inference = part.preprocessing_latency, configuration.inference_latency
    found = [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev={preprocessing.std_us}(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
    ]
    means = [entry for entry in part.means if entry.configuration == configuration.name]
    return found + [f"{entry.metric}: {entry.mean:g}" for entry in means]


def fill(_message: Any, _result: EvaluationResult, _configuration: ConfigurationResult) -> None:
    """There is no native message for such a task."""
