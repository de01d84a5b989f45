"""Non-maximum suppression: of boxes of one class that overlap, the best alone stays."""

from __future__ import annotations

from typing import Final

import numpy as np

from evaltools.metrics.native_average_precision import overlap
from evaltools.tasks.coco.decoders.kind import Boxes, Ints

MOST_KEPT: Final = 300
"""Detections per picture, as in the validations of YOLOv5 (``max_det``) and YOLOv8; COCO counts the best 100."""
MOST_CANDIDATES: Final = 30_000
"""The best that are looked at, as in YOLOv5 (``max_nms``)."""
_BLOCK: Final = 128


def suppressed(boxes: Boxes, iou: float, most: int = MOST_KEPT) -> Boxes:
    """The boxes that stay, best first: greedily each one that no better one of its class overlaps by more than ``iou``.

    Boxes of equal scores keep their order. The overlap is strictly larger, as in torchvision's ``nms``.

    >>> corners = np.array([[0, 0, 1, 1], [0, 0, 1, 0.9], [0, 0, 1, 0.8]], np.float32)
    >>> three = Boxes(corners, np.array([0.5, 0.75, 0.25], np.float32), np.array([0, 0, 1]))
    >>> suppressed(three, 0.5).scores.tolist()
    [0.75, 0.25]
    """
    order: Ints = np.argsort(-boxes.scores, kind="stable")[:MOST_CANDIDATES]
    kept = np.empty(0, np.int64)
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        block = block[~_clash(boxes, block, kept, iou).any(axis=1)]
        kept = np.concatenate([kept, block[_greedy(_clash(boxes, block, block, iou))]])
        if len(kept) >= most:
            break
    kept = kept[:most]
    return Boxes(boxes.corners[kept], boxes.scores[kept], boxes.classes[kept])


def _clash(boxes: Boxes, first: Ints, second: Ints, iou: float) -> np.typing.NDArray[np.bool_]:
    """Whether each of the first boxes would suppress each of the second, if it were the better one: ``(N, M)``."""
    same = boxes.classes[first][:, None] == boxes.classes[second][None, :]
    flags: np.typing.NDArray[np.bool_] = same & (overlap(boxes.corners[first], boxes.corners[second]) > iou)
    return flags


def _greedy(clashes: np.typing.NDArray[np.bool_]) -> np.typing.NDArray[np.bool_]:
    """Whether each box stays; the boxes stand best first, and ``clashes`` ``(N, N)`` says which suppress which."""
    stays = np.ones(len(clashes), np.bool_)
    for number in np.flatnonzero(clashes.sum(axis=1) > 1):
        if stays[number]:
            stays[number + 1 :] &= ~clashes[number, number + 1 :]
    return stays
