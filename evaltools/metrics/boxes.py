"""Compares the boxes of two detectors; needs no ground truth."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

MIN_IOU: Final = 0.5
_BLOCK: Final = 1 << 18


class Detection(Struct, frozen=True):
    """One detection; ``box`` is top, left, bottom, right in shares of the picture's height and width."""

    category_id: int
    score: float
    box: tuple[float, float, float, float]

    def pixel_box(self, width: int, height: int) -> tuple[float, float, float, float]:
        """x, y, width, height in pixels of a picture of that size, in float64, as COCO has them.

        >>> Detection(1, 0.5, (0.5, 0.25, 1.0, 0.75)).pixel_box(200, 100)
        (50.0, 50.0, 100.0, 50.0)
        """
        top, left, bottom, right = self.box
        return left * width, top * height, (right - left) * width, (bottom - top) * height


class Detections(Struct, frozen=True):
    """Boxes ``(N, 4)`` as top, left, bottom, right in any unit, with N classes and N scores."""

    boxes: npt.NDArray[np.float64]
    classes: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]


class BoxAgreement(Struct, frozen=True):
    """How far the boxes of two detectors agree. Boxes are matched one to one where their IoU is 0.5 or more.

    ``lost`` are boxes of the reference without a partner, ``new`` those of the test. ``moved`` is the largest ``1 -
    IoU`` of a pair, ``score_shift`` the largest change of a score, ``sum_score_shift`` the sum of all absolute changes.
    Objects of several examples can be added.
    """

    matched: int
    lost: int
    new: int
    class_changes: int
    sum_iou: float
    moved: float
    score_shift: float
    sum_score_shift: float = 0.0

    @staticmethod
    def nothing() -> BoxAgreement:
        """The agreement over no examples, to which others are added."""
        return BoxAgreement(0, 0, 0, 0, 0.0, 0.0, 0.0)

    def __add__(self, other: BoxAgreement) -> BoxAgreement:
        return BoxAgreement(
            self.matched + other.matched,
            self.lost + other.lost,
            self.new + other.new,
            self.class_changes + other.class_changes,
            self.sum_iou + other.sum_iou,
            max(self.moved, other.moved),
            max(self.score_shift, other.score_shift),
            self.sum_score_shift + other.sum_score_shift,
        )

    @property
    def mean_iou(self) -> float | None:
        """The mean IoU of the pairs, 0.5..1; None without a pair."""
        return self.sum_iou / self.matched if self.matched else None

    @property
    def mean_score_shift(self) -> float | None:
        """The mean absolute change of a score over the pairs; None without a pair."""
        return self.sum_score_shift / self.matched if self.matched else None

    @property
    def share(self) -> float:
        """Share of all boxes of both sides that have a partner of the same class, 0..1; 1 without any box."""
        everything = 2 * self.matched + self.lost + self.new
        return 2 * (self.matched - self.class_changes) / everything if everything else 1.0


def detections(boxes: Any, classes: Any, scores: Any, count: Any) -> Detections:
    """The detections in the outputs of ``TFLite_Detection_PostProcess``.

    Entries from number ``count`` on, and those with a score of 0, are left out. Boxes or scores with NaN are kept: they
    match nothing.
    """
    flat = np.asarray(scores, np.float64).reshape(-1)
    kept = np.flatnonzero(flat[: stated_count(count, len(flat))] != 0)
    return Detections(
        np.asarray(boxes, np.float64).reshape(-1, 4)[kept],
        np.asarray(classes, np.float64).reshape(-1)[kept],
        flat[kept],
    )


def stated_count(count: Any, slots: int) -> int:
    """How many of so many slots a detector says to have filled: all where it says no number.

    >>> [stated_count(np.array([count], np.float32), 10) for count in (3, 12, -1, np.nan)]
    [3, 10, 0, 10]
    """
    stated = float(np.asarray(count, np.float64).sum())
    return int(min(max(stated, 0), slots)) if np.isfinite(stated) else slots


