"""The metric of an inference diff: what a run's records say of each configuration, from figures to the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from msgspec.structs import replace

from evaltools.datasets.image_folder import alpha_remarks
from evaltools.engine.quiet_latency import times_with_reading
from evaltools.metrics.latency import summarise_latency
from evaltools.result.places import reference_of
from evaltools.result.result import Row
from evaltools.result.verdict import Verdict
from evaltools.tasks.framework.collecting import Concluded, RecordsOfRun
from evaltools.tasks.framework.definition import Whole
from evaltools.tasks.inference_diff.figures import parts_of, worst_of
from evaltools.tasks.inference_diff.judgement import (
    far_variant_warnings,
    judge,
    judges_of,
    repeatability_of,
    variant,
    verdict_of,
)
from evaltools.tasks.inference_diff.material import LOCAL_REFERENCE, DiffMaterial
from evaltools.tasks.inference_diff.measure_noise_floor import differences_of
from evaltools.tasks.inference_diff.noise_floor import (
    NOISE_FLOOR,
    PRECISION,
    SECOND_TIME,
    RoleOutcomes,
)
from evaltools.tasks.inference_diff.output_comparison import Difference, output_names
from evaltools.tasks.inference_diff.output_order import open_in_words
from evaltools.tasks.inference_diff.page import WithReading, sections
from evaltools.tasks.inference_diff.result import (
    DiffComparison,
    InferenceDiff,
    InputUsed,
    OfOneKind,
)
from evaltools.tasks.inference_diff.saved_outputs import SavedReference


@dataclass(frozen=True, kw_only=True)
class Differences(Whole):
    """How far the outputs of each configuration are from the reference's; it is all that the task says."""

    concluded_by: ClassVar[str] = "evaltools.tasks.inference_diff.differences:conclude"
    kept: ClassVar[str] = "evaltools.tasks.inference_diff.output_comparison:DiffObservation"
    found_beside: ClassVar[str] = "evaltools.tasks.inference_diff.noise_floor:RoleOutcomes"
    against_reference: ClassVar[bool] = True
    keeps_times: ClassVar[bool] = True
    name: str = "differences"
    material: DiffMaterial


def conclude(metric: Differences, run: RecordsOfRun, configurations: Sequence[Row]) -> Concluded:
    """The differences of every test, beside the noise floor.

    A loaded reference is added to the configurations.
    """
    material = metric.material
    options, noise_floor = material.options, run.beside or RoleOutcomes()
    times = {
        entry.name: WithReading(
            summarise_latency(times_with_reading(run.times[entry.name])).p50_us, run.first_run_us.get(entry.name)
        )
        for entry in configurations
        if entry.status == "measured" and not entry.is_emulated
    }
    loaded = [] if material.loaded is None else [_loaded_reference(material.loaded)]
    tests = [entry.name for entry in configurations if entry.role == "test"]
    comparisons, judges = [], judges_of(material, noise_floor, tests)
    for entry in configurations:
        if entry.role == "test":
            differences = differences_of(run.outcome, entry.name)
            summary = material.comparison.summarise(differences) if differences else None
            comparison = judge(entry.name, judges[entry.name], summary, options.limits)
            comparisons.append(replace(comparison, by_kind=_by_kind(material, differences)))
    diff = _details(material, noise_floor, comparisons)
    return replace(
        concluded(diff, output_names(material.model), _outputs_of_reference(configurations), times),
        verdicts=_verdicts([*loaded, *configurations], comparisons),
        warnings=[
            *_open_order(material),
            *alpha_remarks(material.plan.pictures),
            *_warnings(comparisons, noise_floor),
            *far_variant_warnings(list(judges.values())),
        ],
        also=loaded,
    )


def concluded(
    diff: InferenceDiff,
    names: Sequence[Sequence[str]],
    other_outputs: Sequence[str],
    times: Mapping[str, WithReading],
) -> Concluded:
    """What a diff says without its verdicts; ``names`` are those of each output, ``other_outputs`` the reference's."""
    parts = {compared.configuration: parts_of(compared, names) for compared in diff.comparisons}
    return Concluded(
        figures={name: worst_of(found) for name, found in parts.items()},
        parts=parts,
        blocks=sections(diff, [own[1] if len(own) > 2 else "" for own in names], other_outputs, times),
        given=diff.given,
        nan_outputs=diff.nan_outputs,
        limits_broken=diff.breaks_limits,
    )


