"""Judges measured differences: the comparisons of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.gates.criteria import Criterion
from evaltools.gates.limits import check_limits
from evaltools.gates.paired_runs import ByRun, YardsticksByRun
from evaltools.gates.verdict import (
    GRADES,
    Grade,
    OutputVerdict,
    Yardsticks,
    broken_variants,
    is_coarse,
    judge_boxes,
    judge_output,
    over_some_runs,
    worst,
)
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.output_difference import OutputDifference
from evaltools.model import ModelFile, TensorInfo
from evaltools.report.words.verdicts import size_in_words
from evaltools.result.verdict import BLIND, Reason, Verdict
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.metrics import output_figures
from evaltools.tasks.inference_diff.result import DiffComparison, JudgedOutput, Repeatability, Variant
from evaltools.tasks.inference_diff.task import DiffSummary, OutputComparison, output_names
from evaltools.tasks.inference_diff.yardsticks import (
    FEW_ROUNDINGS,
    NOISE_FLOOR,
    PRECISION,
    RerunKind,
    RerunOutcome,
    RerunOutcomes,
)

METRIC: Final = "outputs"


class Sampled(Struct, frozen=True):
    """A configuration's difference over the runs of the yardsticks.

    ``farthest_inside`` says per output whether the run that differs most is among them; ``boxes`` is None where the run
    with most changes is not among them, or where these are all the runs.
    """

    summary: DiffSummary | None
    farthest_inside: tuple[bool, ...]
    boxes: BoxAgreement | None
    runs: int

    def output(self, position: int) -> OutputDifference | None:
        """The difference by which one output is judged; None if all of its runs count."""
        if self.summary is None or not self.farthest_inside[position]:
            return None
        return self.summary.outputs[position]

    def by_run(self, position: int, of_all: DiffSummary) -> ByRun:
        """The runs by which one output is judged; ``of_all`` has all."""
        is_sampled = self.summary is not None and self.farthest_inside[position]
        return (self.summary if is_sampled and self.summary else of_all).by_run[position]


NOTHING_SAMPLED: Final = Sampled(None, (), None, 0)


def kernels_of(configuration: Configuration) -> str:
    """The CPU kernels that a configuration runs, empty where a delegate other than XNNPACK runs what it can."""
    others = [delegate for delegate in configuration.delegates.requested if delegate.name != XNNPACK.name]
    return "" if others else configuration.kernel_set


class OutputJudge(Struct, frozen=True):
    """Judges the outputs of one configuration. CPU variants that run the same kernels are not used as yardsticks.

    ``measured`` are the yardsticks, ``kernels`` the CPU kernels that the configuration runs, empty where a delegate
    does. ``other_model``: the reference's outputs are those of another model.
    """

    model: ModelFile
    measured: RerunOutcomes
    kernels: str
    other_model: bool

    def outputs(self, summary: DiffSummary, sampled: Sampled = NOTHING_SAMPLED) -> list[OutputVerdict]:
        """The verdict on each output.

        Sizes are judged over the runs of the yardsticks where ``sampled`` has the run that differs most.
        """
        return [
            judge_output(found, self.yardsticks(position), sampled.output(position), sampled.by_run(position, summary))
            for position, found in enumerate(summary.outputs)
        ]

    def boxes(self, summary: DiffSummary, sampled: Sampled = NOTHING_SAMPLED) -> OutputVerdict | None:
        """The verdict on the boxes of a detector."""
        if summary.boxes is None:
            return None
        floor = [entry.summary.boxes for entry in self._floor() if entry.summary and entry.summary.boxes]
        verdict = judge_boxes(sampled.boxes or summary.boxes, floor, _boxes(self.measured, PRECISION))
        return verdict if sampled.boxes is None else over_some_runs(verdict, sampled.runs)

    def yardsticks(self, position: int) -> Yardsticks:
        """The yardsticks of one output, without CPU variants that are broken on it."""
        floor, precisions = self._measured()
        broken = self.broken(position)
        sane = {name: summary for name, summary in floor.items() if name not in broken}
        return Yardsticks(
            _outputs(sane, position),
            _outputs(precisions, position),
            self.model.node_count,
            self.other_model,
            YardsticksByRun(_by_run(sane, position), _by_run(precisions, position)),
        )

    def broken(self, position: int) -> list[str]:
        """The CPU variants that are broken on an output, so that they are no yardstick for it."""
        floor, precisions = (_outputs(summaries, position) for summaries in self._measured())
        return broken_variants(floor, precisions)

    def _measured(self) -> tuple[dict[str, DiffSummary], dict[str, DiffSummary]]:
        """The summaries of the CPU variants and of the precisions by name."""
        floor, precisions = (
            {entry.rerun.name: entry.summary for entry in entries if entry.summary}
            for entries in (self._floor(), self.measured.of_kind(PRECISION))
        )
        return floor, precisions

    def _floor(self) -> list[RerunOutcome]:
        return [
            entry
            for entry in self.measured.of_kind(NOISE_FLOOR)
            if entry.rerun.name == FEW_ROUNDINGS or entry.rerun.runnable.configuration.kernel_set != self.kernels
        ]

    def outputs_and_boxes(self, summary: DiffSummary) -> list[OutputVerdict]:
        """The verdict on each output; that on the boxes for those of a detector that hold them."""
        boxes = self.boxes(summary)
        return [
            boxes if boxes is not None and _in_boxes(self.model, summary, position) else verdict
            for position, verdict in enumerate(self.outputs(summary))
        ]


def judge(
    configuration: str,
    judge_by: OutputJudge,
    summary: DiffSummary | None,
    sampled: Sampled,
    limits: Sequence[Criterion],
) -> DiffComparison:
    """The comparison of one configuration. Without a summary it has no outputs, and breaks all limits."""
    yardsticks, model = judge_by.measured, judge_by.model
    repeated = yardsticks.repeated(configuration)
    repeatability = repeatability_of(repeated)
    if summary is None:
        kept = False if limits else None
        return DiffComparison(configuration, [], None, None, repeatability, [], kept)
    verdicts = judge_by.outputs(summary, sampled)
    if repeated is not None and repeated.summary is not None:
        again = judge_by.outputs(repeated.summary)
        verdicts = [_with_repeat(*pair) for pair in zip(verdicts, again, strict=True)]
    outputs = [
        JudgedOutput(
            found, verdict, _in_boxes(model, summary, position), held_against=list(judge_by.yardsticks(position).floor)
        )
        for position, (found, verdict) in enumerate(zip(summary.outputs, verdicts, strict=True))
    ]
    named = zip(output_names(model), map(output_figures, summary.outputs), strict=True)
    checks = check_limits(limits, list(named))
    return DiffComparison(
        configuration=configuration,
        outputs=outputs,
        boxes=summary.boxes,
        boxes_verdict=judge_by.boxes(summary, sampled),
        repeatability=repeatability,
        limits=checks,
        within_limits=all(check.kept for check in checks) if limits else None,
    )


def compare_zeros(comparison: OutputComparison, measured: RerunOutcomes) -> DiffSummary | None:
    """Zeros in place of the reference's outputs, compared with these over the sampled runs; None without two runs."""
    if len(measured.expected) < 2:
        return None
    runs = dict(zip(measured.runs, measured.expected, strict=False))
    tensors = comparison.reference_outputs
    differences = {
        run: comparison.compare(tuple(map(_zeros, outputs, tensors)), outputs) for run, outputs in runs.items()
    }
    return comparison.summarise(differences)


