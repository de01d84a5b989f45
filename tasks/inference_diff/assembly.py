"""Assembles the typed result of an inference diff from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.engine.describe import comparison_pairs, describe_tensor
from evaltools.engine.run import PassOutcome
from evaltools.metrics.latency import summarise_latency
from evaltools.model import TensorInfo
from evaltools.result.evaluation import ConfigurationResult, RuntimeUsed, Tensor
from evaltools.result.places import reference_of
from evaltools.result.verdict import Verdict
from evaltools.tasks.inference_diff.judgement import (
    OutputJudge,
    far_variant_warnings,
    judge,
    kernels_of,
    repeatability_of,
    variant,
    verdict_of,
)
from evaltools.tasks.inference_diff.measure_noise_floor import differences_of
from evaltools.tasks.inference_diff.noise_floor import (
    LOCAL_REFERENCE,
    NOISE_FLOOR,
    PRECISION,
    SECOND_TIME,
    RepeatOutcomes,
)
from evaltools.tasks.inference_diff.output_order import open_in_words
from evaltools.tasks.inference_diff.request import DiffMaterial, DiffRequest
from evaltools.tasks.inference_diff.result import (
    DiffComparison,
    InferenceDiff,
    InputUsed,
    OfOneKind,
    RunTimes,
    loaded_from,
)
from evaltools.tasks.inference_diff.saved_outputs import Manifest, SavedConfiguration, SavedFile
from evaltools.tasks.inference_diff.task import Difference, DiffObservation, DiffSummary, output_names
from evaltools.tasks.shared.evaluation import Findings
from evaltools.tasks.shared.figures import MeasuredPass, judge_records, sum_up


class DiffNotes(Struct, frozen=True):
    """The times of the first runs in microseconds by configuration, and what the noise floor showed."""

    first_run_us: dict[str, float | None] = field(default_factory=dict)
    noise_floor: RepeatOutcomes = field(default_factory=RepeatOutcomes)


class _MeasuredDifferences(Struct, frozen=True):
    """The differences of one configuration: over all runs, over those of each kind of inputs."""

    summary: DiffSummary | None
    by_kind: tuple[OfOneKind, ...] = ()


_NO_DIFFERENCES: Final = _MeasuredDifferences(None)


def diff_findings(
    request: DiffRequest,
    material: DiffMaterial,
    described: Sequence[ConfigurationResult],
    measured: MeasuredPass,
    notes: DiffNotes,
) -> Findings:
    """Sum up and judge the differences.

    A loaded reference is added to the configurations, and a folder of saved outputs gets its manifest.
    """
    outcome, noise_floor = measured.outcome, notes.noise_floor
    seen = {name: _measured_differences(material, differences_of(outcome, name)) for name in outcome.records}
    judged = [_judged(entry, outcome, seen) for entry in described]
    sums = sum_up(measured, comparison_pairs(judged))
    configurations = [sums.with_figures(entry) for entry in judged]
    times = {
        entry.name: RunTimes(
            notes.first_run_us.get(entry.name),
            summarise_latency(sums.run_and_read_us(entry.name)),
            list(sums.invokes_us(entry.name)),
        )
        for entry in configurations
        if entry.status == "measured" and not entry.is_emulated
    }
    if material.loaded is not None:
        configurations.insert(0, _loaded_reference(material))
    comparisons, judges = [], []
    tested = {test.name: kernels_of(test) for test in request.tests}
    for entry in configurations:
        if entry.role == "test":
            found = seen.get(entry.name, _NO_DIFFERENCES)
            judge_by = OutputJudge(material.model, noise_floor, tested.get(entry.name, ""), material.compares_models)
            judges.append(judge_by)
            comparison = judge(entry.name, judge_by, found.summary, request.limits)
            comparisons.append(replace(comparison, by_kind=list(found.by_kind)))
    if material.writer is not None:
        material.writer.finish(_manifest(request, material, configurations))
    return Findings(
        configurations=configurations,
        sums=sums,
        part=replace(_details(request, material, noise_floor, comparisons), times=times),
        verdicts=_verdicts(configurations, comparisons),
        warnings=[*_open_order(material), *_warnings(comparisons, noise_floor), *far_variant_warnings(judges)],
    )


def _verdicts(
    configurations: Sequence[ConfigurationResult], comparisons: Sequence[DiffComparison]
) -> dict[str, list[Verdict]]:
    compared = {comparison.configuration: comparison for comparison in comparisons}
    found = {}
    for entry in configurations:
        if entry.name in compared:
            reference = reference_of(entry, configurations)
            against = "" if reference is None else reference.name
            found[entry.name] = [verdict_of(compared[entry.name], against, entry.reason)]
    return found


def _measured_differences(material: DiffMaterial, differences: Mapping[int, Difference]) -> _MeasuredDifferences:
    of_all = material.comparison.summarise(differences) if differences else None
    return _MeasuredDifferences(of_all, _by_kind(material, differences))


def _by_kind(material: DiffMaterial, differences: Mapping[int, Difference]) -> tuple[OfOneKind, ...]:
    """The differences over the runs of each kind of inputs, where there are several."""
    kinds: dict[str, dict[int, Difference]] = {}
    for run, difference in differences.items():
        kinds.setdefault(material.kinds[run], {})[run] = difference
    if len(kinds) < 2:
        return ()
    summaries = {kind: material.comparison.summarise(found) for kind, found in kinds.items()}
    return tuple(
        OfOneKind(kind, len(kinds[kind]), list(summary.outputs), summary.boxes) for kind, summary in summaries.items()
    )


def _judged(
    described: ConfigurationResult, outcome: PassOutcome[DiffObservation], seen: Mapping[str, _MeasuredDifferences]
) -> ConfigurationResult:
    """A configuration with its figures. A test for which the reference has no outputs is ``not measured``."""
    judged = judge_records(described, outcome)
    if judged.role == "test" and judged.status == "measured" and seen[judged.name].summary is None:
        reason = f"the reference has no outputs to compare with{_why(outcome)}"
        return replace(judged, status="not measured", reason=judged.reason or reason)
    return judged


def _why(outcome: PassOutcome[DiffObservation]) -> str:
    """Why the first run failed, in the first configuration in which it did; empty where it failed in none."""
    first = [next(iter(records)).failure for records in outcome.records.values() if len(records)]
    reasons = [failure.reason for failure in first if failure is not None]
    return f": {reasons[0]}" if reasons else ""


def _loaded_reference(material: DiffMaterial) -> ConfigurationResult:
    assert material.loaded is not None
    saved = material.loaded.configuration
    return ConfigurationResult(
        name=LOCAL_REFERENCE,
        role="reference",
        flags=saved.flags,
        num_threads=saved.num_threads,
        status="measured",
        reason=None,
        fallback=None,
        runtime=saved.runtime,
        delegates=[],
        delegation=None,
        inference_latency=None,
        failed_examples=0,
    )


def _manifest(request: DiffRequest, material: DiffMaterial, configurations: Sequence[ConfigurationResult]) -> Manifest:
    assert material.writer is not None
    return Manifest(
        schema_version="1",
        signature=request.signature,
        invocations_per_run=request.invocations,
        warmup_runs=request.warmup_runs,
        inputs=[_saved_tensor(tensor) for tensor in material.inputs],
        input_files=material.writer.input_files,
        configurations=[
            _saved_configuration(entry, entry.runtime, material, material.writer.outputs(entry.name))
            for entry in configurations
            if entry.runtime is not None and material.writer.outputs(entry.name)
        ],
        kinds={str(run): kind for run, kind in enumerate(material.kinds)},
    )


def _saved_configuration(
    entry: ConfigurationResult, runtime: RuntimeUsed, material: DiffMaterial, files: list[SavedFile]
) -> SavedConfiguration:
    is_reference = entry.role == "reference"
    model = material.reference_model if is_reference else material.model
    outputs = material.pair.reference_outputs if material.pair and is_reference else material.model.outputs
    return SavedConfiguration(
        name=entry.name,
        role=entry.role,
        model_file=str(model.path),
        model_sha256=model.sha256,
        flags=entry.flags,
        num_threads=entry.num_threads,
        runtime=runtime,
        tensors=[_saved_tensor(tensor) for tensor in outputs],
        outputs=files,
    )


def _saved_tensor(tensor: TensorInfo) -> Tensor:
    """The tensor with the shape that it was run with."""
    return replace(describe_tensor(tensor), shape=list(tensor.shape))


def _details(
    request: DiffRequest, material: DiffMaterial, noise_floor: RepeatOutcomes, comparisons: list[DiffComparison]
) -> InferenceDiff:
    reference = request.reference.name if request.reference else LOCAL_REFERENCE
    return InferenceDiff(
        num_runs=len(material.task.names),
        invocations_per_run=request.invocations,
        warmup_runs=request.warmup_runs,
        seed=request.inputs.seed,
        compat="native" if request.native else "",
        signature=request.signature,
        inputs=_inputs_used(request, material),
        reference_loaded_from=str(request.load_reference) if request.load_reference else None,
        noise_floor_runs=len(noise_floor.runs),
        noise_floor=[variant(entry) for entry in noise_floor.of_kind(NOISE_FLOOR)],
        precisions=[variant(entry) for entry in noise_floor.of_kind(PRECISION)],
        reference_repeatability=repeatability_of(noise_floor.repeated(reference)),
        not_saved=material.writer.failure if material.writer else None,
        comparisons=comparisons,
        output_order=material.pair.order if material.pair else None,
    )


def _inputs_used(request: DiffRequest, material: DiffMaterial) -> list[InputUsed]:
    plan = material.plan
    sources = plan.described if plan else (loaded_from(str(request.load_reference)),) * len(material.inputs)
    ranges = plan.ranges if plan else {}
    used = []
    for position, (tensor, source) in enumerate(zip(material.inputs, sources, strict=True)):
        name, drawn = tensor.signature_name or tensor.name, ranges.get(position)
        stated = (drawn.low, drawn.high, drawn.origin) if drawn else (None, None, "")
        used.append(InputUsed(name, tensor.dtype, list(tensor.shape), source, *stated))
    return used


def _open_order(material: DiffMaterial) -> list[str]:
    order = material.pair.order if material.pair else None
    return [open_in_words(order, [names[0] for names in output_names(material.model)])] if order and order.open else []


def _warnings(comparisons: Sequence[DiffComparison], noise_floor: RepeatOutcomes) -> list[str]:
    found = [noise_floor.problem] if noise_floor.problem else []
    if noise_floor.left_out:
        listed = ", ".join(noise_floor.left_out)
        found.append(f"the time after the runs was over (--max_secs) before all was measured: {listed}")
    found += [
        f"{kind}: {entry.repeat.name} not measured: {entry.reason}"
        for kind in (NOISE_FLOOR, PRECISION)
        for entry in noise_floor.of_kind(kind)
        if entry.summary is None
    ]
    for entry in noise_floor.of_kind(SECOND_TIME):
        repeatability = repeatability_of(entry)
        if repeatability is not None and repeatability.identical is False:
            found.append(
                f"{entry.repeat.name} is not repeatable: a second time, the same inputs gave outputs that "
                f"differ by {f'up to {repeatability.max}' if repeatability.max else 'NaN or infinite numbers'}"
            )
    return found + _constant_outputs(comparisons)


def _constant_outputs(comparisons: Sequence[DiffComparison]) -> list[str]:
    """Warnings about outputs that never change, so that their agreement shows nothing; none for detectors."""
    compared = [comparison for comparison in comparisons if comparison.outputs]
    judged = [entry for comparison in compared[:1] if comparison.boxes is None for entry in comparison.outputs]
    return [
        f"output {entry.difference.output!r} is {entry.difference.reference.low:g} everywhere in the reference; these "
        "inputs show nothing of it"
        for entry in judged
        if entry.difference.reference.constant and entry.difference.elements > 1
    ]
