"""How the figures are shown: the native tool's lines and protobuf, sections of a page; the table has its own file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from evaltools.gates.verdict import size_of
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.metrics.native_error import NativeError
from evaltools.metrics.shortest import widened
from evaltools.native.lines.latency import fill_latency
from evaltools.report.words.verdicts import kind_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.section import Section
from evaltools.tasks.inference_diff.output_kinds import KINDS
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, JudgedOutput
from evaltools.tasks.inference_diff.table import print_figures
from evaltools.tasks.shared.next_step import to_the_answers as next_step

__all__ = ["fill", "lines", "next_step", "print_figures", "sections"]


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``."""
    reference, test = _latencies(result, configuration)
    printed = [
        f"Num evaluation runs: {_runs(result, configuration)}",
        f"Reference run latency: avg={reference.avg_us:g}(us), std_dev={reference.std_us}(us)",
        f"Test run latency: avg={test.avg_us:g}(us), std_dev={test.std_us}(us)",
    ]
    return printed + [
        f"OutputDiff[{position}]: avg_error={_number(error.avg_error):g}, std_dev={widened(_number(error.std_dev)):g}"
        for position, error in _errors(result, configuration)
    ]


def fill(message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
    """Fill an ``EvaluationStageMetrics``; the latency of a reference whose outputs were loaded is 0."""
    reference, test = _latencies(result, configuration)
    message.num_runs = _runs(result, configuration)
    metrics = message.process_metrics.inference_profiler_metrics
    fill_latency(metrics.reference_latency, reference)
    fill_latency(metrics.test_latency, test)
    for _, error in _errors(result, configuration):
        entry = metrics.output_errors.add()
        entry.max_value = _number(error.max_error)
        entry.min_value = _number(error.min_error)
        entry.avg_value = _number(error.avg_error)
        entry.std_deviation = _number(error.std_dev)


def _latencies(result: EvaluationResult, configuration: ConfigurationResult) -> tuple[Latency, Latency]:
    """The latencies of the reference, 0 where it was not run here, and of the configuration."""
    reference = reference_of(configuration, result.configurations)
    latency = reference.inference_latency if reference else None
    assert configuration.inference_latency is not None
    return latency or summarise_latency([]), configuration.inference_latency


def _runs(result: EvaluationResult, configuration: ConfigurationResult) -> int:
    """The number of runs of the reference; of the configuration, if the reference was not run here."""
    reference = reference_of(configuration, result.configurations)
    return (reference.finished_examples if reference else 0) or configuration.finished_examples


def _errors(result: EvaluationResult, configuration: ConfigurationResult) -> Iterator[tuple[int, NativeError]]:
    """The errors of outputs. Outputs of text have none, and still count as outputs, so that numbers stay right."""
    part: InferenceDiff = result.part
    for comparison in part.comparisons:
        if comparison.configuration == configuration.name:
            yield from enumerate(comparison.native_errors)
            for position, judged in enumerate(comparison.outputs):
                if judged.difference.native is not None:
                    yield position, judged.difference.native


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def sections(result: EvaluationResult) -> list[Section]:
    """Tables with a row per output and configuration, and a row per planted fault."""
    diff: InferenceDiff = result.part
    compared = [comparison for comparison in diff.comparisons if comparison.outputs]
    return [_outputs(compared), _noticed(compared)]


def _outputs(compared: list[DiffComparison]) -> Section:
    rows = [
        [comparison.configuration, *_output(judged)]
        for comparison in compared
        for judged in comparison.outputs
        if not judged.in_boxes
    ]
    columns = ["configuration", "output", "verdict", "relative size", "largest difference", "what it means"]
    return Section("Outputs", columns, rows)


def _output(judged: JudgedOutput) -> list[str]:
    found = judged.difference
    meaning = "" if found.of_kind is None else KINDS[found.of_kind.kind].in_words(found.of_kind)
    largest = "-" if found.max is None else f"{found.max:.3g}"
    name = f"{found.output} ({found.dtype})"
    return [name, kind_in_words(judged.verdict.grade), f"{size_of(found):.2g}", largest, meaning]


def _noticed(compared: list[DiffComparison]) -> Section:
    """A table of the planted faults, with whether each was noticed in each configuration."""
    known = {entry.configuration: entry.sensitivity for entry in compared if entry.sensitivity is not None}
    words = {True: "noticed", False: "not noticed", None: "changes nothing here"}
    names = dict.fromkeys(fault.name for found in known.values() for fault in found.faults)
    by_name = {name: {fault.name: words[fault.noticed] for fault in found.faults} for name, found in known.items()}
    rows = [[fault, *(by_name[name].get(fault, "-") for name in known)] for fault in names]
    noise = [
        "-" if found.smallest_noise is None else f"from {100 * found.smallest_noise:.3g} % of the output on"
        for found in known.values()
    ]
    rows += [["normal noise", *noise]] if rows else []
    below = "Faults planted in the reference's outputs, judged like those of the configuration."
    return Section("What would have been noticed", ["fault", *known], rows, below)
