"""What a detection evaluation says in the end: figures, categories, verdicts, what is shown, single pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.metrics.boxes import Detection
from evaltools.result.figure import Change, Figure, Part, figure_of
from evaltools.result.json_file import encode_json
from evaltools.result.result import ANSWERS_CHANGED, EXAMPLES, Result
from evaltools.tasks.coco.changes import verdicts_on_map
from evaltools.tasks.coco.metrics import MATCHED_BOXES, OF_COCO
from evaltools.tasks.coco.page import disagreements, sections
from evaltools.tasks.coco.result import BoxComparison, Detected, DetectedPicture, DetectionFigures, StatChange
from evaltools.tasks.framework.collecting import Columns, Concluded, RecordsOfRun, columns

NATIVE_MAP: Final = "native_average_precision"
"""The series of the native tool's average precisions by threshold, and of their mean."""
_OF_EXAMPLES: Final = ("example", "configuration", "objects", "detections", "best_score", "image_id", "size", "boxes")
_OF_CHANGED: Final = ("example", "configuration", "boxes_only_before", "boxes_only_after", "shift")


def concluded(
    detected: Detected,
    reference: str | None,
    run: RecordsOfRun,
    given: Mapping[str, str],
    warnings: Sequence[str],
    keeps_examples: bool,
) -> Concluded:
    """All of it."""
    by_name = {each.configuration: each for each in detected.figures}
    with_reference = {each.other: each for each in detected.comparisons if each.baseline == reference}
    return Concluded(
        figures={name: _figures(found, with_reference.get(name)) for name, found in by_name.items()},
        parts={name: _categories(found, with_reference.get(name)) for name, found in by_name.items()},
        verdicts=verdicts_on_map(detected.comparisons, detected.figures, run.share_margin),
        warnings=warnings,
        blocks=sections(detected, len(run.outcome.names), run.pictures),
        given=given,
        nan_outputs={name: found.nonfinite_detections for name, found in by_name.items()},
        texts={
            name: {ANSWERS_CHANGED: each.boxes_in_words}
            for name, each in with_reference.items()
            if each.identical < each.example_count
        },
        series={name: _native_map(found, detected.data.native) for name, found in by_name.items()},
        examples=_examples(detected.pictures) if keeps_examples else {},
        changed=_changed(detected.pictures, with_reference.values()) if keeps_examples else {},
    )


def _native_map(found: DetectionFigures, is_native: bool) -> dict[str, list[float]]:
    """The native tool's figures; without a ground truth it states an mAP of 0."""
    if found.native is None:
        return {NATIVE_MAP: [0.0]} if is_native else {}
    return {NATIVE_MAP: [*found.native.thresholds, found.native.overall]}


def _figures(found: DetectionFigures, compared: BoxComparison | None) -> dict[str, Figure]:
    figures: dict[str, Figure] = {}
    changes = {} if compared is None else {each.stat: _change(compared, each) for each in compared.changes}
    if found.evaluation is not None:
        for metric in OF_COCO:
            value, draws = getattr(found.evaluation.stats, metric.name), found.resampled.get(metric.name, [])
            figures[metric.name] = figure_of(metric, value, draws=draws, change=changes.get(metric.name))
    if compared is not None:
        figures["matched_boxes"] = figure_of(MATCHED_BOXES, compared.matched_share)
    return figures


def _change(compared: BoxComparison, found: StatChange) -> Change:
    count = compared.example_count
    return Change(compared.baseline, found.change, found.interval, count, p_value=found.p_value_holm)


def _categories(found: DetectionFigures, compared: BoxComparison | None) -> list[Part]:
    """AP of each category, with its change where that differs."""
    changes: dict[str, Change] = {}
    if compared is not None:
        for each in compared.categories:
            value, count = each.after - each.before, each.pictures
            changes[each.name] = Change(compared.baseline, value, count=count, p_value=each.p_value_holm)
    parts = []
    for category in found.evaluation.categories if found.evaluation is not None else ():
        precision = Figure(category.ap, better="higher", is_share=True, change=changes.get(category.name))
        objects = Figure(float(category.objects))
        parts.append(Part(category.name, figures={"category_ap": precision, "objects": objects}))
    return parts


def _examples(pictures: Sequence[DetectedPicture]) -> Columns:
    """What each configuration found in each picture: a box is its class, its score, and its sides in shares."""
    rows = []
    for picture in pictures:
        for name, found in picture.detections.items():
            best = max((box.score for box in found), default=None)
            counts = (len(picture.objects), len(found), best)
            size, boxes = [picture.width, picture.height], [[box.category_id, box.score, *box.box] for box in found]
            rows.append((picture.example, name, *counts, picture.image_id, size, boxes))
    return columns(_OF_EXAMPLES, rows)


def _changed(pictures: Sequence[DetectedPicture], comparisons: Iterable[BoxComparison]) -> Columns:
    """The pictures on which a configuration differs from the reference, the worst first."""
    rows = []
    for compared in comparisons:
        for found in disagreements(pictures, compared).worst:
            only = (len(found.only_in[name]) for name in (compared.baseline, compared.other))
            rows.append((found.picture.example, compared.other, *only, found.shift))
    return columns(_OF_CHANGED, rows)


class Picture(Struct, frozen=True):
    """A picture of a result with the detections of one configuration; ``size`` is its width and height in pixels."""

    example: str
    image_id: int | None
    size: tuple[int, int]
    detections: list[Detection]


def pictures_of(result: Result, configuration: str) -> list[Picture]:
    """What a configuration found in each picture, where that was kept."""
    kept = result.tables.get(EXAMPLES, {})
    return [
        Picture(example, image_id, tuple(size), [Detection(box[0], box[1], tuple(box[2:])) for box in boxes])
        for example, name, image_id, size, boxes in zip(
            *(kept.get(column, ()) for column in ("example", "configuration", "image_id", "size", "boxes")), strict=True
        )
        if name == configuration
    ]


def detections_file(result: Result, configuration: str) -> bytes:
    """Detections in the COCO results format, which pycocotools' ``loadRes`` reads.

    A JSON list with image_id, category_id, bbox [x, y, width, height] in pixels, and score of each detection.
    """
    return encode_json(
        [
            {
                "image_id": picture.image_id,
                "category_id": found.category_id,
                "bbox": found.pixel_box(*picture.size),
                "score": found.score,
            }
            for picture in pictures_of(result, configuration)
            if picture.image_id is not None
            for found in picture.detections
        ]
    )
