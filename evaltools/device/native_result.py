"""From runs of TensorFlow's own evaluation binaries to our typed result.

:mod:`evaltools.device.native_inputs` says what such a run is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.datasets.image_folder import printable_name
from evaltools.device.native_detection import detected
from evaltools.device.native_inputs import NativeInputs, normalization_warnings
from evaltools.device.native_outcome import (
    NativeOutcome,
    NativeRun,
    outcome_of,
    with_times,
)
from evaltools.engine.opening import describe_model
from evaltools.engine.run_folder import digest_of_files
from evaltools.errors import DataError
from evaltools.gates.criteria import Criterion
from evaltools.gates.limits import check_limits
from evaltools.known_tasks import with_other_metrics
from evaltools.metrics.native_numbers import NativeError
from evaltools.native.logs.delegation import reference_delegation
from evaltools.native.logs.figures import NativeFigures, merge_latencies
from evaltools.result.environment import describe_environment
from evaltools.result.facts import RuntimeUsed
from evaltools.result.metrics import figures_of
from evaltools.result.result import INVOKE, Result, Row, warning
from evaltools.result.verdict import OF_OUTPUTS, Verdict
from evaltools.tasks.framework.collecting import Concluded, with_concluded
from evaltools.tasks.framework.request import given_of
from evaltools.tasks.framework.topk_figures import accuracies
from evaltools.tasks.imagenet.data import LabelledImages
from evaltools.tasks.imagenet.evaluation import facts_of
from evaltools.tasks.inference_diff.differences import concluded
from evaltools.tasks.inference_diff.figures import parts_of
from evaltools.tasks.inference_diff.output_comparison import output_names
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, InputUsed

Limits = tuple[Criterion, ...]
_WHAT_IS_NOT_KNOWN: Final = {
    "imagenet": "the native tool gives no single times and no single answers: there is no median, and nothing is known "
    "of NaN scores, of the number of different answers, and of which pictures changed sides",
    "coco": "the native tool gives no single times: there is no median",
    "inference_diff": "the native tool gives no single times: there is no median. Of an output it gives avg_error "
    "only, which is in raw numbers",
}


def assemble_native(
    inputs: NativeInputs[Any], runs: Sequence[NativeRun], runtime: RuntimeUsed, started_at: str, elapsed_s: float = 0.0
) -> Result:
    """The result of all configurations, each run once.

    Runs of the reference stand among the others, but for inference_diff, which has its reference inside. Where several
    places did the same, the reference is that of the first run's place, and those of others are tests; an
    inference_diff has one of each place. ``started_at`` is ISO 8601, ``elapsed_s`` what the command took until now, in
    seconds. A configuration is ``not measured``, with the reason, where a run of it did not come to its end, or where
    its log does not prove that the delegates that it asked for took nodes, unless the request allows a fallback.
    """
    runs = runs if inputs.task == "inference_diff" else _with_one_reference(runs)
    outcomes = [outcome_of(inputs, run, runtime) for run in runs]
    if inputs.task == "imagenet":
        rows, found = _classified(inputs, outcomes)
    elif inputs.task == "coco":
        rows, found = detected(inputs, outcomes)
    else:
        rows, found = _compared(inputs, outcomes, runtime)
    is_measured = any(row.status == "measured" for row in rows)
    notes = [*found.warnings, *([_WHAT_IS_NOT_KNOWN[inputs.task]] if is_measured else [])]
    result = Result(
        command=inputs.task,
        environment=describe_environment(list(inputs.request.command), started_at, elapsed_s),
        models=[describe_model(inputs.model)],
        rows=rows,
        examples_done=max((row.finished_examples for row in rows if row.status == "measured"), default=0),
        example_count=inputs.example_count,
        given={"pictures": digest_of_files(inputs.pictures)[:12]} if inputs.pictures else {},
        notes=[*map(warning, notes)],
    )
    return with_other_metrics(with_concluded(result, found))


def _with_one_reference(runs: Sequence[NativeRun]) -> list[NativeRun]:
    return [run if run.place == runs[0].place else replace(run, role="test") for run in runs]


def _classified(inputs: NativeInputs[LabelledImages], outcomes: Sequence[NativeOutcome]) -> tuple[list[Row], Concluded]:
    images, measured = inputs.data, {each.described.name: each.figures for each in outcomes if each.figures is not None}
    assert inputs.labels is not None
    assert inputs.to_tensor is not None
    names = [printable_name(path.name) for path in images.paths]
    facts = facts_of(images, inputs.labels, 0, inputs.to_tensor)
    found = Concluded(
        figures={name: accuracies(each.right, each.runs) for name, each in measured.items()},
        given=given_of(inputs.request.options, names, facts),
        warnings=normalization_warnings(inputs),
    )
    return [with_times(each.described, each.figures) for each in outcomes], found


_INPUT_SOURCE: Final = "random numbers of the native tool, which are those of its C++ library"


def _compared(
    inputs: NativeInputs[Limits], outcomes: Sequence[NativeOutcome], runtime: RuntimeUsed
) -> tuple[list[Row], Concluded]:
    """What the runs of all configurations gave, those of a place behind its reference.

    Each run has a reference of its own, always the same at one place: with several test configurations it was run
    several times there, and its times are taken over all of them. Raises :class:`DataError` for a run of another model,
    which has other outputs.
    """
    configurations: list[Row] = []
    comparisons = []
    for outcome in outcomes:
        described, figures = outcome.described, outcome.figures
        if figures is not None:
            _require_outputs(inputs, described.name, figures)
            described = with_times(described, figures)
            comparisons.append(_comparison(inputs, described.name, figures))
        else:
            kept = False if inputs.data else None
            comparisons.append(DiffComparison(described.name, [], None, None, None, [], kept))
        configurations.append(described)
    by_place = []
    for place in dict.fromkeys(entry.place for entry in configurations):
        own = [outcome for outcome in outcomes if outcome.described.place == place]
        tests = [entry for entry in configurations if entry.place == place]
        reference = _reference(inputs, own, place, runtime)
        by_place += [reference, *(_with_verdict(inputs, entry, reference.name, own) for entry in tests)]
    return by_place, concluded(_details(inputs, comparisons), output_names(inputs.model), [], {})


def _with_verdict(inputs: NativeInputs[Limits], entry: Row, reference: str, outcomes: Sequence[NativeOutcome]) -> Row:
    """Only outputs that are the same to the last bit can be judged: the tool gives one number of each."""
    figures = next(outcome.figures for outcome in outcomes if outcome.described.name == entry.name)
    if figures is None:
        verdict = Verdict("not measured", OF_OUTPUTS, reference, texts=[entry.reason] if entry.reason else [])
    elif _is_equal(figures):
        same = "the raw numbers are the same in every element of every run"
        verdict = Verdict("identical", OF_OUTPUTS, reference, texts=[same])
    else:
        named = zip((shown[0] for shown in output_names(inputs.model)), figures.errors, strict=True)
        name, error = max(named, key=lambda pair: math.inf if pair[1].avg_error is None else pair[1].avg_error)
        verdict = Verdict("not judged", OF_OUTPUTS, reference, name, texts=[_error_in_words(error)])
    return replace(entry, verdicts=[verdict])


def _error_in_words(error: NativeError) -> str:
    if error.avg_error is None:
        return "avg_error is not a number: one side has NaN or infinite values, or the output has no elements"
    return (
        f"avg_error {error.avg_error:g} in raw numbers, at most {error.max_error:g} in a run; the native tool gives "
        "nothing to compare that with"
    )


def _is_equal(figures: NativeFigures) -> bool:
    return figures.runs > 0 and all(error.avg_error == 0 for error in figures.errors)


def _require_outputs(inputs: NativeInputs[Limits], name: str, figures: NativeFigures) -> None:
    if len(figures.errors) != len(inputs.model.outputs):
        raise DataError(
            f"{name}: the native tool compared {len(figures.errors)} outputs, {inputs.model.path} has "
            f"{len(inputs.model.outputs)}; give the run of this model"
        )


def _reference(
    inputs: NativeInputs[Limits], outcomes: Sequence[NativeOutcome], place: str, runtime: RuntimeUsed
) -> Row:
    """The reference inside the tool: one thread, the default kernels, no delegate, whatever the test's flags say.

    ``outcomes`` are those of one place, whose times of the reference are merged.
    """
    configuration = inputs.request.reference or Configuration("reference")
    measured = next((outcome for outcome in outcomes if outcome.figures is not None), None)
    lines = measured.delegate_lines if measured else ()
    taken = reference_delegation(lines, inputs.model.node_count)
    latency = merge_latencies([outcome.figures.reference for outcome in outcomes if outcome.figures is not None])
    return Row(
        name=f"{configuration.name}@{place}" if place else configuration.name,
        role="reference",
        status="measured" if measured else "not measured",
        reason="" if measured else "no run came to its end, and the reference is a part of each",
        runtime=runtime,
        delegates=taken.delegates,
        delegation=taken.proof,
        figures=figures_of({"examples": inputs.example_count if measured else None}),
        times={INVOKE: latency.native} if measured else {},
        place=place,
    )


def _comparison(inputs: NativeInputs[Limits], name: str, figures: NativeFigures) -> DiffComparison:
    errors = DiffComparison(name, [], None, None, None, [], None, native_errors=list(figures.errors))
    found = parts_of(errors, output_names(inputs.model))
    checks = check_limits(inputs.data, found)
    kept = all(check.kept for check in checks) if inputs.data else None
    return replace(errors, limits=checks, within_limits=kept)


def _details(inputs: NativeInputs[Limits], comparisons: list[DiffComparison]) -> InferenceDiff:
    return InferenceDiff(
        num_runs=inputs.example_count,
        seed=1,
        inputs=[
            InputUsed(tensor.signature_name or tensor.name, tensor.dtype, list(tensor.shape), _INPUT_SOURCE)
            for tensor in inputs.model.inputs
        ],
        noise_floor_runs=0,
        noise_floor=[],
        comparisons=comparisons,
    )
