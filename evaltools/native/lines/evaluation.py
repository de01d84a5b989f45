"""The native tools' faces: their lines on stdout, their binary protobuf."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evaltools.extensions import named
from evaltools.known_tasks import task_command
from evaltools.metrics.latency import NativeTimes, summarise_latency
from evaltools.result.result import PREPROCESSING, Result, Row


def native_lines(result: Result) -> list[str]:
    """The lines of the native tool for each measured test configuration; of a task without one its own for programs.

    Several configurations give one block each, headed by its name.
    """
    native = task_command(result.command).native_at
    return _blocks(result, named(native).lines if native else _plain_lines)


def debug_lines(result: Result) -> list[str]:
    """What the native tool prints of each example besides, where it has such lines (``--debug_mode``)."""
    return _blocks(result, named(task_command(result.command).native_at).debug_lines)


def _blocks(result: Result, lines_of: Callable[[Result, Row], list[str]]) -> list[str]:
    lines: list[str] = []
    for row in result.measured_tests:
        if len([each for each in result.rows if each.role == "test"]) > 1:
            lines.append(f"Configuration: {row.name}")
        lines.extend(lines_of(result, row))
    return [line if line.startswith("WARN: ") else f"INFO: {line}" for line in lines]


def _plain_lines(_result: Result, row: Row) -> list[str]:
    """The lines that the task gives; else number of examples, latencies, each share and mean, as C++ prints numbers."""
    if row.lines:
        return row.lines
    figures = {
        name: figure.value
        for name, figure in row.figures.items()
        if figure.value is not None and (figure.spread is not None or (figure.is_share and figure.count is not None))
    }
    return [
        f"Num evaluation runs: {row.finished_examples}",
        latency_line("Preprocessing", row.times.get(PREPROCESSING)),
        latency_line("Inference", row.latency),
        *(f"{name}: {value:g}" for name, value in figures.items()),
    ]


def native_proto(result: Result, row: Row) -> bytes:
    """``EvaluationStageMetrics`` of one configuration, serialised; empty for a task without a native tool."""
    from evaltools.proto import message_class

    message = message_class("EvaluationStageMetrics")()
    native = task_command(result.command).native_at
    if native:
        named(native).fill(message, result, row)
    data: bytes = message.SerializeToString()
    return data


def lines_of_pictures(row: Row) -> list[str]:
    """Runs and latencies of a task over pictures; the preprocessing ``std_dev`` is always 0."""
    return [
        f"Num evaluation runs: {row.finished_examples}",
        f"Preprocessing latency: avg={_preprocessing(row).avg_us:g}(us), std_dev=0(us)",
        latency_line("Inference", row.latency),
    ]


def fill_of_pictures(message: Any, metrics: Any, row: Row) -> None:
    """Fill runs and latencies of an ``EvaluationStageMetrics`` and its ``metrics`` of a task over pictures.

    Field presence is the native tool's: every field of the inference latency, the preprocessing latency without
    ``std_deviation_us``, no ``total_latency``.
    """
    message.num_runs = row.finished_examples
    fill_latency(metrics.pre_processing_latency, _preprocessing(row), with_std=False)
    fill_latency(metrics.inference_latency, row.latency)
    metrics.inference_metrics.num_inferences = row.finished_examples


def _preprocessing(row: Row) -> NativeTimes:
    return row.times.get(PREPROCESSING) or summarise_latency([])


def latency_line(name: str, latency: NativeTimes | None, why: str = "emulated") -> str:
    """The line of a latency, numbers as C++ streams print them; None: there is none, and ``why``."""
    if latency is None:
        return f"{name} latency: none, {why}"
    return f"{name} latency: avg={latency.avg_us:g}(us), std_dev={latency.std_us}(us)"


def fill_latency(message: Any, latency: NativeTimes | None, with_std: bool = True) -> None:
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
