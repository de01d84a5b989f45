"""The sections of a detection evaluation on a page: figures of COCO, boxes, categories, the pictures that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.metrics.boxes import Detection, Detections, match_boxes
from evaltools.metrics.words import change
from evaltools.report.words.numbers import p_value, percent
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import (
    Block,
    Cell,
    Frame,
    Gallery,
    Lines,
    Number,
    Picture,
    Section,
    Table,
    Tone,
    number_cell,
)
from evaltools.tasks.coco.changes import is_clear
from evaltools.tasks.coco.result import (
    BoxComparison,
    BoxesPart,
    CategoryChange,
    CocoData,
    CocoPart,
    DetectedPicture,
)
from evaltools.tasks.framework.report import folder_of_pictures

DRAWN_SCORE: Final = 0.3
_VISIBLE_SHIFT: Final = 0.01
_MOST_PICTURES: Final = 16
"""Of each configuration."""
_MOST_CATEGORIES: Final = 12
_ABOUT_THE_PICTURES: Final = (
    f"Boxes with a score of {DRAWN_SCORE} or more that only one side has: red are those that only the reference has. "
    "Those that only the other has may be right or wrong, and have no colour of a verdict."
)


def sections(result: EvaluationResult) -> list[Section]:
    """How outputs were read, changes of figures, agreement of boxes, categories that changed most, and a gallery."""
    part: CocoPart = result.part
    coco = part.boxes
    tables: list[Block] = [_native(coco)] if any(entry.native for entry in coco.figures) else []
    tables += _figures(coco)
    tables += [_boxes(coco)] if coco.comparisons else []
    unclear = []
    for place, entry in enumerate(coco.comparisons):
        clear = [each for each in enumerate(entry.categories) if is_clear(each[1])]
        if clear:
            tables.append(_categories(entry, place, clear))
        elif coco.data.ground_truth is not None:
            unclear.append(_unclear(entry))
    tables += [Lines(unclear)] if unclear else []
    mapping = coco.data.class_mapping
    is_evident = coco.data.head is None and mapping is not None and not mapping.is_doubtful
    read = _how_read(coco.data)
    return [
        Section("Pictures", [Lines([_pictures(part), *(() if is_evident else read)])], "first"),
        Section("Boxes and categories", tables, "accuracy"),
        Section("How outputs were read", [Lines(read)] if read else []),
        Section("What changed", _galleries(coco, folder_of_pictures(part)), "changes", _ABOUT_THE_PICTURES),
    ]


def _pictures(part: CocoPart) -> str:
    truth = part.boxes.data.ground_truth
    if truth is None:
        return f"{part.example_count} pictures without ground truth"
    crowds = f", {truth.crowd_regions} crowd regions among them" if truth.crowd_regions else ""
    return f"{part.example_count} pictures, {truth.objects} annotated objects of {truth.categories} categories{crowds}"


def _how_read(data: CocoData) -> list[str]:
    """Which output is what, the decoder, how pictures were made, and what is taken for a category."""
    lines = [] if data.output_map is None else [f"outputs: {data.output_map} ({data.output_map.source})"]
    if data.head is not None:
        suppression = "suppressed in the model" if data.nms_iou is None else f"NMS at IoU {data.nms_iou:g} by class"
        lines += [
            data.head.describe(),
            f"pictures: {data.resize}, {data.normalization}, {data.channel_order}; "
            f"boxes: scores from {data.score_threshold:g}, {suppression}",
        ]
    return lines + ([] if data.class_mapping is None else [data.class_mapping.describe()])


def _native(coco: BoxesPart) -> Table:
    """What the native tool makes of it, over as many pictures as each configuration finished."""
    rows: list[Sequence[Cell]] = [
        [
            found.configuration,
            number_cell(None if found.native is None else found.native.overall, percent),
            number_cell(found.detections, path=f"part/boxes/figures/{place}/detections"),
            number_cell(found.pictures, path=f"part/boxes/figures/{place}/pictures"),
        ]
        for place, found in enumerate(coco.figures)
    ]
    return Table("As the native tool counts", ("configuration", "native mAP", "boxes", "pictures"), rows)


def _figures(coco: BoxesPart) -> list[Block]:
    """The changes of all comparisons in one table, none where there are none."""
    rows: list[Sequence[Cell]] = [
        [
            _sides(comparison),
            found.stat,
            Number(
                change(found.change, found.interval.low, found.interval.high, is_share=True),
                found.change,
                f"part/boxes/comparisons/{place}/changes/{number}/change",
            ),
            number_cell(found.p_value, p_value, f"part/boxes/comparisons/{place}/changes/{number}/p_value"),
        ]
        for place, comparison in enumerate(coco.comparisons)
        for number, found in enumerate(comparison.changes)
    ]
    columns = ("configuration", "figure", "change [95 %]", "test, uncorrected")
    return [Table("Changes of the figures of COCO, paired bootstrap over pictures", columns, rows)] if rows else []


def _boxes(coco: BoxesPart) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, comparison in enumerate(coco.comparisons):
        boxes, path = comparison.boxes, f"part/boxes/comparisons/{place}"
        counts = ("matched", "lost", "new", "class_changes")
        rows.append(
            [
                _sides(comparison),
                *(number_cell(getattr(boxes, name), path=f"{path}/boxes/{name}") for name in counts),
                number_cell(boxes.mean_iou, "{:.4f}".format),
                number_cell(boxes.score_shift, "{:.2g}".format, f"{path}/boxes/score_shift"),
                number_cell(comparison.identical, path=f"{path}/identical"),
                number_cell(comparison.example_count, path=f"{path}/example_count"),
            ]
        )
    columns = (
        "configuration", "matched", "lost", "new", "other class", "mean IoU", "largest score shift",
        "identical pictures", "pictures",
    )  # fmt: skip
    return Table("Boxes of the two sides, matched one to one (IoU 0.5 or more)", columns, rows)


def _unclear(comparison: BoxComparison) -> str:
    count = len(comparison.categories)
    if not count:
        return f"{_sides(comparison)}: AP is the same in all categories"
    names = f"{count} categor{'y' if count == 1 else 'ies'}"
    return f"{_sides(comparison)}: AP differs in {names}, in none by more than chance explains"


def _sides(comparison: BoxComparison) -> str:
    return f"{comparison.other} against {comparison.baseline}"


def _categories(comparison: BoxComparison, place: int, clear: Sequence[tuple[int, CategoryChange]]) -> Table:
    """The categories that changed by more than chance explains, with their places; those that changed most."""
    numbered = sorted(clear, key=lambda entry: -abs(entry[1].after - entry[1].before))
    rows: list[Sequence[Cell]] = []
    for number, found in numbered[:_MOST_CATEGORIES]:
        path = f"part/boxes/comparisons/{place}/categories/{number}"
        rows.append(
            [
                found.name,
                Number(f"{100 * found.before:.1f} %", found.before, f"{path}/before"),
                Number(f"{100 * found.after:.1f} %", found.after, f"{path}/after"),
                number_cell(found.objects, path=f"{path}/objects"),
                number_cell(found.p_value_holm, p_value, f"{path}/p_value_holm"),
            ]
        )
    below = f"{len(rows)} of {len(comparison.categories)} categories that differ; all are in the JSON result"
    columns = ("category", f"AP {comparison.baseline}", f"AP {comparison.other}", "objects", "test, corrected")
    return Table(f"Categories that changed by more than chance explains: {_sides(comparison)}", columns, rows, below)


def _galleries(coco: BoxesPart, folder: str) -> list[Block]:
    """The pictures that differ most from the first baseline, of each configuration that is compared with it."""
    galleries: list[Block] = []
    for comparison in coco.comparisons:
        differing = disagreements(coco, comparison)
        if comparison.baseline == coco.comparisons[0].baseline and differing:
            pictures = [_picture(coco, found, folder) for found in differing[:_MOST_PICTURES]]
            below = ""
            if len(pictures) < len(differing):
                shown = f"{len(pictures)} of {len(differing)} pictures shown"
                below = f"{shown}; --record_examples=true keeps all in the JSON result"
            galleries.append(Gallery(f"Pictures that differ most: {comparison.other}", pictures, below))
    return galleries


def _picture(coco: BoxesPart, found: Disagreement, folder: str) -> Picture:
    return Picture(
        folder=folder,
        name=found.picture.example,
        effect=f"{found.unequal} boxes that only one side has" if found.unequal else "the same boxes, shifted",
        tone="bad" if found.only_in[found.baseline] else "",
        lines=(f"scores and places shift by up to {found.shift:.3f}",),
        frames=[*_frames(coco, found, found.baseline, "bad"), *_frames(coco, found, found.other, "")],
    )


def _frames(coco: BoxesPart, found: Disagreement, side: str, tone: Tone) -> list[Frame]:
    names = coco.data.category_names
    boxes = [found.picture.detections[side][number] for number in sorted(found.only_in[side])]
    return [
        Frame(box.box, f"{side}: {names.get(box.category_id, f'class {box.category_id}')} {box.score:.2f}", tone)
        for box in boxes
    ]


class Disagreement(Struct, frozen=True):
    """A picture on which a test configuration differs from the reference.

    ``only_in`` are the boxes of each side, by number, that have a score of 0.3 or more and no partner of the same class
    on the other side, whatever its score. ``shift`` is the largest change of a score, plus the largest loss of overlap.
    """

    picture: DetectedPicture
    baseline: str
    other: str
    only_in: Mapping[str, frozenset[int]]
    shift: float

    @property
    def unequal(self) -> int:
        """The number of boxes without a partner, of both sides."""
        return sum(map(len, self.only_in.values()))


def disagreements(coco: BoxesPart, comparison: BoxComparison) -> list[Disagreement]:
    """The pictures on which two configurations differ, the worst first.

    Those without unpaired boxes, on which scores and places shift by less than 0.01, are left out.
    """
    baseline, other = comparison.baseline, comparison.other
    rated = [
        _rate(picture, baseline, other)
        for picture in coco.pictures or []
        if {baseline, other} <= picture.detections.keys()
    ]
    differing = [entry for entry in rated if entry.unequal or entry.shift >= _VISIBLE_SHIFT]
    return sorted(differing, key=lambda entry: (-entry.unequal, -entry.shift))


def _rate(picture: DetectedPicture, baseline: str, other: str) -> Disagreement:
    expected, found = (picture.detections[name] for name in (baseline, other))
    matched = match_boxes(_as_detections(found), _as_detections(expected))
    pairs = [pair for pair in matched if pair.same_class]
    only_in = {
        baseline: _drawn(expected) - {pair.reference for pair in pairs},
        other: _drawn(found) - {pair.test for pair in pairs},
    }
    shifts = [abs(found[pair.test].score - expected[pair.reference].score) for pair in matched]
    shift = max(shifts, default=0.0) + max((1 - pair.iou for pair in matched), default=0.0)
    return Disagreement(picture, baseline, other, only_in, shift)


def _drawn(found: Sequence[Detection]) -> frozenset[int]:
    return frozenset(number for number, entry in enumerate(found) if entry.score >= DRAWN_SCORE)


def _as_detections(found: Sequence[Detection]) -> Detections:
    return Detections(
        np.array([entry.box for entry in found], np.float64).reshape(-1, 4),
        np.array([entry.category_id for entry in found], np.float64),
        np.array([entry.score for entry in found], np.float64),
    )
