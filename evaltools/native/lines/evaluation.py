"""The native tools' faces: their lines on stdout, their binary protobuf."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from evaltools.extensions import named
from evaltools.known_tasks import task_command
from evaltools.metrics.latency import Latency
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


def native_lines(result: EvaluationResult) -> list[str]:
    """The lines of the native tool for each measured test configuration; of a task without one its own for programs.

    Several configurations give one block each, headed by its name.
    """
    native = task_command(result.task).native_at
    return _blocks(result, named(native).lines if native else _plain_lines)


def debug_lines(result: EvaluationResult) -> list[str]:
    """What the native tool prints of each example besides, where it has such lines (``--debug_mode``)."""
    return _blocks(result, named(task_command(result.task).native_at).debug_lines)


def _blocks(
    result: EvaluationResult, lines_of: Callable[[EvaluationResult, ConfigurationResult], list[str]]
) -> list[str]:
    lines: list[str] = []
    for configuration in measured_tests(result):
        if len([entry for entry in result.configurations if entry.role == "test"]) > 1:
            lines.append(f"Configuration: {configuration.name}")
        lines.extend(lines_of(result, configuration))
    return [line if line.startswith("WARN: ") else f"INFO: {line}" for line in lines]


def _plain_lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """The lines that the task gives; else number of examples, latencies, each share and mean, as C++ prints numbers."""
    if configuration.name in result.lines:
        return list(result.lines[configuration.name])
    figures = {
        name: figure.value
        for name, figure in configuration.figures.items()
        if figure.value is not None and (figure.spread is not None or (figure.is_share and figure.count is not None))
    }
    return [
        f"Num evaluation runs: {configuration.finished_examples}",
        latency_line("Preprocessing", result.preprocessing_latency),
        latency_line("Inference", configuration.inference_latency),
        *(f"{name}: {value:g}" for name, value in figures.items()),
    ]


def measured_tests(result: EvaluationResult) -> Sequence[ConfigurationResult]:
    """The test configurations that have figures, in the order given."""
    return [entry for entry in result.configurations if entry.role == "test" and entry.status == "measured"]


def native_proto(result: EvaluationResult, configuration: ConfigurationResult) -> bytes:
    """``EvaluationStageMetrics`` of one configuration, serialised; empty for a task without a native tool."""
    from evaltools.proto import message_class

    message = message_class("EvaluationStageMetrics")()
    native = task_command(result.task).native_at
    if native:
        named(native).fill(message, result, configuration)
    data: bytes = message.SerializeToString()
    return data


def lines_of_pictures(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Runs and latencies of a task over pictures; the preprocessing ``std_dev`` is always 0."""
    return [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={_preprocessing(result, configuration).avg_us:g}(us), std_dev=0(us)",
        latency_line("Inference", configuration.inference_latency),
    ]


def fill_of_pictures(message: Any, metrics: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
    """Fill runs and latencies of an ``EvaluationStageMetrics`` and its ``metrics`` of a task over pictures.

    Field presence is the native tool's: every field of the inference latency, the preprocessing latency without
    ``std_deviation_us``, no ``total_latency``.
    """
    message.num_runs = configuration.finished_examples
    fill_latency(metrics.pre_processing_latency, _preprocessing(result, configuration), with_std=False)
    fill_latency(metrics.inference_latency, configuration.inference_latency)
    metrics.inference_metrics.num_inferences = configuration.finished_examples


def _preprocessing(result: EvaluationResult, configuration: ConfigurationResult) -> Latency:
    return configuration.preprocessing_latency or result.preprocessing_latency


def latency_line(name: str, latency: Latency | None) -> str:
    """The line of a latency, numbers as C++ streams print them; None: an emulator ran, which has none."""
    if latency is None:
        return f"{name} latency: none, emulated"
    return f"{name} latency: avg={latency.avg_us:g}(us), std_dev={latency.std_us}(us)"


def fill_latency(message: Any, latency: Latency | None, with_std: bool = True) -> None:
    """Fill a ``LatencyMetrics``; None: an emulator ran, and the message stays empty."""
    if latency is None:
        return
    message.last_us = latency.last_us
    message.max_us = latency.max_us
    message.min_us = latency.min_us
    message.sum_us = latency.sum_us
    message.avg_us = latency.avg_us
    if with_std:
        message.std_deviation_us = latency.std_us
