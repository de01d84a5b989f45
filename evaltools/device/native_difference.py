"""Native inference_diff runs as our own result: one number per output, and what can be said of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.device.native_inputs import NativeInputs
from evaltools.device.native_outcome import NativeOutcome, with_times
from evaltools.errors import DataError
from evaltools.gates.limits import check_limits
from evaltools.native.logs.delegation import reference_delegation
from evaltools.native.logs.figures import INVOCATIONS, NativeFigures, merge_latencies
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, RuntimeUsed
from evaltools.result.verdict import Reason, Verdict
from evaltools.tasks.inference_diff.judgement import METRIC
from evaltools.tasks.inference_diff.request import DiffRequest
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, InputUsed
from evaltools.tasks.inference_diff.task import output_names

_INPUT_SOURCE: Final = "random numbers of the native tool, which are those of its C++ library"


def with_difference(
    empty: EvaluationResult, inputs: NativeInputs[DiffRequest], outcomes: Sequence[NativeOutcome], runtime: RuntimeUsed
) -> EvaluationResult:
    """The result with what the runs of all configurations gave, those of a place behind its reference.

    Each run has a reference of its own, always the same at one place: with several test configurations it was run
    several times there, and its times are taken over all of them. Raises :class:`DataError` for a run of another model,
    which has other outputs.
    """
    configurations: list[ConfigurationResult] = []
    comparisons = []
    for outcome in outcomes:
        described, figures = outcome.described, outcome.figures
        if figures is not None:
            _require_outputs(inputs, described.name, figures)
            described = with_times(described, figures)
            comparisons.append(_comparison(inputs, described.name, figures))
        else:
            kept = False if inputs.data.limits else None
            comparisons.append(DiffComparison(described.name, [], None, None, None, [], kept))
        configurations.append(described)
    by_place = []
    for place in dict.fromkeys(entry.place for entry in configurations):
        own = [outcome for outcome in outcomes if outcome.described.place == place]
        tests = [entry for entry in configurations if entry.place == place]
        reference = _reference(inputs, own, place, runtime)
        by_place += [reference, *(_with_verdict(inputs, entry, reference.name, own) for entry in tests)]
    return replace(empty, configurations=by_place, part=_details(inputs, comparisons))


def _with_verdict(
    inputs: NativeInputs[DiffRequest], entry: ConfigurationResult, reference: str, outcomes: Sequence[NativeOutcome]
) -> ConfigurationResult:
    """Only outputs that are the same to the last bit can be judged: the tool gives one number of each."""
    figures = next(outcome.figures for outcome in outcomes if outcome.described.name == entry.name)
    if figures is None:
        verdict = Verdict("not measured", METRIC, reference, reasons=[Reason.of_text(entry.reason or "")])
    elif _is_equal(figures):
        verdict = Verdict("identical", METRIC, reference, reasons=[Reason("same_raw_numbers")])
    else:
        named = zip((shown[0] for shown in output_names(inputs.model)), figures.errors, strict=True)
        name, error = max(named, key=lambda pair: math.inf if pair[1].avg_error is None else pair[1].avg_error)
        numbers = {"avg_error": error.avg_error, "max_error": error.max_error}
        verdict = Verdict("not judged", METRIC, reference, name, reasons=[Reason("avg_error", numbers)])
    return replace(entry, verdicts=[verdict])


def _is_equal(figures: NativeFigures) -> bool:
    return figures.runs > 0 and all(error.avg_error == 0 for error in figures.errors)


def _require_outputs(inputs: NativeInputs[DiffRequest], name: str, figures: NativeFigures) -> None:
    if len(figures.errors) != len(inputs.model.outputs):
        raise DataError(
            f"{name}: the native tool compared {len(figures.errors)} outputs, {inputs.model.path} has "
            f"{len(inputs.model.outputs)}; give the run of this model"
        )


def _reference(
    inputs: NativeInputs[DiffRequest], outcomes: Sequence[NativeOutcome], place: str, runtime: RuntimeUsed
) -> ConfigurationResult:
    """The reference inside the tool: one thread, the default kernels, no delegate, whatever the test's flags say.

    ``outcomes`` are those of one place, whose times of the reference are merged.
    """
    configuration = inputs.request.reference or Configuration("reference")
    measured = next((outcome for outcome in outcomes if outcome.figures is not None), None)
    lines = measured.delegate_lines if measured else ()
    taken = reference_delegation(lines, inputs.model.node_count)
    latency = merge_latencies([outcome.figures.reference for outcome in outcomes if outcome.figures is not None])
    return ConfigurationResult(
        name=f"{configuration.name}@{place}" if place else configuration.name,
        role="reference",
        flags=[],
        num_threads=1,
        status="measured" if measured else "not measured",
        reason=None if measured else "no run came to its end, and the reference is a part of each",
        fallback=None,
        runtime=runtime,
        delegates=taken.delegates,
        delegation=taken.proof,
        inference_latency=latency if measured else None,
        failed_examples=0,
        finished_examples=inputs.example_count if measured else 0,
        place=place,
    )


def _comparison(inputs: NativeInputs[DiffRequest], name: str, figures: NativeFigures) -> DiffComparison:
    names = output_names(inputs.model)
    found = [(shown, {"avg_error": error.avg_error}) for shown, error in zip(names, figures.errors, strict=True)]
    checks = check_limits(inputs.data.limits, found)
    return DiffComparison(
        configuration=name,
        outputs=[],
        boxes=None,
        boxes_verdict=None,
        repeatability=None,
        limits=checks,
        within_limits=all(check.kept for check in checks) if inputs.data.limits else None,
        native_errors=list(figures.errors),
    )


def _details(inputs: NativeInputs[DiffRequest], comparisons: list[DiffComparison]) -> InferenceDiff:
    return InferenceDiff(
        num_runs=inputs.example_count,
        invocations_per_run=INVOCATIONS,
        warmup_runs=0,
        seed=1,
        compat="native",
        signature="",
        inputs=[
            InputUsed(tensor.signature_name or tensor.name, tensor.dtype, list(tensor.shape), _INPUT_SOURCE)
            for tensor in inputs.model.inputs
        ],
        reference_loaded_from=None,
        noise_floor_runs=0,
        noise_floor=[],
        precisions=[],
        reference_repeatability=None,
        not_saved=None,
        comparisons=comparisons,
    )
