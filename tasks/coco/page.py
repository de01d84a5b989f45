"""The sections of a detection evaluation on a page: figures of COCO, boxes, categories, the pictures that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.report.tables.cells import p_value
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Frame, Gallery, Lines, Number, Picture, Section, Table, Tone
from evaltools.tasks.coco.changes import is_clear
from evaltools.tasks.coco.disagreements import DRAWN_SCORE, Disagreement, worst_disagreements
from evaltools.tasks.coco.result import BoxComparison, CategoryChange, CocoDetection

_MOST_PICTURES: Final = 16
"""Of each configuration."""
_MOST_CATEGORIES: Final = 12
_ABOUT_THE_PICTURES: Final = (
    f"Boxes with a score of {DRAWN_SCORE} or more that only one side has: red are those that the reference alone has. "
    "Those that the other alone has may be right or wrong, and have no colour of a verdict."
)


def sections(result: EvaluationResult) -> list[Section]:
    """Changes of figures, agreement of boxes, categories that changed most, and a gallery."""
    coco: CocoDetection = result.part
    changes = [found for place, entry in enumerate(coco.comparisons) for found in _changes(entry, place)]
    tables: list[Block] = [_figures(changes)] if changes else []
    tables += [_boxes(coco)] if coco.comparisons else []
    tables += [_categories(entry, place) for place, entry in enumerate(coco.comparisons) if _clear(entry)]
    compared = coco.comparisons if coco.data.ground_truth is not None else []
    unclear = [_unclear(entry) for entry in compared if not _clear(entry)]
    tables += [Lines(unclear)] if unclear else []
    return [
        Section("Boxes and categories", tables, "accuracy"),
        Section("What changed", _galleries(coco), "changes", _ABOUT_THE_PICTURES),
    ]


def _changes(comparison: BoxComparison, place: int) -> list[Sequence[Cell]]:
    return [
        [
            _sides(comparison),
            change.stat,
            Number(
                f"{100 * change.change:+.2f} points", change.change, f"part/comparisons/{place}/changes/{number}/change"
            ),
            f"[{100 * change.interval.low:+.2f}, {100 * change.interval.high:+.2f}]",
            Number(p_value(change.p_value), change.p_value, f"part/comparisons/{place}/changes/{number}/p_value"),
        ]
        for number, change in enumerate(comparison.changes)
    ]


def _figures(rows: Sequence[Sequence[Cell]]) -> Table:
    columns = ("configuration", "figure", "change", "95 % interval", "test, uncorrected")
    return Table("Changes of the figures of COCO, paired bootstrap over pictures", columns, rows)


def _boxes(coco: CocoDetection) -> Table:
    rows: list[Sequence[Cell]] = []
    for place, comparison in enumerate(coco.comparisons):
        boxes, path = comparison.boxes, f"part/comparisons/{place}"
        counts = (
            ("matched", boxes.matched),
            ("lost", boxes.lost),
            ("new", boxes.new),
            ("class_changes", boxes.class_changes),
        )
        rows.append(
            [
                _sides(comparison),
                *(Number(str(count), count, f"{path}/boxes/{name}") for name, count in counts),
                "-" if boxes.mean_iou is None else Number(f"{boxes.mean_iou:.4f}", boxes.mean_iou),
                Number(f"{boxes.score_shift:.2g}", boxes.score_shift, f"{path}/boxes/score_shift"),
                Number(str(comparison.identical), comparison.identical, f"{path}/identical"),
                Number(str(comparison.example_count), comparison.example_count, f"{path}/example_count"),
            ]
        )
    columns = (
        "configuration", "matched", "lost", "new", "other class", "mean IoU", "largest score shift",
        "identical pictures", "pictures",
    )  # fmt: skip
    return Table("Boxes of the two sides, matched one to one (IoU 0.5 or more)", columns, rows)


def _clear(comparison: BoxComparison) -> list[tuple[int, CategoryChange]]:
    """The categories that changed by more than chance explains, with their places."""
    return [entry for entry in enumerate(comparison.categories) if is_clear(entry[1])]


def _unclear(comparison: BoxComparison) -> str:
    count = len(comparison.categories)
    if not count:
        return f"{_sides(comparison)}: AP is the same in all categories"
    names = f"{count} categor{'y' if count == 1 else 'ies'}"
    return f"{_sides(comparison)}: AP differs in {names}, in none by more than chance explains"


def _sides(comparison: BoxComparison) -> str:
    return f"{comparison.other} against {comparison.baseline}"


def _categories(comparison: BoxComparison, place: int) -> Table:
    numbered = sorted(_clear(comparison), key=lambda entry: -abs(entry[1].after - entry[1].before))
    rows: list[Sequence[Cell]] = []
    for number, found in numbered[:_MOST_CATEGORIES]:
        path = f"part/comparisons/{place}/categories/{number}"
        rows.append(
            [
                found.name,
                Number(f"{100 * found.before:.1f} %", found.before, f"{path}/before"),
                Number(f"{100 * found.after:.1f} %", found.after, f"{path}/after"),
                Number(str(found.objects), found.objects, f"{path}/objects"),
                Number(p_value(found.p_value_holm), found.p_value_holm, f"{path}/p_value_holm"),
            ]
        )
    below = f"{len(rows)} of {len(comparison.categories)} categories that differ; all are in the JSON result"
    columns = ("category", f"AP {comparison.baseline}", f"AP {comparison.other}", "objects", "test, corrected")
    return Table(f"Categories that changed by more than chance explains: {_sides(comparison)}", columns, rows, below)


def _galleries(coco: CocoDetection) -> list[Block]:
    by_other: dict[str, list[Disagreement]] = {}
    for found in worst_disagreements(coco, most=len(coco.pictures or [])):
        by_other.setdefault(found.other, []).append(found)
    galleries: list[Block] = []
    for other, differing in by_other.items():
        pictures = [_picture(coco, found) for found in differing[:_MOST_PICTURES]]
        counts = f"{len(pictures)} of {len(differing)} pictures shown"
        below = (
            f"{counts}; --record_examples=true keeps all in the JSON result" if len(pictures) < len(differing) else ""
        )
        galleries.append(Gallery(f"Pictures that differ most: {other}", pictures, below))
    return galleries


def _picture(coco: CocoDetection, found: Disagreement) -> Picture:
    return Picture(
        folder=coco.data.images,
        name=found.picture.example,
        effect=f"{found.unequal} boxes that only one side has" if found.unequal else "the same boxes, shifted",
        tone="bad" if found.lonely[found.baseline] else "",
        lines=(f"scores and places shift by up to {found.shift:.3f}",),
        frames=[*_frames(coco, found, found.baseline, "bad"), *_frames(coco, found, found.other, "")],
    )


def _frames(coco: CocoDetection, found: Disagreement, side: str, tone: Tone) -> list[Frame]:
    names = coco.data.category_names
    boxes = [found.picture.detections[side][number] for number in sorted(found.lonely[side])]
    return [
        Frame(box.box, f"{side}: {names.get(box.category_id, f'class {box.category_id}')} {box.score:.2f}", tone)
        for box in boxes
    ]
