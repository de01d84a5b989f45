"""The native tools' faces: their lines on stdout, their binary protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltools.known_tasks import task_command
from evaltools.metrics.latency import Latency
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


def native_lines(result: EvaluationResult) -> list[str]:
    """The lines of the native tool for each measured test configuration.

    Several configurations give one block each, headed by its name.
    """
    measured, report = measured_tests(result), task_command(result.task).report
    lines: list[str] = []
    for configuration in measured:
        if len([entry for entry in result.configurations if entry.role == "test"]) > 1:
            lines.append(f"Configuration: {configuration.name}")
        lines.extend(report.lines(result, configuration))
    return [line if line.startswith("WARN: ") else f"INFO: {line}" for line in lines]


def measured_tests(result: EvaluationResult) -> Sequence[ConfigurationResult]:
    """The test configurations that have figures, in the order given."""
    return [entry for entry in result.configurations if entry.role == "test" and entry.status == "measured"]


def native_proto(result: EvaluationResult, configuration: ConfigurationResult) -> bytes:
    """``EvaluationStageMetrics`` of one configuration, serialised."""
    from evaltools.proto import message_class

    message = message_class("EvaluationStageMetrics")()
    task_command(result.task).report.fill(message, result, configuration)
    data: bytes = message.SerializeToString()
    return data


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