def compare_boxes(
    test: Detections, reference: Detections, least_score: float = 0.0, cuts: tuple[float, float] = (0.0, 0.0)
) -> BoxAgreement:
    """Pair boxes greedily, the best overlap first, partners of the same class before others.

    What is counted are the pairs and boxes of which a side scores at least ``least_score``; boxes without a number as
    score are. ``cuts``: a box of the test, and of the reference, that has no partner counts only above such a score,
    since the other side has no slot left for it.

    >>> one = Detections(np.array([[0, 0, 1.0, 1.0]]), np.array([3.0]), np.array([0.5]))
    >>> compare_boxes(one, one).matched
    1
    """
    every = match_boxes(test, reference)
    counts, counted = (~(side.scores < least_score) for side in (test, reference))
    pairs = [pair for pair in every if counts[pair.test] or counted[pair.reference]]
    ious = [pair.iou for pair in pairs]
    shifts = [float(abs(test.scores[pair.test] - reference.scores[pair.reference])) for pair in pairs]
    counts[[pair.test for pair in every]] = False
    counted[[pair.reference for pair in every]] = False
    counts &= ~(test.scores <= cuts[0])
    counted &= ~(reference.scores <= cuts[1])
    same = sum(pair.same_class for pair in pairs)
    return BoxAgreement(
        matched=len(pairs),
        lost=int(np.count_nonzero(counted)),
        new=int(np.count_nonzero(counts)),
        class_changes=len(pairs) - same,
        sum_iou=sum(ious),
        moved=max((1 - iou for iou in ious), default=0.0),
        score_shift=max(shifts, default=0.0),
        sum_score_shift=sum(shifts),
    )


class BoxPair(Struct, frozen=True):
    """Two boxes that are partners, by their positions in both lists."""

    test: int
    reference: int
    iou: float
    same_class: bool


def match_boxes(test: Detections, reference: Detections) -> list[BoxPair]:
    """The pairs that :func:`compare_boxes` counts."""
    candidates = _candidates(test, reference)
    order = np.lexsort((candidates.reference, candidates.test, -candidates.iou, ~candidates.same_class))
    taken_tests, taken_references = set[int](), set[int]()
    pairs = []
    for place in order.tolist():
        first, second = int(candidates.test[place]), int(candidates.reference[place])
        if first not in taken_tests and second not in taken_references:
            taken_tests.add(first)
            taken_references.add(second)
            pairs.append(BoxPair(first, second, float(candidates.iou[place]), bool(candidates.same_class[place])))
    return pairs


class _Candidates(Struct, frozen=True):
    """Boxes that overlap enough, as parallel arrays."""

    test: npt.NDArray[np.intp]
    reference: npt.NDArray[np.intp]
    iou: npt.NDArray[np.float64]
    same_class: npt.NDArray[np.bool_]


def _candidates(test: Detections, reference: Detections) -> _Candidates:
    """All pairs of boxes that overlap enough, computed in blocks of rows to keep memory small."""
    rows = max(_BLOCK // max(len(reference.boxes), 1), 1)
    scored = np.isfinite(reference.scores)
    tests, references, ious = [np.empty(0, np.intp)], [np.empty(0, np.intp)], [np.empty(0, np.float64)]
    for start in range(0, len(test.boxes), rows):
        overlaps = intersection_over_union(test.boxes[start : start + rows], reference.boxes)
        enough = (overlaps >= MIN_IOU) & np.isfinite(test.scores[start : start + rows])[:, None] & scored
        row, column = np.nonzero(enough)
        tests.append(row + start)
        references.append(column)
        ious.append(overlaps[row, column])
    first, second = np.concatenate(tests), np.concatenate(references)
    return _Candidates(first, second, np.concatenate(ious), test.classes[first] == reference.classes[second])


def intersection_over_union(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """IoU of each of ``(N, 4)`` boxes with each of ``(M, 4)``, as ``(N, M)``; equal boxes give 1, empty ones too.

    >>> intersection_over_union(np.array([[0, 0, 2.0, 2.0]]), np.array([[0, 0, 1.0, 2.0]])).tolist()
    [[0.5]]
    """
    top, left, bottom, right = (first[:, None, side] for side in range(4))
    other_top, other_left, other_bottom, other_right = (second[None, :, side] for side in range(4))
    equal = (top == other_top) & (left == other_left) & (bottom == other_bottom) & (right == other_right)
    with np.errstate(all="ignore"):
        height = np.maximum(np.minimum(bottom, other_bottom) - np.maximum(top, other_top), 0)
        width = np.maximum(np.minimum(right, other_right) - np.maximum(left, other_left), 0)
        common = height * width
        union = _area(first)[:, None] + _area(second)[None, :] - common
        overlap = np.where(union > 0, common / union, 0.0)
    return np.where(equal, 1.0, np.nan_to_num(overlap))


def _area(boxes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    area: npt.NDArray[np.float64] = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
    return area
