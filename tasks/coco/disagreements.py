"""A picture of the worst disagreements: ground truth, reference and test side by side."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from PIL import Image, ImageDraw, ImageFont

from evaltools.metrics.boxes import Detection, Detections, compare_boxes, match_boxes
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.coco.result import CocoDetection, DetectedPicture
from evaltools.tasks.shared.contact_sheet import LoadPicture
from evaltools.text import printable

DRAWN_SCORE: Final = 0.3
VISIBLE_SHIFT: Final = 0.01
_PICTURES_PER_TEST: Final = 4
_PANEL: Final = (320, 240)
_MARGIN: Final = 8
_LINE: Final = 16
_COLOURS: Final = (
    "#e6194b", "#3cb44b", "#ffe119", "#4363d8", "#f58231", "#911eb4", "#46f0f0", "#f032e6", "#bcf60c", "#fabebe",
)  # fmt: skip
PixelBox = tuple[int, int, int, int]


class Disagreement(Struct, frozen=True):
    """A picture on which a test configuration differs from the reference.

    ``lonely`` are the boxes of each side, by number, that have a score of 0.3 or more and no partner of the same class
    on the other side, whatever its score. ``shift`` is the largest change of a score, plus the largest loss of overlap.
    """

    picture: DetectedPicture
    baseline: str
    other: str
    lonely: Mapping[str, frozenset[int]]
    shift: float

    @property
    def unequal(self) -> int:
        """The number of boxes without a partner, of both sides."""
        return sum(map(len, self.lonely.values()))


def worst_disagreements(coco: CocoDetection, most: int = _PICTURES_PER_TEST) -> list[Disagreement]:
    """The pictures of each comparison with the first baseline, the worst first.

    Those without lonely boxes, on which scores and places shift by less than 0.01, are left out.
    """
    if not coco.comparisons:
        return []
    baseline = coco.comparisons[0].baseline
    found: list[Disagreement] = []
    for comparison in coco.comparisons:
        if comparison.baseline == baseline:
            rated = [
                _rate(picture, baseline, comparison.other)
                for picture in coco.pictures or []
                if {baseline, comparison.other} <= picture.detections.keys()
            ]
            differing = [entry for entry in rated if entry.unequal or entry.shift >= VISIBLE_SHIFT]
            found += sorted(differing, key=lambda entry: (-entry.unequal, -entry.shift))[:most]
    return found


def _rate(picture: DetectedPicture, baseline: str, other: str) -> Disagreement:
    expected, found = (picture.detections[name] for name in (baseline, other))
    test, reference = _as_detections(found), _as_detections(expected)
    pairs = [pair for pair in match_boxes(test, reference) if pair.same_class]
    agreement = compare_boxes(test, reference)
    lonely = {
        baseline: _drawn(expected) - {pair.reference for pair in pairs},
        other: _drawn(found) - {pair.test for pair in pairs},
    }
    return Disagreement(picture, baseline, other, lonely, agreement.score_shift + agreement.moved)


def _drawn(found: Sequence[Detection]) -> frozenset[int]:
    return frozenset(number for number, entry in enumerate(found) if entry.score >= DRAWN_SCORE)


def _as_detections(found: Sequence[Detection]) -> Detections:
    return Detections(
        np.array([entry.box for entry in found], np.float64).reshape(-1, 4),
        np.array([entry.category_id for entry in found], np.float64),
        np.array([entry.score for entry in found], np.float64),
    )


def draw_disagreements(result: EvaluationResult, load: LoadPicture) -> bytes | None:
    """A PNG with one row per picture.

    None where there is nothing to draw: no comparison, or no visible difference.
    """
    coco: CocoDetection = result.part
    rows = worst_disagreements(coco)
    if not rows:
        return None
    names = coco.data.category_names
    has_truth = coco.data.ground_truth is not None
    columns = 3 if has_truth else 2
    width = columns * _PANEL[0] + (columns + 1) * _MARGIN
    row_height = _PANEL[1] + 2 * _LINE + _MARGIN
    canvas = Image.new("RGB", (width, len(rows) * row_height + _MARGIN), "white")
    for number, row in enumerate(rows):
        panels = _panels(row, names, has_truth)
        _draw_row(canvas, row, load(row.picture.example), panels, _MARGIN + number * row_height)
    buffer = io.BytesIO()
    canvas.save(buffer, "PNG")
    return buffer.getvalue()


def _draw_row(
    canvas: Image.Image, row: Disagreement, pixels: npt.NDArray[np.uint8], panels: Sequence[_Panel], top: int
) -> None:
    font = ImageFont.load_default(12)
    draw = ImageDraw.Draw(canvas)
    heading = (
        f"{printable(row.picture.example)}: boxes that only one side has: {row.unequal} (score {DRAWN_SCORE} or more); "
        f"scores and places shift by up to {row.shift:.3f}"
    )
    draw.text((_MARGIN, top), heading, "black", font)
    for column, panel in enumerate(panels):
        left = _MARGIN + column * (_PANEL[0] + _MARGIN)
        draw.text((left, top + _LINE), panel.title, "black", font)
        canvas.paste(_draw_panel(pixels, panel.boxes), (left, top + 2 * _LINE))


class _Box(Struct, frozen=True):
    box: Detection
    label: str
    is_lonely: bool


class _Panel(Struct, frozen=True):
    title: str
    boxes: list[_Box]


def _panels(row: Disagreement, names: Mapping[int, str], has_truth: bool) -> list[_Panel]:
    """The panels of a row: ground truth if there is one, reference, test."""
    truth = [
        _Box(Detection(entry.category_id, 1.0, entry.box), _name(entry.category_id, names), is_lonely=False)
        for entry in row.picture.objects
    ]
    panels = [_Panel("ground truth", truth)] if has_truth else []
    for side in (row.baseline, row.other):
        found = row.picture.detections[side]
        labelled = [
            _Box(
                found[number],
                f"{_name(found[number].category_id, names)} {found[number].score:.2f}",
                number in row.lonely[side],
            )
            for number in sorted(_drawn(found))
        ]
        panels.append(_Panel(f"{printable(side)} (thick: not on the other side)", labelled))
    return panels


def _name(category_id: int, names: Mapping[int, str]) -> str:
    return printable(names.get(category_id, f"class {category_id}"))


def _draw_panel(pixels: npt.NDArray[np.uint8], boxes: Sequence[_Box]) -> Image.Image:
    picture = Image.fromarray(pixels)
    ratio = min(_PANEL[0] / picture.width, _PANEL[1] / picture.height)
    picture = picture.resize((max(round(picture.width * ratio), 1), max(round(picture.height * ratio), 1)))
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(11)
    for entry in boxes:
        colour = _COLOURS[entry.box.category_id % len(_COLOURS)]
        place = _place(entry.box, picture.width, picture.height)
        draw.rectangle(place, outline=colour, width=4 if entry.is_lonely else 1)
        corner = (max(min(place[0], picture.width - draw.textlength(entry.label, font)), 0), place[1])
        draw.rectangle(draw.textbbox(corner, entry.label, font), fill=colour)
        draw.text(corner, entry.label, "black", font)
    return picture


def _place(entry: Detection, width: int, height: int) -> PixelBox:
    """A box's corners in pixels, kept inside the panel and in ascending order."""
    top, left, bottom, right = np.clip(entry.box, 0, 1).tolist()
    x = sorted((int(left * (width - 1)), int(right * (width - 1))))
    y = sorted((int(top * (height - 1)), int(bottom * (height - 1))))
    return x[0], y[0], x[1], y[1]
