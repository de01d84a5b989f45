"""Judges measured differences: the comparisons of a result."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.gates.criteria import Criterion
from evaltools.gates.decide import check_limits
from evaltools.gates.verdict import (
    DIVERGED,
    EQUIVALENT,
    IDENTICAL,
    NO_MORE_THAN,
    NOT_DECIDED,
    ODD_REFERENCE,
    OTHER_INPUTS,
    PASSES,
    Grade,
    NoiseFloor,
    OutputVerdict,
    Seen,
    far_variants,
    judge_boxes,
    judge_output,
    repeats_itself,
    seen_boxes,
    worst,
)
from evaltools.model import ModelFile
from evaltools.operators.decide import ByOperators
from evaltools.result.figure import Part
from evaltools.result.result import Row
from evaltools.result.verdict import OF_OUTPUTS, Verdict, VerdictKind
from evaltools.tasks.inference_diff.figures import limited_figures
from evaltools.tasks.inference_diff.material import DiffMaterial
from evaltools.tasks.inference_diff.noise_floor import (
    FEW_ROUNDINGS,
    KEPT_TENSORS,
    NOISE_FLOOR,
    PRECISION,
    RoleOutcome,
    RoleOutcomes,
    has_floats,
)
from evaltools.tasks.inference_diff.output_comparison import DiffSummary, output_names
from evaltools.tasks.inference_diff.result import DiffComparison, JudgedOutput, Repeatability, Variant

_NOT_REPEATABLE: Final = "not repeatable: a second time, the same inputs gave other outputs"
_FIRST_INFERENCE: Final = "the first inference after loading gave other outputs than the same inputs later"
_REFERENCE_NOT_REPEATABLE: Final = (
    "a second time, the same inputs gave other outputs, of the reference too; compare with another "
    '(--reference="num_threads=1 use_xnnpack=false")'
)
_ALL_ZERO: Final = f"all outputs are 0 everywhere, as they are where nothing is written; {OTHER_INPUTS}"
_KEPT_IS_FAR: Final = ", with the same kernels: the reference itself may be wrong"


def kernels_of(configuration: Configuration) -> str:
    """The CPU kernels that a configuration runs, empty where a delegate other than XNNPACK runs what it can."""
    others = [delegate for delegate in configuration.delegates.requested if delegate.name != XNNPACK.name]
    return "" if others else configuration.kernel_set


class OutputJudge(Struct, frozen=True):
    """Judges the outputs of one configuration.

    Of what was ``measured``, ``floor`` has the CPU variants that do not run its own kernels, ``precisions`` the lower
    ones. ``other_model``: the reference's outputs are those of another model.
    """

    model: ModelFile
    measured: RoleOutcomes
    floor: Mapping[str, DiffSummary]
    precisions: Mapping[str, DiffSummary]
    other_model: bool

    def outputs(self, summary: DiffSummary) -> list[OutputVerdict]:
        """The verdict on each output."""
        return [
            judge_output(summary.seen(position), self.noise_floor(position)) for position in range(len(summary.outputs))
        ]

    def repeats(self, again: DiffSummary) -> list[bool]:
        """Whether each output came again as it was."""
        return [repeats_itself(again.seen(position), self.model.node_count) for position in range(len(again.outputs))]

    def boxes(self, summary: DiffSummary) -> OutputVerdict | None:
        """The verdict on the boxes of a detector, None for other models."""
        if not summary.boxes_by_run:
            return None
        floor, precisions = self._seen_boxes()
        far = far_variants(floor, precisions)
        near = {name: found for name, found in floor.items() if name not in far}
        return judge_boxes(summary.boxes_by_run, self._noise_floor(near, precisions))

    def far_of_boxes(self) -> list[str]:
        """The CPU variants that do not count for the boxes of a detector."""
        return far_variants(*self._seen_boxes())

    def _seen_boxes(self) -> tuple[dict[str, Seen], dict[str, Seen]]:
        floor, precisions = (
            {name: seen_boxes(other.boxes_by_run) for name, other in found.items()}
            for found in (self.floor, self.precisions)
        )
        return floor, precisions

    def noise_floor(self, position: int) -> NoiseFloor:
        """The noise floor of one output, without CPU variants that are far from the reference."""
        floor, precisions = self._seen(position)
        far = far_variants(floor, precisions)
        return self._noise_floor({name: found for name, found in floor.items() if name not in far}, precisions)

    def far(self, position: int) -> list[str]:
        """The CPU variants that do not count for an output."""
        return far_variants(*self._seen(position))

    def _seen(self, position: int) -> tuple[dict[str, Seen], dict[str, Seen]]:
        floor, precisions = (
            {name: summary.seen(position) for name, summary in summaries.items()}
            for summaries in (self.floor, self.precisions)
        )
        return floor, precisions

    def _noise_floor(self, floor: Mapping[str, Seen], precisions: Mapping[str, Seen]) -> NoiseFloor:
        measured = self.measured
        largest = measured.kept_tensors.largest if measured.kept_tensors is not None else 0.0
        return NoiseFloor(
            floor,
            precisions,
            self.model.node_count,
            self.other_model,
            measured.missing,
            largest,
            measured.interrupted,
            has_floats(self.model),
        )


def judges_of(material: DiffMaterial, measured: RoleOutcomes, names: Iterable[str]) -> dict[str, OutputJudge]:
    """Of each configuration by name, what judges its outputs; one that ran elsewhere has kernels of another machine."""
    precisions = {entry.name: entry.summary for entry in measured.of_kind(PRECISION) if entry.summary}
    kernels_by_name = {test.name: kernels_of(test) for test in material.options.tests}
    judges = {}
    for name in names:
        kernels = kernels_by_name.get(name, "")
        floor = {
            entry.name: entry.summary
            for entry in measured.of_kind(NOISE_FLOOR)
            if entry.summary and (entry.name in (FEW_ROUNDINGS, KEPT_TENSORS) or entry.kernel_set != kernels)
        }
        judges[name] = OutputJudge(material.model, measured, floor, precisions, material.compares_models)
    return judges


def judge(
    configuration: str, judge_by: OutputJudge, summary: DiffSummary | None, limits: Sequence[Criterion]
) -> DiffComparison:
    """The comparison of one configuration. Without a summary it has no outputs, and breaks all limits."""
    measured, model = judge_by.measured, judge_by.model
    repeated = measured.repeated(configuration)
    repeatability = repeatability_of(repeated)
    if summary is None:
        return DiffComparison(configuration, [], None, None, repeatability, [], False if limits else None)
    verdicts = judge_by.outputs(summary)
    if repeated is not None and repeated.summary is not None:
        again, why = judge_by.repeats(repeated.summary), _NOT_REPEATABLE
        with_first = measured.with_first(configuration)
        if with_first is not None and all(again):
            again, why = judge_by.repeats(with_first), _FIRST_INFERENCE
        if measured.repeated_reference is not None and not all(judge_by.repeats(measured.repeated_reference)):
            why = _REFERENCE_NOT_REPEATABLE
        verdicts = [
            verdict if same else _not_again(verdict, why) for verdict, same in zip(verdicts, again, strict=True)
        ]
    verdicts = _suspecting_the_reference(verdicts, judge_by, configuration)
    if all(found.identical and found.reference.all_zero for found in summary.outputs):
        verdicts = [OutputVerdict(NOT_DECIDED, [_ALL_ZERO], verdict.tolerances) for verdict in verdicts]
    operators, boxes = measured.operators.get(configuration), judge_by.boxes(summary)
    verdicts = [_by_operators(verdict, operators) for verdict in verdicts]
    outputs = [
        JudgedOutput(
            found,
            verdict,
            _in_boxes(model, summary, position),
            compared_with=list(judge_by.noise_floor(position).variants),
        )
        for position, (found, verdict) in enumerate(zip(summary.outputs, verdicts, strict=True))
    ]
    named = zip(output_names(model), map(limited_figures, summary.outputs), strict=True)
    checks = check_limits(limits, [Part(names[0], list(names[1:]), figures) for names, figures in named])
    return DiffComparison(
        configuration=configuration,
        outputs=outputs,
        boxes=summary.boxes,
        boxes_verdict=boxes and _by_operators(boxes, operators),
        repeatability=repeatability,
        limits=checks,
        within_limits=all(check.kept for check in checks) if limits else None,
    )


def operators_may_decide(comparison: DiffComparison) -> bool:
    """Whether the size of its outputs decides nothing, so that its operators one by one may."""
    verdicts = [verdict for _, verdict, _ in _decisive(comparison.outputs, comparison.boxes_verdict)]
    is_undecided = worst([verdict.grade for verdict in verdicts]) == NOT_DECIDED
    return is_undecided and any(verdict.operators_may_decide for verdict in verdicts)


def _by_operators(verdict: OutputVerdict, found: ByOperators | None) -> OutputVerdict:
    """The verdict on an output, where it is open that of its operators one by one."""
    if found is None or not verdict.operators_may_decide:
        return verdict
    _, *reasons = verdict.reasons
    is_decided = found.grade != NOT_DECIDED
    if found.grade == DIVERGED:  # what rounding may explain is no reason where it is not rounding
        reasons = [reason.partition(NO_MORE_THAN)[0] for reason in reasons]
    return replace(
        verdict,
        grade=found.grade,
        reasons=[found.text, *reasons] if is_decided else [*verdict.reasons, found.text],
        operators_may_decide=not is_decided,
    )


def is_settled(comparison: DiffComparison) -> bool:
    """Whether no further CPU variant or precision can make the verdict a better one."""
    verdicts = [verdict for _, verdict, _ in _decisive(comparison.outputs, comparison.boxes_verdict)]
    return all(verdict.grade in (IDENTICAL, EQUIVALENT) for verdict in verdicts)


def _not_again(verdict: OutputVerdict, why: str) -> OutputVerdict:
    """The verdict on an output that is another when the same input comes again."""
    grade: Grade = NOT_DECIDED if why == _REFERENCE_NOT_REPEATABLE else DIVERGED
    return OutputVerdict(grade, [why, *verdict.reasons])


def _suspecting_the_reference(
    verdicts: Sequence[OutputVerdict], judge_by: OutputJudge, configuration: str
) -> list[OutputVerdict]:
    """The verdicts, where a CPU variant agrees with the test and not with the reference, and no other kernels do."""
    measured, found = judge_by.measured, list(verdicts)
    own = measured.kernels_of_reference
    for witness in measured.of_kind(NOISE_FLOOR):
        from_witness = witness.tests.get(configuration)
        if witness.name not in judge_by.floor or from_witness is None:
            continue
        for position, again in enumerate(judge_by.outputs(from_witness)):
            verdict, far = found[position], judge_by.far(position)
            others = [
                entry.name
                for entry in measured.of_kind(NOISE_FLOOR)
                if entry.name in judge_by.floor and entry.name != FEW_ROUNDINGS and entry.kernel_set != own
            ]
            is_sure = witness.name == KEPT_TENSORS or all(name in far for name in others)
            is_odd = verdict.grade not in PASSES and again.grade in PASSES and witness.name in far and is_sure
            if is_odd and verdict.grade != ODD_REFERENCE:
                reasons = [_odd(witness, own), *verdict.reasons]
                found[position] = replace(verdict, grade=ODD_REFERENCE, reasons=reasons, operators_may_decide=False)
    return found


def _odd(witness: RoleOutcome, own: str) -> str:
    """Why the reference, which runs its ``own`` kernels, is taken for wrong."""
    compare = f'compare with other kernels (--reference="kernels={"builtin" if own == "default" else "default"}")'
    if witness.name != KEPT_TENSORS:
        return (
            f"the outputs of {witness.name} are those of the test, and no other kernels give the reference's; {compare}"
        )
    whose = "its own" if witness.kernel_set == own else witness.kernel_set
    return f"{whose} kernels with all tensors kept give what the test gives; {compare}"


def verdict_of(comparison: DiffComparison, against: str, row: Row) -> Verdict:
    """The verdict on the configuration of a row: that of its worst output, or of the boxes.

    Without outputs it is that it was not measured, or had nothing to be compared with.
    """
    verdicts = _decisive(comparison.outputs, comparison.boxes_verdict)
    if not verdicts:
        kind: VerdictKind = "not compared" if row.status == "measured" else "not measured"
        return Verdict(kind, OF_OUTPUTS, against, texts=[row.reason] if row.reason else [])
    grade = worst([verdict.grade for _, verdict, _ in verdicts])
    name, verdict, _ = max((entry for entry in verdicts if entry[1].grade == grade), key=lambda entry: entry[2])
    return Verdict(grade, OF_OUTPUTS, against, name, texts=verdict.reasons)


def _in_boxes(model: ModelFile, summary: DiffSummary, position: int) -> bool:
    return summary.boxes is not None and model.detection is not None and model.detection.holds(position)


def _decisive(outputs: Sequence[JudgedOutput], boxes: OutputVerdict | None) -> list[tuple[str, OutputVerdict, float]]:
    """The verdicts that count, with the size of the difference.

    Boxes stand in for the four outputs that hold them, unless those are damaged.
    """
    found = []
    for judged in outputs:
        is_damaged = judged.verdict.grade == DIVERGED and not judged.verdict.tolerances
        if not judged.in_boxes or is_damaged:
            found.append((judged.difference.output, judged.verdict, judged.difference.relative_rms or 0.0))
    return found + ([("boxes", boxes, 1.0)] if boxes is not None else [])


def far_variant_warnings(judges: Sequence[OutputJudge]) -> list[str]:
    """Warnings about CPU variants that do not count for an output."""
    found: dict[str, dict[str, None]] = {}
    own = set()
    for judge_by in judges:
        kept = judge_by.measured.kept_tensors
        own |= {KEPT_TENSORS} if kept and kept.kernel_set == judge_by.measured.kernels_of_reference else set()
        for name, summary in judge_by.floor.items():
            for position, output in enumerate(summary.outputs):
                if name in judge_by.far(position):
                    found.setdefault(name, {})[output.output] = None
            if name in judge_by.far_of_boxes():
                found.setdefault(name, {})["boxes"] = None
    return [
        f"{name} does not count for output {', '.join(map(repr, outputs))}: there it stands still, has no numbers, or "
        f"is far from the reference{_KEPT_IS_FAR if name in own else ''}"
        for name, outputs in found.items()
    ]


def variant(entry: RoleOutcome) -> Variant:
    """A repeat as part of the result."""
    outputs = list(entry.summary.outputs) if entry.summary else []
    boxes = entry.summary.boxes if entry.summary else None
    return Variant(entry.name, entry.flags, entry.reason, outputs, boxes)


def repeatability_of(entry: RoleOutcome | None) -> Repeatability | None:
    """Whether a second time gave the same outputs."""
    if entry is None:
        return None
    if entry.summary is None:
        return Repeatability(0, None, None, entry.reason)
    outputs = entry.summary.outputs
    largest = [found.max for found in outputs if found.max is not None]
    return Repeatability(
        runs=max(found.runs for found in outputs),
        identical=all(found.identical for found in outputs),
        max=max(largest, default=None),
        reason=None,
    )
