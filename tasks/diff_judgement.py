"""From measured differences to the comparisons of a result."""

from __future__ import annotations

from collections.abc import Sequence

from evaltools.gates.limits import Limit, LimitCheck, check_limits
from evaltools.gates.verdict import (
    NOT_MEASURED,
    OutputVerdict,
    Yardsticks,
    judge_boxes,
    judge_output,
    over_some_runs,
    wording,
    worst,
)
from evaltools.metrics.boxes import BoxAgreement
from evaltools.model import ModelFile
from evaltools.report.diff_result import DiffComparison, JudgedOutput, Repeatability, Variant
from evaltools.tasks.diff_yardsticks import NOISE_FLOOR, PRECISION, Kind, SecondLook, Seen
from evaltools.tasks.inference_diff import DiffSummary, output_names


def judge(
    model: ModelFile,
    configuration: str,
    summary: DiffSummary | None,
    sampled: DiffSummary | None,
    why_not: str | None,
    look: SecondLook,
    limits: Sequence[Limit],
) -> DiffComparison:
    """The comparison of one configuration; without a summary it is ``not measured``, and breaks the limits.

    ``sampled`` is over the runs of the yardsticks, where those include the runs that differ most.
    """
    repeatability = repeatability_of(look.repeated(configuration))
    if summary is None:
        kept = False if limits else None
        return DiffComparison(configuration, NOT_MEASURED, why_not or "", [], None, None, repeatability, [], kept)
    like = sampled or summary
    outputs = [
        JudgedOutput(
            found,
            judge_output(found, _yardsticks(model, look, position), like.outputs[position]),
            _in_boxes(model, summary, position),
        )
        for position, found in enumerate(summary.outputs)
    ]
    boxes_verdict = None
    if like.boxes is not None:
        boxes_verdict = judge_boxes(like.boxes, list(_boxes(look, NOISE_FLOOR).values()), _boxes(look, PRECISION))
        if like.outputs[0].runs < summary.outputs[0].runs:
            boxes_verdict = over_some_runs(boxes_verdict, like.outputs[0].runs)
    verdicts = _decisive(outputs, boxes_verdict)
    grade = worst([verdict.grade for _, verdict, _ in verdicts])
    name, verdict, _ = max((entry for entry in verdicts if entry[1].grade == grade), key=lambda entry: entry[2])
    named = list(zip(summary.outputs, output_names(model), strict=True))
    checks = check_limits(limits, named)
    return DiffComparison(
        configuration=configuration,
        verdict=wording(grade),
        reason=f"{name}: {verdict.reason}",
        outputs=outputs,
        boxes=summary.boxes,
        boxes_verdict=boxes_verdict,
        repeatability=repeatability,
        limits=checks,
        within_limits=_within(checks) if limits else None,
    )


def _within(checks: Sequence[LimitCheck]) -> bool:
    return all(check.kept for check in checks)


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


def _yardsticks(model: ModelFile, look: SecondLook, position: int) -> Yardsticks:
    by_kind = {
        kind: {entry.rerun.name: entry.summary.outputs[position] for entry in look.of_kind(kind) if entry.summary}
        for kind in (NOISE_FLOOR, PRECISION)
    }
    return Yardsticks(list(by_kind[NOISE_FLOOR].values()), by_kind[PRECISION], model.node_count)


def _boxes(look: SecondLook, kind: Kind) -> dict[str, BoxAgreement]:
    return {
        entry.rerun.name: entry.summary.boxes
        for entry in look.of_kind(kind)
        if entry.summary is not None and entry.summary.boxes is not None
    }


def variant(entry: Seen) -> Variant:
    """A rerun as it stands in the result."""
    outputs = list(entry.summary.outputs) if entry.summary else []
    boxes = entry.summary.boxes if entry.summary else None
    return Variant(entry.rerun.name, entry.rerun.driven.configuration.to_flags(), entry.reason, outputs, boxes)


def repeatability_of(entry: Seen | None) -> Repeatability | None:
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
