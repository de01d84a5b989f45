"""What the native tool prints of a diff, its protobuf, and what to do next."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaltools.metrics.latency import NativeTimes, summarise_latency
from evaltools.metrics.native_numbers import NativeError, widened
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.report.words.next_steps import FOR_A_DIFFERENCE, ran_on_devices, search_command, stated
from evaltools.result.facts import Model
from evaltools.result.places import reference_of
from evaltools.result.result import Result, Row, next_step
from evaltools.result.section import Note
from evaltools.tasks.inference_diff.figures import BOXES, NATIVE_ERROR
from evaltools.tasks.inference_diff.options import LOCATE

_OF_KINDS: Final[Mapping[str, str]] = {
    "keypoints": "keypoints",
    "yolo": "coco",
    "segmentation": "segmentation",
    "embedding": "embeddings",
}
"""The tasks that fit outputs of a kind."""
_OWN_TASK: Final = "a task of your own (evaltools run)"
_ANY_TASK: Final = f"imagenet, coco or {_OWN_TASK}"
_AXES_OF_PICTURES: Final = 4
_AXES_OF_SOUNDS: Final = 2
_OWN_INPUTS: Final = ("input_images", "input_files")
_OTHER_INPUTS: Final = "inputs of the model's own kind may decide (--input_images=FOLDER, --input_files=...)"


def lines(result: Result, configuration: Row) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``."""
    reference = reference_of(configuration, result.rows)
    is_emulated = reference is not None and reference.is_emulated
    printed = [
        f"Num evaluation runs: {_runs(result, configuration)}",
        latency_line("Reference run", _latency_of(reference), "emulated" if is_emulated else "not measured here"),
        latency_line("Test run", configuration.latency),
    ]
    return printed + [
        f"OutputDiff[{position}]: avg_error={_number(error.avg_error):g}, std_dev={widened(_number(error.std_dev)):g}"
        for position, error in _errors(configuration)
    ]


def fill(message: Any, result: Result, configuration: Row) -> None:
    """Fill an ``EvaluationStageMetrics``; the latency of a reference whose outputs were loaded is 0."""
    reference = _latency_of(reference_of(configuration, result.rows)) or summarise_latency([])
    message.num_runs = _runs(result, configuration)
    metrics = message.process_metrics.inference_profiler_metrics
    fill_latency(metrics.reference_latency, reference)
    fill_latency(metrics.test_latency, configuration.latency)
    for _, error in _errors(configuration):
        entry = metrics.output_errors.add()
        entry.max_value = _number(error.max_error)
        entry.min_value = _number(error.min_error)
        entry.avg_value = _number(error.avg_error)
        entry.std_deviation = _number(error.std_dev)


def _latency_of(reference: Row | None) -> NativeTimes | None:
    """The latency of the reference; None where it was emulated, or not run here."""
    latency = None if reference is None else reference.latency
    return latency if latency is not None and latency.count else None


def _runs(result: Result, configuration: Row) -> int:
    """The number of runs of the reference; of the configuration, if the reference was not run here."""
    reference = reference_of(configuration, result.rows)
    return (reference.finished_examples if reference else 0) or configuration.finished_examples


def _errors(configuration: Row) -> Iterator[tuple[int, NativeError]]:
    """The errors of outputs. Outputs of text have none, and still count as outputs, so that numbers stay right."""
    for position, part in enumerate(configuration.parts):
        if NATIVE_ERROR in part.series:
            yield position, NativeError(*part.series[NATIVE_ERROR])


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def next_steps(result: Result, configuration: Row) -> list[Note]:
    """Which operator makes a difference, unless the command looks for it itself; then what it means on real data."""
    verdict, typed = configuration.verdict, result.environment.command
    if verdict is None:
        return []
    is_looked_for = any(stated(typed, [LOCATE.name])) or ran_on_devices(typed) or verdict.kind == "not judged"
    is_same = configuration.value("max_error") == 0 and not configuration.nan_outputs
    search = [] if is_looked_for or is_same else [_search(result, configuration)]
    may_decide = verdict.kind == "not decided" and not any(stated(typed, _OWN_INPUTS))
    return [*search, *([next_step(_OTHER_INPUTS)] if may_decide else []), on_real_data(result)]


def _search(result: Result, configuration: Row) -> Note:
    """The search with the inputs that the command states."""
    command = search_command(result.model.file, configuration, result.environment.command)
    return next_step(FOR_A_DIFFERENCE, command)


def on_real_data(result: Result) -> Note:
    """What says whether a difference matters."""
    return next_step(f"{_fitting_tasks(result)} can say whether answers on real data change with it")


def _fitting_tasks(result: Result) -> str:
    """The task that fits the inputs and outputs of the model, and one of one's own; of others the most usual ones."""
    parts = [part for row in result.rows for part in row.parts]
    task = next(filter(None, (_OF_KINDS.get(part.texts.get("kind", "")) for part in parts)), None)
    if any(part.name == BOXES for part in parts):
        task = "coco"
    elif task is None and any("same_best" in part.figures for part in parts):
        task = _of_scores(result.model)
    if task is None and _has_pictures(result.model) and len(result.model.outputs) > 1:
        return _OWN_TASK
    return f"evaltools {task}, or {_OWN_TASK}," if task else _ANY_TASK


def _of_scores(model: Model) -> str | None:
    """The task of a model that gives scores to classes: by pictures, sounds or tokens as its inputs.

    One with pictures and several outputs, such as landmarks with their scores, is no classifier.
    """
    if not model.inputs:
        return None
    first = model.inputs[0]
    if _has_pictures(model):
        return None if len(model.outputs) > 1 else "imagenet"
    is_text = first.dtype in ("int32", "int64")
    return "text" if is_text else "audio" if len(model.inputs) == 1 and len(first.shape) <= _AXES_OF_SOUNDS else None


def _has_pictures(model: Model) -> bool:
    return bool(model.inputs) and len(model.inputs[0].shape) == _AXES_OF_PICTURES
