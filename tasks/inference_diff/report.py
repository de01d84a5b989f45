"""How a diff is shown: the native tool's lines and protobuf, what to do next; table and page have their own files."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.metrics.native_numbers import NativeError, widened
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.report.tables.short_answers import SEARCH
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.tasks.inference_diff.options import GIVEN_TO_A_SEARCH, LOCATE
from evaltools.tasks.inference_diff.result import InferenceDiff
from evaltools.tasks.inference_diff.table import print_figures

if TYPE_CHECKING:
    from evaltools.result.section import Section


__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]
_ON_REAL_DATA: Final = (
    "imagenet, coco or a task of your own (evaltools run) say whether answers on real data change with it"
)
_OTHER_INPUTS: Final = (
    "inputs of the model's own kind may decide (--input_images=FOLDER, --input_files=...), and so may its accuracy: "
    "imagenet, coco or a task of your own (evaltools run)"
)


def sections(result: EvaluationResult) -> list[Section]:
    """Those of a page; what draws them is imported for a page only."""
    from evaltools.tasks.inference_diff import page

    return page.sections(result)


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``."""
    reference, test = _latencies(result, configuration)
    printed = [
        f"Num evaluation runs: {_runs(result, configuration)}",
        latency_line("Reference run", reference),
        latency_line("Test run", test),
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


def _latencies(result: EvaluationResult, configuration: ConfigurationResult) -> tuple[Latency, Latency | None]:
    """The latencies of the reference, 0 where it was not run here, and of the configuration."""
    reference = reference_of(configuration, result.configurations)
    latency = reference.inference_latency if reference else None
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


def next_steps(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Which operator makes the difference, unless the command looks for it itself; then what it means on real data."""
    verdict = configuration.verdict
    if verdict is None:
        return []
    words = [_name(word) for word in result.environment.command]
    search = [] if LOCATE in words or verdict.kind == "not judged" else [_search(result, configuration)]
    return [*search, _OTHER_INPUTS if verdict.kind == "not decided" else _ON_REAL_DATA]


def _search(result: EvaluationResult, configuration: ConfigurationResult) -> str:
    """The search with the inputs that the command states."""
    inputs = [word for word in result.environment.command if "=" in word and _name(word) in GIVEN_TO_A_SEARCH]
    command = f"{SEARCH}{shlex.join([result.model.file, *configuration.flags, *inputs])}"
    return f"{command} looks for the operator that makes the difference"


def _name(word: str) -> str:
    return word.removeprefix("--").partition("=")[0].replace("-", "_")