def _zeros(values: Array, info: TensorInfo) -> Array:
    """What stands for 0 everywhere; an output without numbers as it is."""
    if values.dtype.kind not in "fiu":
        return values
    return np.full_like(values, (info.zero_point or 0) if info.is_quantized else 0)


def withhold_blind(comparison: DiffComparison, judge_by: OutputJudge, zeros: DiffSummary | None) -> DiffComparison:
    """The comparison, with ``not decided`` for the outputs whose faults these inputs cannot show.

    Such an output would pass, and so would ``zeros``. Outputs that are equal in every bit have passed, unless all of
    the model's are 0 everywhere, which one that is never written is as well.
    """
    if zeros is None or not comparison.outputs:
        return comparison
    would_pass = [
        not found.identical and verdict.grade != "diverged"
        for found, verdict in zip(zeros.outputs, judge_by.outputs_and_boxes(zeros), strict=True)
    ]
    are_zero = all(each.difference.reference.low == each.difference.reference.high == 0 for each in comparison.outputs)
    is_blind = [
        are_zero or (passes_as_zero and not judged.difference.identical)
        for judged, passes_as_zero in zip(comparison.outputs, would_pass, strict=True)
    ]
    outputs = [
        replace(judged, verdict=_withheld(judged.verdict)) if blind else judged
        for judged, blind in zip(comparison.outputs, is_blind, strict=True)
    ]
    boxes = comparison.boxes_verdict
    if boxes is not None and any(blind and judged.in_boxes for judged, blind in zip(outputs, is_blind, strict=True)):
        boxes = _withheld(boxes)
    return replace(comparison, outputs=outputs, boxes_verdict=boxes)


def _withheld(verdict: OutputVerdict) -> OutputVerdict:
    if not passes(verdict.grade):
        return verdict
    return replace(verdict, grade="not decided", reasons=[Reason(BLIND), *verdict.reasons])


def _with_repeat(verdict: OutputVerdict, again: OutputVerdict) -> OutputVerdict:
    """The worse of two verdicts: against the reference, and of a second time against the first."""
    if GRADES.index(again.grade) <= GRADES.index(verdict.grade):
        return verdict
    return replace(again, reasons=[Reason("not_repeatable"), *again.reasons, *verdict.reasons])


