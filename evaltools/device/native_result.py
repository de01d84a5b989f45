"""From runs of TensorFlow's own evaluation binaries to our typed result.

:mod:`evaltools.device.native_inputs` says what such a run is given, :mod:`evaltools.device.native_flags` prints its
command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from evaltools.device.native_detection import with_detection
from evaltools.device.native_difference import with_difference
from evaltools.device.native_inputs import NativeInputs, normalization_warnings
from evaltools.device.native_outcome import NativeOutcome, NativeRun, first_measured, outcome_of, with_times
from evaltools.engine.describe import describe_model
from evaltools.engine.run_folder import digest_of_files
from evaltools.metrics.classification import ClassificationMetrics, TopKAccuracy
from evaltools.native.logs.figures import NOTHING_TIMED
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import SCHEMA_VERSION, EvaluationResult, RuntimeUsed
from evaltools.task_kind import with_task_figures
from evaltools.tasks.imagenet.figures import classified
from evaltools.tasks.imagenet.result import Data, ImagenetPart
from evaltools.tasks.imagenet.task import LabelledImages
from evaltools.tasks.shared.image_input import describe_normalization

_WHAT_IS_NOT_KNOWN: Final = {
    "imagenet": "the native tool gives no single times and no single answers: there is no median, and nothing is known "
    "of NaN scores, of the number of different answers, and of which pictures changed sides",
    "coco": "the native tool gives no single times: there is no median",
    "inference_diff": "the native tool gives no single times: there is no median. Of an output it gives avg_error "
    "only, which is in raw numbers",
}


def assemble_native(
    inputs: NativeInputs[Any], runs: Sequence[NativeRun], runtime: RuntimeUsed, started_at: str, elapsed_s: float = 0.0
) -> EvaluationResult:
    """The result of all configurations, each run once.

    Runs of the reference stand among the others, but for inference_diff, which has its reference inside. Where several
    places did the same, the reference is that of the first run's place, and those of others are tests; an
    inference_diff has one of each place. ``started_at`` is ISO 8601, ``elapsed_s`` what the command took until now, in
    seconds. A configuration is ``not measured``, with the reason, where a run of it did not come to its end, or where
    its log does not prove that the delegates that it asked for took nodes, unless the request allows a fallback.
    """
    runs = runs if inputs.task == "inference_diff" else _with_one_reference(runs)
    outcomes = [outcome_of(inputs, run, runtime) for run in runs]
    empty = EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task=inputs.task,
        complete=True,
        stopped=None,
        examples_done=0,
        environment=describe_environment(list(inputs.request.command), started_at, elapsed_s),
        model=describe_model(inputs.model),
        configurations=[],
        part=None,
        failed=[],
        warnings=[],
    )
    if inputs.task == "imagenet":
        result = _with_classification(empty, inputs, outcomes)
    elif inputs.task == "coco":
        result = with_detection(empty, inputs, outcomes)
    else:
        result = with_difference(empty, inputs, outcomes, runtime)
    note = _WHAT_IS_NOT_KNOWN[inputs.task]
    return with_task_figures(_finished(result, note))


def _with_one_reference(runs: Sequence[NativeRun]) -> list[NativeRun]:
    return [run if run.place == runs[0].place else replace(run, role="test") for run in runs]


def _with_classification(
    empty: EvaluationResult, inputs: NativeInputs[LabelledImages], outcomes: Sequence[NativeOutcome]
) -> EvaluationResult:
    figures = {outcome.described.name: outcome.figures for outcome in outcomes if outcome.figures is not None}
    configurations = [with_times(outcome.described, figures.get(outcome.described.name)) for outcome in outcomes]
    options, images = inputs.request.options, inputs.data
    assert inputs.labels is not None
    assert inputs.to_tensor is not None
    shown = first_measured(configurations)
    data = Data(
        images=str(options.ground_truth_images_path),
        example_count=len(images.paths),
        skipped_files=len(images.folder.skipped),
        denylisted=images.denylisted,
        ground_truth_sha256=images.truths_sha256,
        labels_sha256=inputs.labels.sha256,
        label_offset=0,
        normalization=describe_normalization(inputs.to_tensor),
        preprocessing_latency=figures[shown].preprocessing if shown else NOTHING_TIMED,
    )
    topk = {
        name: TopKAccuracy(found.runs, tuple(count / found.runs for count in found.right))
        for name, found in figures.items()
    }
    answered = {name: classified(ClassificationMetrics(accuracies, None, None)) for name, accuracies in topk.items()}
    return replace(
        empty,
        part=ImagenetPart(data, answered, [], None),
        configurations=configurations,
        warnings=normalization_warnings(inputs),
        pictures_digest=digest_of_files(images.paths),
    )


def _finished(result: EvaluationResult, note: str) -> EvaluationResult:
    """The result with the number of finished examples, and ``note``, about what the native tool does not state."""
    measured = [entry for entry in result.configurations if entry.status == "measured"]
    notes = [note] if measured else []
    done = max((entry.finished_examples for entry in measured), default=0)
    return replace(result, examples_done=done, warnings=[*result.warnings, *notes])
