"""The lines of a task of your own, in the manner of the native tools."""

from __future__ import annotations

from typing import Any, Final

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

NO_PROTOBUF: Final = "a task of your own has no native protobuf; write its result as JSON: --output_file_path=FILE.json"


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Number of examples, latencies, each metric; numbers as C++ streams print them."""
    assert result.own is not None
    assert configuration.inference_latency is not None
    preprocessing, inference = result.own.preprocessing_latency, configuration.inference_latency
    found = [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={preprocessing.avg_us:g}(us), std_dev={preprocessing.std_us}(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
    ]
    means = [entry for entry in result.own.means if entry.configuration == configuration.name]
    return found + [f"{entry.metric}: {entry.mean:g}" for entry in means]


def fill(_message: Any, _result: EvaluationResult, _configuration: ConfigurationResult) -> None:
    """There is no native message for such a task."""