def _outputs_of_reference(configurations: Sequence[Row]) -> list[str]:
    """The names of the outputs of the other model that the reference runs; none where it is the same one."""
    other = next((entry.other_model for entry in configurations if entry.other_model is not None), None)
    return [] if other is None else [tensor.name for tensor in other.outputs]


def _verdicts(configurations: Sequence[Row], comparisons: Sequence[DiffComparison]) -> dict[str, list[Verdict]]:
    compared = {comparison.configuration: comparison for comparison in comparisons}
    found = {}
    for entry in configurations:
        if entry.name in compared:
            reference = reference_of(entry, configurations)
            against = "" if reference is None else reference.name
            found[entry.name] = [verdict_of(compared[entry.name], against, entry)]
    return found


def _by_kind(material: DiffMaterial, differences: Mapping[int, Difference]) -> list[OfOneKind]:
    """The differences over the runs of each kind of inputs, where there are several."""
    kinds: dict[str, dict[int, Difference]] = {}
    for run, difference in differences.items():
        kinds.setdefault(material.plan.kinds[run], {})[run] = difference
    if len(kinds) < 2:
        return []
    summaries = {kind: material.comparison.summarise(found) for kind, found in kinds.items()}
    return [
        OfOneKind(kind, len(kinds[kind]), list(summary.outputs), summary.boxes) for kind, summary in summaries.items()
    ]


def _loaded_reference(reference: SavedReference) -> Row:
    saved = reference.configuration
    return Row(
        name=LOCAL_REFERENCE,
        role="reference",
        flags=saved.flags,
        num_threads=saved.num_threads,
        runtime=saved.runtime,
    )


def _details(material: DiffMaterial, noise_floor: RoleOutcomes, comparisons: list[DiffComparison]) -> InferenceDiff:
    return InferenceDiff(
        num_runs=len(material.plan.kinds),
        seed=material.options.inputs.seed,
        inputs=_inputs_used(material),
        noise_floor_runs=len(noise_floor.runs),
        noise_floor=[variant(entry) for entry in noise_floor.of_kind(NOISE_FLOOR)],
        comparisons=comparisons,
        output_order=material.pair.order if material.pair else None,
    )


def _inputs_used(material: DiffMaterial) -> list[InputUsed]:
    plan, used = material.plan, []
    for position, (tensor, source) in enumerate(zip(plan.tensors, plan.described, strict=True)):
        name, drawn = tensor.signature_name or tensor.name, plan.ranges.get(position)
        stated = (drawn.low, drawn.high, drawn.origin) if drawn else (None, None, "")
        used.append(InputUsed(name, tensor.dtype, list(tensor.shape), source, *stated))
    return used


def _open_order(material: DiffMaterial) -> list[str]:
    order = material.pair.order if material.pair else None
    return [open_in_words(order, [names[0] for names in output_names(material.model)])] if order and order.open else []


def _warnings(comparisons: Sequence[DiffComparison], noise_floor: RoleOutcomes) -> list[str]:
    found = [*([noise_floor.problem] if noise_floor.problem else []), *noise_floor.remarks]
    if noise_floor.left_out:
        listed = ", ".join(noise_floor.left_out)
        found.append(f"the time after the runs was over (--max_secs) before all was measured: {listed}")
    found += [
        f"{kind}: {entry.name} not measured: {entry.reason}"
        for kind in (NOISE_FLOOR, PRECISION)
        for entry in noise_floor.of_kind(kind)
        if entry.summary is None
    ]
    for entry in noise_floor.of_kind(SECOND_TIME):
        repeatability = repeatability_of(entry)
        if repeatability is not None and repeatability.identical is False:
            found.append(
                f"{entry.name} is not repeatable: a second time, the same inputs gave outputs that "
                f"differ by {f'up to {repeatability.max:.3g}' if repeatability.max else 'NaN or infinite numbers'}"
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
