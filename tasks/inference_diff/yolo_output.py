"""The head of a YOLO as a kind of output: what it means are its boxes, after non-maximum suppression, and keypoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple, replace

from evaltools.gates.verdict import MATTERS, run_of_boxes
from evaltools.metrics.boxes import BoxAgreement, Detections, compare_boxes, match_boxes
from evaltools.metrics.output_difference import KindFigures, RunAnswers
from evaltools.tasks.coco.decoders import Coordinates, Decoder, Floats, Head, input_size, mask_maps, suppressed
from evaltools.tasks.coco.yolo_heads import DECODERS, KEYPOINTS_OF_PERSON, YOLOV8, YOLOV8_POSE, is_turned
from evaltools.tasks.inference_diff.keypoints_output import Keypoints, moves
from evaltools.tasks.inference_diff.output_kind import Output, Values

EMPTY_FROM: Final = "empty from"
"""Among the values of a run: the first slot behind the last box of a head that suppresses boxes itself."""
_PARTNERS: Final = 0.15
"""A partner may score less."""
_SAME_SCORE: Final = 2.0**-10
"""So near to the lowest score of slots that are all filled, rounding to fp16 decides which box has the last."""
_NO_SCORE: Final = 0.01
"""So far outside of 0..1 a value is no score."""
_OF_KEYPOINT: Final = 3
_SCORE: Final = 4
"""The place of the score, where a model suppresses boxes itself."""
_KEYPOINTS: Final = Keypoints()


class _Reading(Struct, frozen=True):
    """A decoder with the head and the coordinates that it reads."""

    decoder: Decoder
    head: Head
    coordinates: Coordinates

    @property
    def in_cells(self) -> bool:
        """Whether each box is that of a cell; else the model suppresses boxes itself, and their places say nothing."""
        return bool(self.head.strides)

    @property
    def posing(self) -> bool:
        """Whether keypoints stand behind the scores; else what stands there are values: of a mask, or an angle."""
        return self.head.extra > 0 and (self.decoder is YOLOV8_POSE or self.head.extra == KEYPOINTS_OF_PERSON)


class YoloHead:
    """Boxes of a YOLO: in the cells of feature maps, or what the model itself has left of them."""

    name = "yolo"
    needs = (
        "the head of a YOLO, such as [1, cells, 5 + classes], [1, 4 + classes, cells] or [1, boxes, 6], and a picture"
    )

    def is_kind(self, output: Output) -> bool:
        """Heads whose number of cells is that of the picture, or whose rows have six numbers and more."""
        return self.fits(output) and output.made_by not in ("SOFTMAX", "LOG_SOFTMAX")

    def fits(self, output: Output) -> bool:
        """Whether a decoder of ``coco`` takes such a shape."""
        return output.is_real and bool(_shaped(output))

    def compare(
        self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output
    ) -> Values | None:
        """The agreement of the boxes that matter, as numbers; None where the reference's are no boxes and scores.

        Beside it the keypoints of these boxes, and where they stand in no cells the sums of squares of the difference
        and of the reference of other values, and the first slot without a box.
        """
        bases, tests = (side.astype(np.float32) for side in (reference, test))
        reading = _reading(output, bases)
        if reading is None:
            return None
        rows = [reading.head.rows(side) for side in (tests, bases)]
        found = [_boxes(reading, side) for side in rows]
        sides = [boxes for boxes, _ in found]
        cuts = (0.0, 0.0) if reading.in_cells else (_cut(rows[1]), _cut(rows[0]))
        agreement = compare_boxes(sides[0], sides[1], MATTERS, cuts)
        compared: dict[str, npt.NDArray[Any]] = {"agreement": np.array(astuple(agreement))}
        if not reading.in_cells:
            compared[EMPTY_FROM] = np.array(_first_empty(rows))
        if reading.head.extra:
            places = _places_in_cells(reading, rows) if reading.in_cells else _places_of_pairs(found)
            extras = [
                side[place, reading.head.values - reading.head.extra :]
                for side, place in zip(rows, places, strict=True)
            ]
            compared |= _extras(reading, extras)
        return compared

    def answers(self, run: Values) -> RunAnswers:
        """Boxes without a partner, keypoints elsewhere, and how far the others move."""
        found = run_of_boxes(_agreement(run))
        changed, total, size = found.changed, found.answers, found.size
        if "moved" in run:
            points = _KEYPOINTS.answers(run)
            changed, total, size = changed + points.changed, total + points.of, max(size, points.size or 0.0)
        if "squares" in run:
            difference, reference = run["squares"].tolist()
            size = max(size, (difference / reference) ** 0.5 if reference else float(difference > 0))
        return RunAnswers(changed, total, size if total else None, by_channel=EMPTY_FROM not in run)

    def summarise(self, runs: Sequence[Values]) -> KindFigures:
        """Boxes of all runs."""
        total = sum(map(_agreement, runs), start=BoxAgreement.nothing())
        return KindFigures(
            kind=self.name,
            figures={
                "matched": total.matched,
                "lost": total.lost,
                "new": total.new,
                "other_class": total.class_changes,
                "mean_iou": total.mean_iou,
            },
            parts={},
        )

    def in_words(self, found: KindFigures) -> str:
        """Pairs, then boxes without one.

        >>> figures = {"matched": 9, "lost": 1, "new": 0, "other_class": 2, "mean_iou": 0.98}
        >>> YoloHead().in_words(KindFigures("yolo", figures, {}))
        '9 boxes matched (mean IoU 0.980), 1 lost, 0 new, 2 of another class'
        """
        figures = found.figures
        iou = "" if figures["mean_iou"] is None else f" (mean IoU {figures['mean_iou']:.3f})"
        unpaired = f"{figures['lost']} lost, {figures['new']} new, {figures['other_class']} of another class"
        return f"{figures['matched']} boxes matched{iou}, {unpaired}"


def _shaped(output: Output) -> list[tuple[Decoder, Head]]:
    """The decoders that a shape fits, with the coefficients of the maps of masks that stand beside it."""
    picture = output.picture
    if picture is None:
        return []
    masks = next(iter(mask_maps(output.beside, *picture[:2]).values()), 0)
    fitting = [(decoder, decoder.fits(output.shape, *picture[:2], masks)) for decoder in DECODERS.values()]
    return [(decoder, head) for decoder, head in fitting if head is not None]


def _reading(output: Output, reference: Floats) -> _Reading | None:
    """The first decoder that the reference's values do not contradict; None without any.

    Rows that a model has left of its boxes come first: those of cells hardly have corners in order and whole numbers.
    """
    shaped = sorted(_shaped(output), key=lambda found: bool(found[1].strides))
    for decoder, head in shaped:
        rows = np.nan_to_num(head.rows(reference))
        is_angle = decoder is YOLOV8 and is_turned(rows, head)
        read = replace(head, classes=head.classes - 1, extra=1) if is_angle else head
        coordinates = decoder.coordinates(rows, read)
        found = _Reading(decoder, read, coordinates)
        if coordinates != "contradicted" and (
            _has_scores(found, rows) if found.in_cells else _are_left(rows, output, len(shaped) == 1)
        ):
            return found
    return None


def _has_scores(reading: _Reading, rows: Floats) -> bool:
    """Whether what would be scores of classes are such."""
    first = reading.head.before_classes
    return _are_scores(rows[:, first : first + reading.head.classes])


def _are_left(rows: Floats, output: Output, are_empty: bool) -> bool:
    """Whether rows are boxes that the model has left: corners in order, a score, a class; if none is, ``are_empty``."""
    filled = rows[rows[:, _SCORE] > 0]
    if not len(filled):
        return are_empty
    classes = filled[:, _SCORE + 1]
    is_whole = not output.dtype.startswith("float") or bool((classes == np.rint(classes)).all())
    in_order = bool((filled[:, 2:4] >= filled[:, :2]).all())
    return in_order and is_whole and bool((classes >= 0).all()) and _are_scores(filled[:, _SCORE])


def _are_scores(values: Floats) -> bool:
    return bool(values.min(initial=0.0) >= -_NO_SCORE and values.max(initial=0.0) <= 1 + _NO_SCORE)


def _first_empty(sides: Sequence[Floats]) -> int:
    """The slot behind the last that has a score on a side."""
    return max((int(np.flatnonzero(rows[:, _SCORE] > 0).max(initial=-1)) + 1 for rows in sides), default=0)


def _cut(rows: Floats) -> float:
    """The score that a box must be above to have a place where all slots are filled; 0 where some are free."""
    lowest = float(np.nan_to_num(rows[:, _SCORE]).min())
    return lowest + _SAME_SCORE if lowest > 0 else 0.0


def _boxes(reading: _Reading, rows: Floats) -> tuple[Detections, npt.NDArray[np.intp]]:
    """The boxes, and of a model that suppresses boxes itself the rows that they are."""
    decoder, known = reading.decoder, np.nan_to_num(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        found = decoder.decode(known, reading.head, reading.coordinates, _PARTNERS)
    sound = np.isfinite(found.scores) & np.isfinite(found.corners).all(axis=1)
    kept, places = found.at(sound), np.empty(0, np.intp)
    if decoder.nms_iou is not None:
        kept = suppressed(kept, decoder.nms_iou)
    else:
        places = np.flatnonzero(known[:, _SCORE] >= _PARTNERS)[sound]
    return Detections(*(side.astype(np.float64) for side in (kept.corners, kept.classes, kept.scores))), places


def _places_in_cells(reading: _Reading, sides: Sequence[Floats]) -> list[npt.NDArray[np.intp]]:
    """The cells whose best score matters on a side, for both sides."""
    first = reading.head.before_classes
    best = np.max([np.nan_to_num(rows[:, first : first + reading.head.classes]).max(axis=1) for rows in sides], axis=0)
    return [np.flatnonzero(best >= MATTERS)] * 2


def _places_of_pairs(found: Sequence[tuple[Detections, npt.NDArray[np.intp]]]) -> list[npt.NDArray[np.intp]]:
    """The rows of boxes that are partners and of which a side matters, test and reference."""
    (test, tests), (reference, references) = found
    pairs = [
        pair
        for pair in match_boxes(test, reference)
        if max(test.scores[pair.test], reference.scores[pair.reference]) >= MATTERS
    ]
    return [tests[[pair.test for pair in pairs]], references[[pair.reference for pair in pairs]]]


def _extras(reading: _Reading, sides: Sequence[Floats]) -> dict[str, npt.NDArray[Any]]:
    """Keypoints as these are compared; of other values the squares, where no channel shows them."""
    if not reading.posing:
        if reading.in_cells:
            return {}
        with np.errstate(all="ignore"):
            squares = [float(np.square(values).sum()) for values in (sides[0] - sides[1], sides[1])]
        return {"squares": np.array(squares)}
    points = [
        values.reshape(len(values), values.shape[1] // _OF_KEYPOINT, _OF_KEYPOINT).astype(float) for values in sides
    ]
    return moves(points[0], points[1], input_size(reading.head, reading.coordinates)[:2])


def _agreement(run: Values) -> BoxAgreement:
    numbers = run["agreement"].tolist()
    return BoxAgreement(*map(int, numbers[:4]), *numbers[4:])
