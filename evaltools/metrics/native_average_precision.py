"""Average precision as the native detection tool computes it, which is not what COCO computes.

Source: ``object_detection_average_precision_stage`` and ``image_metrics`` of the native tools. All arithmetic is
float32, the 101 recall levels too. ``docs/compare.md`` lists how else it differs from pycocotools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

RECALL_POINTS: Final = 100
IOU_THRESHOLDS: Final = tuple(np.float32(0.5) + np.float32(0.05) * np.float32(step) for step in range(10))

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
_SHORT: Final = 16
Item = tuple[float, int]
"""A score and the place that it had."""


class Objects(Struct, frozen=True):
    """Objects of one picture.

    ``class_ids`` ``(N,)``, ``boxes`` ``(N, 4)`` as top, left, bottom, right in shares of the picture, ``scores``
    ``(N,)``; those of a ground truth do not matter.
    """

    class_ids: Ints
    boxes: Floats
    scores: Floats


class NativeAveragePrecision(Struct, frozen=True):
    """AP at each of the IoU thresholds 0.5, 0.55 .. 0.95, and the mean over all thresholds and classes, 0..1.

    ``thresholds`` is empty where there is neither ground truth nor a detection. ``class_count`` classes are averaged;
    the ``classes_without_truth`` among them count as 0.
    """

    thresholds: tuple[float, ...]
    overall: float
    class_count: int
    classes_without_truth: int


def native_average_precision(truths: Sequence[Objects], detections: Sequence[Objects]) -> NativeAveragePrecision:
    """AP over pictures, ``truths[i]`` and ``detections[i]`` being those of picture i.

    Equal scores stand in the order that the native tool's sort leaves them in (:func:`order_by_score`).

    >>> box = np.array([[0, 0, 1, 1]], np.float32)
    >>> right = Objects(np.array([3]), box, np.array([0.9], np.float32))
    >>> native_average_precision([right], [right]).overall
    1.0
    """
    truth_count = _count_by_class(truths)
    detection_count = _count_by_class(detections)
    classes = sorted(set(truth_count) | set(detection_count))
    values = np.zeros((len(IOU_THRESHOLDS), len(classes)), np.float32)
    by_class = _pictures_by_class(truths, detections)
    for column, class_id in enumerate(classes):
        if class_id in truth_count and class_id in detection_count:
            values[:, column] = _class_precision(
                [(truths[index], detections[index]) for index in by_class[class_id]], class_id, truth_count[class_id]
            )
    per_threshold = [_mean(row) for row in values] if classes else []
    return NativeAveragePrecision(
        thresholds=tuple(float(value) for value in per_threshold),
        overall=float(_mean(values.ravel())) if classes else 0.0,
        class_count=len(classes),
        classes_without_truth=len(set(classes) - set(truth_count)),
    )


def _mean(values: Floats) -> np.float32:
    """The mean in float32, summed one after the other as a loop does; NumPy's ``sum`` adds in pairs."""
    return np.float32(np.cumsum(values, dtype=np.float32)[-1] / np.float32(len(values)))


