"""From measured differences to the comparisons of a result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaltools.gates.criteria import Criterion
from evaltools.gates.limits import check_limits
from evaltools.gates.verdict import (
    OutputVerdict,
    Yardsticks,
    is_coarse,
    judge_boxes,
    judge_output,
    over_some_runs,
    worst,
)
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.output_difference import OutputDifference
from evaltools.model import ModelFile
from evaltools.report.words.verdicts import size_in_words
from evaltools.result.verdict import Reason, Verdict
from evaltools.tasks.inference_diff.metrics import output_figures
from evaltools.tasks.inference_diff.result import DiffComparison, JudgedOutput, Repeatability, Variant
from evaltools.tasks.inference_diff.task import DiffSummary, output_names
from evaltools.tasks.inference_diff.yardsticks import NOISE_FLOOR, PRECISION, Kind, RerunOutcome, YardstickRuns

METRIC: Final = "outputs"


@dataclass(frozen=True)
class Sampled:
    """A configuration's difference over the runs of the yardsticks.

    ``farthest_inside`` says per output whether the run that differs most is among them; ``boxes`` is None where one
    with more changes is not, or where these are all the runs.
    """

    summary: DiffSummary | None
    farthest_inside: tuple[bool, ...]
    boxes: BoxAgreement | None
    runs: int

    def output(self, position: int) -> OutputDifference | None:
        """What one output is to be judged by, None for all of its runs."""
        if self.summary is None or not self.farthest_inside[position]:
            return None
        return self.summary.outputs[position]


NOTHING_SAMPLED: Final = Sampled(None, (), None, 0)


def judge(
    model: ModelFile,
    configuration: str,
    summary: DiffSummary | None,
    sampled: Sampled,
    look: YardstickRuns,
    limits: Sequence[Criterion],
    other_model: bool = False,
) -> DiffComparison:
    """The comparison of one configuration; without a summary it has no outputs, and breaks the limits.

    ``other_model`` says that the reference's outputs are those of another model. Sizes are judged over the runs of the
    yardsticks where ``sampled`` has the run that differs most.
    """
    repeatability = repeatability_of(look.repeated(configuration))
    if summary is None:
        kept = False if limits else None
        return DiffComparison(configuration, [], None, None, repeatability, [], kept)
    outputs = [
        JudgedOutput(
            found,
            judge_output(found, _yardsticks(model, look, position, other_model), sampled.output(position)),
            _in_boxes(model, summary, position),
        )
        for position, found in enumerate(summary.outputs)
    ]
    boxes_verdict = None
    if summary.boxes is not None:
        floor = list(_boxes(look, NOISE_FLOOR).values())
        boxes_verdict = judge_boxes(sampled.boxes or summary.boxes, floor, _boxes(look, PRECISION))
        if sampled.boxes is not None:
            boxes_verdict = over_some_runs(boxes_verdict, sampled.runs)
    named = zip(output_names(model), map(output_figures, summary.outputs), strict=True)
    checks = check_limits(limits, list(named))
    return DiffComparison(
        configuration=configuration,
        outputs=outputs,
        boxes=summary.boxes,
        boxes_verdict=boxes_verdict,
        repeatability=repeatability,
        limits=checks,
        within_limits=all(check.kept for check in checks) if limits else None,
    )


def verdict_of(comparison: DiffComparison, against: str, why_not: str | None) -> Verdict:
    """That of the worst output, or of the boxes; ``why_not`` says why nothing was compared."""
    verdicts = _decisive(comparison.outputs, comparison.boxes_verdict)
    if not verdicts:
        return Verdict("not measured", METRIC, against, reasons=[Reason.of_text(why_not or "")])
    grade = worst([verdict.grade for _, verdict, _ in verdicts])
    name, verdict, _ = max((entry for entry in verdicts if entry[1].grade == grade), key=lambda entry: entry[2])
    return Verdict(grade, METRIC, against, name, reasons=verdict.reasons)


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


def _yardsticks(model: ModelFile, look: YardstickRuns, position: int, other_model: bool) -> Yardsticks:
    by_kind = {
        kind: {entry.rerun.name: entry.summary.outputs[position] for entry in look.of_kind(kind) if entry.summary}
        for kind in (NOISE_FLOOR, PRECISION)
    }
    return Yardsticks(by_kind[NOISE_FLOOR], by_kind[PRECISION], model.node_count, other_model)


def _boxes(look: YardstickRuns, kind: Kind) -> dict[str, BoxAgreement]:
    return {
        entry.rerun.name: entry.summary.boxes
        for entry in look.of_kind(kind)
        if entry.summary is not None and entry.summary.boxes is not None
    }


def coarse_floor(look: YardstickRuns) -> list[str]:
    """Warnings about outputs for which CPU kernels are so far apart that a difference proves little."""
    coarse: dict[str, str] = {}
    for entry in look.of_kind(NOISE_FLOOR):
        for found in entry.summary.outputs if entry.summary else ():
            if is_coarse(found) and found.output not in _box_outputs(look):
                coarse.setdefault(found.output, f"{size_in_words(found)} ({entry.rerun.name})")
    return [
        f"output {output!r}: CPU kernels themselves differ from the reference by {text} on these inputs, so that a "
        "difference of a delegate proves little; real data may tell more (--input_images, --input_files)"
        for output, text in coarse.items()
    ]


def _box_outputs(look: YardstickRuns) -> set[str]:
    """Names of outputs that are compared as boxes."""
    return {
        found.output
        for entry in look.seen
        if entry.summary is not None and entry.summary.boxes is not None
        for found in entry.summary.outputs
    }


def variant(entry: RerunOutcome) -> Variant:
    """A rerun as it stands in the result."""
    outputs = list(entry.summary.outputs) if entry.summary else []
    boxes = entry.summary.boxes if entry.summary else None
    return Variant(entry.rerun.name, entry.rerun.runnable.configuration.to_flags(), entry.reason, outputs, boxes)


def repeatability_of(entry: RerunOutcome | None) -> Repeatability | None:
    """Whether the second time gave the same."""
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