def verdict_of(comparison: DiffComparison, against: str, why_not: str | None) -> Verdict:
    """The verdict on a configuration: that of its worst output, or of the boxes.

    ``why_not`` says why nothing was compared.
    """
    verdicts = _decisive(comparison.outputs, comparison.boxes_verdict)
    if not verdicts:
        return Verdict("not measured", METRIC, against, reasons=[Reason.of_text(why_not or "")])
    grade = worst([verdict.grade for _, verdict, _ in verdicts])
    name, verdict, _ = max((entry for entry in verdicts if entry[1].grade == grade), key=lambda entry: entry[2])
    return Verdict(grade, METRIC, against, name, reasons=verdict.reasons)


def passes(grade: Grade) -> bool:
    """Whether the difference is explained: by CPU kernels, or by a precision."""
    return grade not in ("not decided", "diverged")


def _outputs(summaries: Mapping[str, DiffSummary], position: int) -> dict[str, OutputDifference]:
    return {name: summary.outputs[position] for name, summary in summaries.items()}


def _by_run(summaries: Mapping[str, DiffSummary], position: int) -> dict[str, ByRun]:
    return {name: summary.by_run[position] for name, summary in summaries.items()}


def _in_boxes(model: ModelFile, summary: DiffSummary, position: int) -> bool:
    return summary.boxes is not None and model.detection is not None and model.detection.holds(position)


def _decisive(outputs: Sequence[JudgedOutput], boxes: OutputVerdict | None) -> list[tuple[str, OutputVerdict, float]]:
    """The verdicts that count, with the size of the difference.

    Boxes stand in for the four outputs that hold them, unless those are damaged.
    """
    found = []
    for judged in outputs:
        is_damaged = judged.verdict.grade == "diverged" and not judged.verdict.tolerances
        if not judged.in_boxes or is_damaged:
            found.append((judged.difference.output, judged.verdict, judged.difference.relative_rms or 0.0))
    return found + ([("boxes", boxes, 1.0)] if boxes is not None else [])


def _boxes(yardsticks: RerunOutcomes, kind: RerunKind) -> dict[str, BoxAgreement]:
    return {
        entry.rerun.name: entry.summary.boxes
        for entry in yardsticks.of_kind(kind)
        if entry.summary is not None and entry.summary.boxes is not None
    }


def broken_yardsticks(judges: Sequence[OutputJudge]) -> list[str]:
    """Warnings about CPU variants that are no yardstick for an output."""
    found: dict[str, list[str]] = {}
    for judge_by in judges:
        for entry in judge_by.measured.of_kind(NOISE_FLOOR):
            for position, output in enumerate(entry.summary.outputs if entry.summary else ()):
                is_named = output.output in found.get(entry.rerun.name, [])
                if not is_named and entry.rerun.name in judge_by.broken(position):
                    found.setdefault(entry.rerun.name, []).append(output.output)
    return [
        f"{name} is no yardstick for output {', '.join(map(repr, outputs))}: there it stands still, has no numbers, or "
        "is alone far from all others"
        for name, outputs in found.items()
    ]


def coarse_floor(comparisons: Sequence[DiffComparison], yardsticks: RerunOutcomes) -> list[str]:
    """Warnings about outputs for which CPU kernels are so far apart that a difference proves little."""
    coarse: dict[str, str] = {}
    counting = {
        (judged.difference.output, name)
        for entry in comparisons
        for judged in entry.outputs
        for name in judged.held_against
    }
    for entry in yardsticks.of_kind(NOISE_FLOOR):
        for found in entry.summary.outputs if entry.summary else ():
            counts = (found.output, entry.rerun.name) in counting
            if counts and is_coarse(found) and found.output not in _box_outputs(yardsticks):
                coarse.setdefault(found.output, f"{size_in_words(found)} ({entry.rerun.name})")
    return [
        f"output {output!r}: CPU kernels themselves differ from the reference by {text} on these inputs, so that a "
        "difference of a delegate proves little; real data may tell more (--input_images, --input_files)"
        for output, text in coarse.items()
    ]


def _box_outputs(yardsticks: RerunOutcomes) -> set[str]:
    """Names of outputs that are compared as boxes."""
    return {
        found.output
        for entry in yardsticks.seen
        if entry.summary is not None and entry.summary.boxes is not None
        for found in entry.summary.outputs
    }


def variant(entry: RerunOutcome) -> Variant:
    """A rerun as part of the result."""
    outputs = list(entry.summary.outputs) if entry.summary else []
    boxes = entry.summary.boxes if entry.summary else None
    return Variant(entry.rerun.name, entry.rerun.runnable.configuration.to_flags(), entry.reason, outputs, boxes)


def repeatability_of(entry: RerunOutcome | None) -> Repeatability | None:
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