def _count_by_class(pictures: Sequence[Objects]) -> Mapping[int, int]:
    every = np.concatenate([picture.class_ids for picture in pictures]) if pictures else np.empty(0, np.int64)
    classes, counts = np.unique(every, return_counts=True)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def _pictures_by_class(truths: Sequence[Objects], detections: Sequence[Objects]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for index, (truth, detected) in enumerate(zip(truths, detections, strict=True)):
        for class_id in sorted({*truth.class_ids.tolist(), *detected.class_ids.tolist()}):
            found.setdefault(class_id, []).append(index)
    return found


def _class_precision(pictures: Sequence[tuple[Objects, Objects]], class_id: int, truth_count: int) -> Floats:
    """AP of one class at each threshold."""
    of_class = [np.flatnonzero(detected.class_ids == class_id) for _, detected in pictures]
    scores = np.concatenate([detected.scores[index] for (_, detected), index in zip(pictures, of_class, strict=True)])
    best_first = np.array(order_by_score(scores.tolist()))
    rank = np.empty(len(scores), np.int64)
    rank[best_first] = np.arange(len(scores))
    right = np.zeros((len(IOU_THRESHOLDS), len(scores)), bool)
    start = 0
    for (truth, detected), index in zip(pictures, of_class, strict=True):
        own_ranks = rank[start : start + len(index)]
        in_turn = np.argsort(own_ranks)
        boxes = detected.boxes[index[in_turn]]
        right[:, own_ranks[in_turn]] = match(boxes, truth.boxes[truth.class_ids == class_id])
        start += len(index)
    return np.array([_area_under_curve(row, truth_count) for row in right], np.float32)


def match(detected: Floats, truth: Floats) -> Flags:
    """Which detections ``(N, 4)`` of one class and picture, best score first, are right at each threshold: ``(10, N)``.

    A detection takes the free object that it overlaps most, the first of several, if the overlap reaches the threshold.
    """
    right = np.zeros((len(IOU_THRESHOLDS), len(detected)), bool)
    if not len(truth) or not len(detected):
        return right
    overlaps = overlap(detected, truth)
    limits = np.array(IOU_THRESHOLDS, np.float32)
    free = np.ones((len(limits), len(truth)), bool)
    for number in np.flatnonzero(overlaps.max(axis=1) >= limits[0]):
        open_overlaps = np.where(free, overlaps[number], np.float32(-1))
        best = open_overlaps.argmax(axis=1)
        right[:, number] = open_overlaps[np.arange(len(limits)), best] >= limits
        taken = np.flatnonzero(right[:, number])
        free[taken, best[taken]] = False
    return right


def overlap(first: Floats, second: Floats) -> Floats:
    """IoU of each of ``(N, 4)`` boxes with each of ``(M, 4)`` in float32, ``(N, M)``; 0 where the union is empty.

    >>> overlap(np.array([[0, 0, 1, 1]], np.float32), np.array([[0, 0, 1, 0.5]], np.float32)).tolist()
    [[0.5]]
    """
    top, left, bottom, right = (first[:, None, side] for side in range(4))
    other_top, other_left, other_bottom, other_right = (second[None, :, side] for side in range(4))
    with np.errstate(all="ignore"):
        width = np.maximum(np.minimum(right, other_right) - np.maximum(left, other_left), np.float32(0))
        height = np.maximum(np.minimum(bottom, other_bottom) - np.maximum(top, other_top), np.float32(0))
        common = width * height
        union = (bottom - top) * (right - left) + (other_bottom - other_top) * (other_right - other_left) - common
        shares: Floats = np.where(union > 0, common / union, np.float32(0))
    return shares


def _area_under_curve(right: Flags, truth_count: int) -> np.float32:
    """Mean over the recall levels 0, 0.01 .. 1 of the best precision from there on.

    A level counts as reached where ``recall * 100 >= level`` holds in float32.
    """
    positives = np.cumsum(right)
    precision = positives.astype(np.float32) / np.arange(1, len(right) + 1).astype(np.float32)
    recall = positives.astype(np.float32) / np.float32(truth_count)
    reached = np.floor(recall * np.float32(RECALL_POINTS)).astype(np.int64)
    best_from_here = np.maximum.accumulate(precision[::-1])[::-1]
    levels = np.arange(RECALL_POINTS + 1)
    first_reaching = np.searchsorted(reached, levels, side="left")
    padded = np.append(best_from_here, np.float32(0))
    total = np.cumsum(padded[first_reaching][::-1], dtype=np.float32)[-1]
    return np.float32(total / np.float32(RECALL_POINTS + 1))


def order_by_score(scores: Sequence[float]) -> list[int]:
    """Indices of ``scores`` (no NaN) from the highest to the lowest, equal ones as ``std::sort`` of GNU C++ does.

    The sort is not stable, and quantised detectors give many equal scores, so the order decides digits of a native
    average precision. It is introsort: quicksort by the median of three down to runs of 16, heapsort where that goes
    too deep, one insertion sort at the end. Other C++ libraries order equal elements in other ways.

    >>> order_by_score([0.5, 0.9, 0.5])
    [1, 0, 2]
    """
    items = [(score, index) for index, score in enumerate(scores)]
    if len(items) > _SHORT:
        depth = 2 * (len(items).bit_length() - 1)
        _quicksort(items, 0, len(items), depth)
    _insertion_sort(items)
    return [index for _, index in items]


def _quicksort(items: list[Item], first: int, last: int, depth: int) -> None:
    while last - first > _SHORT:
        if depth == 0:
            items[first:last] = _heapsort(items[first:last])
            return
        depth -= 1
        _median_to_first(items, first, first + 1, first + (last - first) // 2, last - 1)
        cut = _partition(items, first + 1, last, items[first][0])
        _quicksort(items, cut, last, depth)
        last = cut


def _median_to_first(items: list[Item], first: int, one: int, two: int, three: int) -> None:
    low, middle, high = items[one][0], items[two][0], items[three][0]
    if low > middle:
        chosen = two if middle > high else three if low > high else one
    else:
        chosen = one if low > high else three if middle > high else two
    items[first], items[chosen] = items[chosen], items[first]


def _partition(items: list[Item], first: int, last: int, pivot: float) -> int:
    while True:
        while items[first][0] > pivot:
            first += 1
        last -= 1
        while pivot > items[last][0]:
            last -= 1
        if first >= last:
            return first
        items[first], items[last] = items[last], items[first]
        first += 1


def _insertion_sort(items: list[Item]) -> None:
    for place in range(1, len(items)):
        item = items[place]
        hole = place
        while hole and item[0] > items[hole - 1][0]:
            items[hole] = items[hole - 1]
            hole -= 1
        items[hole] = item


def _heapsort(items: list[Item]) -> list[Item]:
    length = len(items)
    for parent in range((length - 2) // 2, -1, -1):
        _sift(items, parent, length, items[parent])
    for end in range(length - 1, 0, -1):
        item = items[end]
        items[end] = items[0]
        _sift(items, 0, end, item)
    return items


def _sift(items: list[Item], top: int, length: int, item: Item) -> None:
    """Move the hole at ``top`` down to a leaf, then ``item`` up from there to its place."""
    hole = child = top
    while child < (length - 1) // 2:
        child = 2 * (child + 1)
        if items[child][0] > items[child - 1][0]:
            child -= 1
        items[hole] = items[child]
        hole = child
    if length % 2 == 0 and child == (length - 2) // 2:
        child = 2 * (child + 1)
        items[hole] = items[child - 1]
        hole = child - 1
    parent = (hole - 1) // 2
    while hole > top and items[parent][0] > item[0]:
        items[hole] = items[parent]
        hole = parent
        parent = (hole - 1) // 2
    items[hole] = item
