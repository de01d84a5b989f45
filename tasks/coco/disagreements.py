"""The pictures on which a configuration differs most from the reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.metrics.boxes import Detection, Detections, compare_boxes, match_boxes
from evaltools.tasks.coco.result import CocoDetection, DetectedPicture

DRAWN_SCORE: Final = 0.3
_VISIBLE_SHIFT: Final = 0.01


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


def worst_disagreements(coco: CocoDetection, most: int) -> list[Disagreement]:
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
            differing = [entry for entry in rated if entry.unequal or entry.shift >= _VISIBLE_SHIFT]
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
