"""The sections of a detection evaluation on a page: figures of COCO, boxes, categories, the pictures that changed."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.metrics.boxes import Detection, Detections, match_boxes
from evaltools.metrics.resampled import FEWEST_EXAMPLES
from evaltools.report.words.facts import counted
from evaltools.report.words.numbers import p_value, percent
from evaltools.result.places import reference_of
from evaltools.result.result import Result, Row, next_step
from evaltools.result.section import (
    Block,
    Cell,
    Frame,
    Gallery,
    Lines,
    Note,
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
    CategoryChange,
    CocoData,
    Detected,
    DetectedPicture,
)
from evaltools.tasks.framework.next_steps import next_steps as after_verdict

DRAWN_SCORE: Final = 0.3
_VISIBLE_SHIFT: Final = 0.01
_MOST_PICTURES: Final = 16
"""Of each configuration."""
_MOST_CATEGORIES: Final = 12
_FEW_FOUND: Final = 0.05
"""The mAP below which boxes may have been read in a wrong way."""
_OUTPUTS_READ: Final = (
    "boxes that do not match are usually outputs in another order (--output_map), or classes that begin elsewhere "
    "(--class_offset)"
)
_ABOUT_THE_PICTURES: Final = (
    f"Boxes with a score of {DRAWN_SCORE} or more that only one side has: red are those that only the reference has, "
    "blue those that only the other has, which may be right or wrong."
)


def sections(detection: Detected, example_count: int, folder: str) -> list[Section]:
    """How outputs were read, changes of figures, agreement of boxes, categories that changed most, and a gallery.

    The pictures lie in ``folder``.
    """
    data, comparisons = detection.data, detection.comparisons
    tables: list[Block] = [_native(detection)] if any(entry.native for entry in detection.figures) else []
    tables += [_boxes(comparisons)] if comparisons else []
    unclear = []
    for entry in comparisons:
        clear = [each for each in entry.categories if is_clear(each)]
        if clear:
            tables.append(_categories(entry, clear))
        elif data.ground_truth is not None:
            unclear.append(_unclear(entry))
    tables += [Lines(unclear)] if unclear else []
    mapping = data.class_mapping
    is_evident = data.head is None and mapping is not None and not mapping.is_doubtful
    read = _how_read(data)
    first = [each for each in comparisons if each.baseline == comparisons[0].baseline]
    lines: list[str | Note] = [_pictures(data, example_count), *(() if is_evident else read)]
    lines += [Note(each.other, _changed(each)) for each in first if each.identical < each.example_count]
    return [
        Section("Pictures", [Lines(lines)], "first"),
        Section("Boxes and categories", tables, "accuracy"),
        Section("How outputs were read", [Lines(read)] if read else []),
        Section("What changed", _galleries(detection, folder), "changes", _ABOUT_THE_PICTURES),
    ]


def next_steps(result: Result, configuration: Row) -> list[Note]:
    """As after any evaluation; where boxes are others, and the reference's may be wrong, what usually explains it."""
    verdict, steps = configuration.verdict, after_verdict(result, configuration)
    has_diverged = verdict is not None and verdict.kind == "diverged"
    return [*steps, next_step(_OUTPUTS_READ)] if has_diverged and not _reads_well(result, configuration) else steps


def _reads_well(result: Result, configuration: Row) -> bool:
    """Whether the reference finds objects in the same outputs, so that how they are read is no reason."""
    reference = reference_of(configuration, result.rows)
    if reference is None or result.other_models:
        return False
    ap = reference.value("ap")
    is_remarked = any(text.startswith(f"{reference.name}: ") for text in result.warnings)
    return not is_remarked and (ap is None or ap >= _FEW_FOUND)


def _changed(compared: BoxComparison) -> str:
    """How many boxes are no longer there, and how many are new, of whatever score."""
    count = compared.example_count - compared.identical
    return (
        f"{compared.boxes_in_words}; "
        f"a box or its score differs in {count} of {counted(compared.example_count, 'picture')}"
    )


def _pictures(data: CocoData, count: int) -> str:
    truth = data.ground_truth
    if truth is None:
        return f"{counted(count, 'picture')} without ground truth"
    crowds = f", {counted(truth.crowd_regions, 'crowd region')} among them" if truth.crowd_regions else ""
    objects = counted(truth.objects, "annotated object")
    categories = counted(truth.categories, "category", "categories")
    native = "mAP is as COCO counts, Overall mAP in the native lines as the native tool does"
    return f"{counted(count, 'picture')}, {objects} of {categories}{crowds}; {native}"


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


def _native(detection: Detected) -> Table:
    """What the native tool makes of it, over as many pictures as each configuration finished."""
    rows: list[Sequence[Cell]] = [
        [
            found.configuration,
            number_cell(None if found.native is None else found.native.overall, percent),
            number_cell(found.detections),
            number_cell(found.pictures),
        ]
        for found in detection.figures
    ]
    return Table("As the native tool counts", ("configuration", "native mAP", "boxes", "pictures"), rows)


