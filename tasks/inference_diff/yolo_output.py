"""The raw head of a YOLO as a kind of output: what it means are its boxes, after non-maximum suppression."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec.structs import astuple

from evaltools.gates.verdict import MATTERS, run_of_boxes
from evaltools.metrics.boxes import BoxAgreement, Detections, compare_boxes
from evaltools.metrics.output_difference import KindFigures, RunAnswers
from evaltools.tasks.coco.decoders import Boxes, Coordinates, Decoder, Head, suppressed
from evaltools.tasks.coco.yolo_heads import DECODERS
from evaltools.tasks.inference_diff.output_kind import Output, Values

_PARTNERS: Final = 0.15
"""A partner may score less."""
_OTHER_HEADS: Final = (4 + 1 + 17 * 3, 4 + 80 + 32)
"""Values of each box in heads of poses and of masks, which have the shapes of detectors with more classes."""
_NO_SCORE: Final = 0.01
"""So far outside of 0..1 a value is no score: a point in pixels, a coefficient of a mask, an angle."""


class YoloHead:
    """Boxes in the cells of feature maps, before any suppression."""

    name = "yolo"
    needs = "the raw head of a YOLO, such as [1, cells, 5 + classes] or [1, 4 + classes, cells], for the picture's size"

    def is_kind(self, output: Output) -> bool:
        """Heads whose number of cells is that of the picture."""
        return self.fits(output)

    def fits(self, output: Output) -> bool:
        """Whether a decoder of ``coco`` takes such a shape."""
        return output.is_real and bool(_readings(output))

    def compare(
        self, test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic], output: Output
    ) -> Values | None:
        """The agreement of the boxes that matter, as numbers; None where the reference has more than boxes and scores.

        Such are heads of poses, masks and boxes that are turned.
        """
        decoder, head, coordinates = _reading(output, reference)
        scores = head.rows(reference.astype(np.float32))[:, head.before_classes :]
        if scores.min() < -_NO_SCORE or scores.max() > 1 + _NO_SCORE:
            return None
        sides = [_boxes(decoder, head, coordinates, side) for side in (test, reference)]
        return {"agreement": np.array(astuple(compare_boxes(sides[0], sides[1], MATTERS)))}

    def answers(self, run: Values) -> RunAnswers:
        """Boxes without a partner, and how far the others move."""
        found = run_of_boxes(_agreement(run))
        return RunAnswers(found.changed, found.answers, found.size if found.answers else None, by_channel=True)

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


def _readings(output: Output) -> list[tuple[Decoder, Head]]:
    """The decoders that a shape fits, which is not that of a head for something else."""
    return [(decoder, head) for decoder, head in _shaped(output) if head.values not in _OTHER_HEADS]


def _shaped(output: Output) -> list[tuple[Decoder, Head]]:
    picture = output.picture
    if picture is None:
        return []
    fitting = [(decoder, decoder.fits(output.shape, *picture[:2], 0)) for decoder in DECODERS.values()]
    return [(decoder, head) for decoder, head in fitting if head is not None and head.strides]


def _reading(output: Output, reference: npt.NDArray[np.generic]) -> tuple[Decoder, Head, Coordinates]:
    """The first decoder that the reference's values do not contradict, else the first."""
    read = [
        (decoder, head, decoder.coordinates(head.rows(reference.astype(np.float32)), head))
        for decoder, head in _readings(output)
    ]
    return next((entry for entry in read if entry[2] != "contradicted"), read[0])


def _boxes(decoder: Decoder, head: Head, coordinates: Coordinates, values: npt.NDArray[np.generic]) -> Detections:
    rows = np.nan_to_num(head.rows(values.astype(np.float32)))
    with np.errstate(over="ignore", invalid="ignore"):
        found = decoder.decode(rows, head, coordinates, _PARTNERS)
    sound = np.isfinite(found.scores) & np.isfinite(found.corners).all(axis=1)
    kept = Boxes(found.corners[sound], found.scores[sound], found.classes[sound])
    if decoder.nms_iou is not None:
        kept = suppressed(kept, decoder.nms_iou)
    return Detections(*(side.astype(np.float64) for side in (kept.corners, kept.classes, kept.scores)))


def _agreement(run: Values) -> BoxAgreement:
    numbers = run["agreement"].tolist()
    return BoxAgreement(*map(int, numbers[:4]), *numbers[4:])
