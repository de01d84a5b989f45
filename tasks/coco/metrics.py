"""The metrics of a COCO detection evaluation."""

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
from evaltools.result.places import against_reference
from evaltools.tasks.coco.result import BoxComparison, DetectionFigures, boxes_of


def _figures(result: EvaluationResult, name: str) -> DetectionFigures | None:
    return next((entry for entry in boxes_of(result).figures if entry.configuration == name), None)


def _comparison(result: EvaluationResult, configuration: ConfigurationResult) -> BoxComparison | None:
    return against_reference(result, boxes_of(result).comparisons, configuration)


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
    comparison = _comparison(result, configuration)
    changes = [entry for entry in comparison.changes if entry.stat == name] if comparison else []
    if comparison is None or not changes:
        return None
    drawn = {entry.configuration: entry.resampled for entry in boxes_of(result).figures}
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