def _boxes(comparisons: Sequence[BoxComparison]) -> Table:
    rows: list[Sequence[Cell]] = []
    for comparison in comparisons:
        boxes = comparison.boxes
        rows.append(
            [
                _sides(comparison),
                *map(number_cell, (boxes.matched, boxes.lost, boxes.new, boxes.class_changes)),
                number_cell(boxes.mean_iou, "{:.4f}".format),
                number_cell(boxes.score_shift, "{:.2g}".format),
                number_cell(comparison.identical),
                number_cell(comparison.example_count),
            ]
        )
    columns = (
        "configuration", "matched", "lost", "new", "other class", "mean IoU", "largest score shift",
        "identical pictures", "pictures",
    )  # fmt: skip
    return Table("Boxes of the two sides, matched one to one (IoU 0.5 or more)", columns, rows)


def _unclear(comparison: BoxComparison) -> str:
    count = len(comparison.categories)
    if comparison.example_count < FEWEST_EXAMPLES:
        return (
            f"{_sides(comparison)}: categories are not compared, which takes {FEWEST_EXAMPLES} pictures; these are "
            f"{comparison.example_count}"
        )
    if not count:
        return f"{_sides(comparison)}: AP is the same in all categories"
    names = f"{count} categor{'y' if count == 1 else 'ies'}"
    return f"{_sides(comparison)}: AP differs in {names}, in none by more than chance explains"


def _sides(comparison: BoxComparison) -> str:
    return f"{comparison.other} against {comparison.baseline}"


def _categories(comparison: BoxComparison, clear: Sequence[CategoryChange]) -> Table:
    """The categories that changed by more than chance explains; those that changed most."""
    shown = sorted(clear, key=lambda entry: -abs(entry.after - entry.before))[:_MOST_CATEGORIES]
    rows: list[Sequence[Cell]] = [
        [
            found.name,
            Number(f"{100 * found.before:.1f} %", found.before),
            Number(f"{100 * found.after:.1f} %", found.after),
            number_cell(found.objects),
            number_cell(found.p_value_holm, p_value),
        ]
        for found in shown
    ]
    below = f"{len(rows)} of {len(comparison.categories)} categories that differ; all are in the JSON result"
    columns = ("category", f"AP {comparison.baseline}", f"AP {comparison.other}", "objects", "test, corrected")
    return Table(f"Categories that changed by more than chance explains: {_sides(comparison)}", columns, rows, below)


def _galleries(detection: Detected, folder: str) -> list[Block]:
    """The pictures that differ most from the first baseline, of each configuration that is compared with it."""
    galleries: list[Block] = []
    for comparison in detection.comparisons:
        if comparison.baseline != detection.comparisons[0].baseline:
            continue
        differing = disagreements(detection.pictures, comparison, _MOST_PICTURES)
        if differing.count:
            names = detection.data.category_names
            pictures = [_picture(names, found, folder) for found in differing.worst]
            below = ""
            if len(pictures) < differing.count:
                shown = f"{len(pictures)} of {differing.count} pictures shown"
                below = f"{shown}; --record_examples=true keeps all in the JSON result"
            galleries.append(Gallery(f"Pictures that differ most: {comparison.other}", pictures, below))
    return galleries


def _picture(names: Mapping[int, str], found: Disagreement, folder: str) -> Picture:
    lost, gained = (found.boxes_only_in(side) for side in (found.baseline, found.other))
    kinds = [*(["lost"] if lost else []), *(["gained"] if gained else [])]
    effect = f"{counted(len(lost), 'box', 'boxes')} lost, {len(gained)} gained"
    return Picture(
        folder=folder,
        name=found.picture.example,
        effect=effect if kinds else "the same boxes, shifted",
        tone="bad" if lost else "",
        lines=(f"scores and places shift by up to {found.shift:.3f}",),
        frames=[*_frames(names, lost, found.baseline, "bad"), *_frames(names, gained, found.other, "")],
        kind=" and ".join(kinds) or "shifted",
        classes=list(dict.fromkeys(_class_of(names, box) for box in (*lost, *gained))),
        score=max((box.score for box in (*lost, *gained)), default=None),
    )


def _frames(names: Mapping[int, str], boxes: Sequence[Detection], side: str, tone: Tone) -> list[Frame]:
    return [Frame(box.box, f"{side}: {_class_of(names, box)} {box.score:.2f}", tone) for box in boxes]


def _class_of(names: Mapping[int, str], box: Detection) -> str:
    return names.get(box.category_id, f"class {box.category_id}")


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

    def boxes_only_in(self, side: str) -> list[Detection]:
        """The boxes of one side without a partner."""
        return [self.picture.detections[side][number] for number in sorted(self.only_in[side])]

    @property
    def unequal(self) -> int:
        """The number of boxes without a partner, of both sides."""
        return sum(map(len, self.only_in.values()))


class Disagreements(Struct, frozen=True):
    """The worst of ``count`` pictures on which two configurations differ, the worst first."""

    worst: list[Disagreement]
    count: int


def disagreements(
    pictures: Iterable[DetectedPicture], comparison: BoxComparison, most: int | None = None
) -> Disagreements:
    """The pictures on which two configurations differ, or ``most`` of them; no others are kept.

    Those without unpaired boxes, on which scores and places shift by less than 0.01, are left out.
    """
    baseline, other = comparison.baseline, comparison.other
    worst: list[Disagreement] = []
    count = 0
    for picture in pictures:
        if {baseline, other} <= picture.detections.keys():
            found = _rate(picture, baseline, other)
            if found.unequal or found.shift >= _VISIBLE_SHIFT:
                count += 1
                bisect.insort(worst, found, key=lambda entry: (-entry.unequal, -entry.shift))
                if most is not None:
                    del worst[most:]
    return Disagreements(worst, count)


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
