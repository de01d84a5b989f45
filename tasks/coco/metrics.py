"""The metrics of a COCO detection evaluation, and how limits and baselines read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import fields

from evaltools.metrics.coco_stats import CocoStats
from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.metrics.power import Change
from evaltools.metrics.resampled import resampled_change
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.evidence import Judged
from evaltools.result.places import against_reference
from evaltools.tasks.coco.result import BoxComparison, CocoDetection, DetectionFigures
from evaltools.tasks.shared.showing import figures_by, judged_by, task_name


def _figures(result: EvaluationResult, name: str) -> DetectionFigures | None:
    part: CocoDetection = result.part
    return next((entry for entry in part.figures if entry.configuration == name), None)


def _comparison(result: EvaluationResult, configuration: ConfigurationResult) -> BoxComparison | None:
    part: CocoDetection = result.part
    return against_reference(result, part.comparisons, configuration)


def _stat(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    figures = _figures(result, configuration.name)
    if figures is None or figures.evaluation is None:
        return ABSENT
    value: float | None = getattr(figures.evaluation.stats, name)
    return value


def _draws(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> Sequence[float | None]:
    figures = _figures(result, configuration.name)
    return figures.resampled.get(name, []) if figures else []


def _change(name: str, result: EvaluationResult, configuration: ConfigurationResult) -> Change | None:
    part: CocoDetection = result.part
    comparison = _comparison(result, configuration)
    changes = [entry for entry in comparison.changes if entry.stat == name] if comparison else []
    if comparison is None or not changes:
        return None
    drawn = {entry.configuration: entry.resampled for entry in part.figures}
    before, after = drawn[comparison.baseline][name], drawn[comparison.other][name]
    return resampled_change(before, after, changes[0].change, comparison.example_count)


def _matched_boxes(result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    comparison = _comparison(result, configuration)
    if comparison is None:
        return ABSENT
    there_were = comparison.boxes.matched + comparison.boxes.lost
    return comparison.boxes.matched / there_were if there_were else None


_HEADINGS: Final = {
    "ap": "mAP",
    "ap50": "AP50",
    "ap75": "AP75",
    "ap_small": "small",
    "ap_medium": "medium",
    "ap_large": "large",
    "ar_1": "AR@1",
    "ar_10": "AR@10",
    "ar_100": "AR@100",
}


def _of_coco(name: str) -> Metric:
    return Metric(
        name,
        "COCO figure of that name, 0..1; ap is mAP",
        partial(_stat, name),
        better="higher",
        is_share=True,
        heading=_HEADINGS.get(name, ""),
        aliases=("map", "mAP") if name == "ap" else (),
        change=partial(_change, name),
        draws=partial(_draws, name),
    )


METRICS: Final = (
    *(_of_coco(field.name) for field in fields(CocoStats)),
    Metric(
        "matched_boxes",
        "coco: share of the reference's boxes that were found again, 0..1",
        _matched_boxes,
        better="higher",
        is_share=True,
        of_reference=True,
    ),
)

subject = task_name


def figures(result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
    """The figures of the task's metrics."""
    return figures_by(METRICS, result, configuration)


def judged(result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
    """The figures over resamples of the pictures, and their changes against the reference."""
    return judged_by(METRICS, result, configuration)


def inputs(result: EvaluationResult) -> dict[str, str]:
    """Annotations, pictures that were left out, and how pictures were prepared."""
    part: CocoDetection = result.part
    truth = part.data.ground_truth
    return {
        "ground truth": truth.sha256[:12] if truth else "none",
        "pictures that are not in it": str(part.data.unlisted_pictures),
        "normalization": part.data.normalization,
        "resize": part.data.resize,
        "channel order": part.data.channel_order,
        "score threshold": f"{part.data.score_threshold:g}",
    }


def nan_outputs(result: EvaluationResult, configuration: ConfigurationResult) -> int:
    """Detections with a NaN or infinite score, class or box."""
    part: CocoDetection = result.part
    return sum(each.nonfinite_detections for each in part.figures if each.configuration == configuration.name)
