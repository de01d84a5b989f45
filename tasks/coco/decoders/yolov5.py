"""The head of YOLOv5, which YOLOv3 and YOLOv7 share.

One output ``[1, N, 5 + classes]``, with three boxes per cell of the strides 8, 16, 32: 25200 at 640x640. Each row is
centre x, centre y, width, height, objectness, class scores. Sigmoid, grid and anchors are applied in the graph
(``TFDetect`` in ``models/tf.py`` of ultralytics/yolov5, which then divides the first four by the input's size; other
exports leave pixels). A score is objectness times class score, and every class of a box that reaches the threshold
counts (``non_max_suppression`` in ``utils/general.py`` with ``multi_label``; ``val.py``: confidence 0.001, IoU 0.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.tasks.coco.decoders.kind import (
    Boxes,
    Coordinates,
    Decoder,
    Floats,
    Head,
    corners_of,
    every_class,
    head_of_cells,
    input_size,
    shares_or_pixels,
)


def fits(shape: Sequence[int], height: int, width: int) -> Head | None:
    """Whether an output may be such a head.

    >>> fits((1, 6300, 6), 320, 320).classes
    1
    """
    return head_of_cells(shape, height, width, anchors=3, before_classes=5, layouts=["rows"])


def decode(rows: Floats, head: Head, coordinates: Coordinates, threshold: float) -> Boxes:
    """The boxes of rows ``(N, 5 + classes)``; as no class score is above 1, objectness is looked at first.

    >>> row = np.array([[0.5, 0.5, 0.25, 0.5, 0.5, 0.5, 0.0]], np.float32)
    >>> found = decode(row, None, "shares", 0.2)
    >>> found.corners.tolist(), found.scores.tolist(), found.classes.tolist()
    ([[0.25, 0.375, 0.75, 0.625]], [0.25], [0])
    """
    likely = rows[rows[:, 4] >= threshold]
    scores = likely[:, 5:] * likely[:, 4:5]
    chosen, classes = every_class(scores, threshold)
    centres = likely[chosen, :4] / input_size(head, coordinates)
    return Boxes(corners_of(centres), scores[chosen, classes], classes.astype(np.int64))


DECODER: Final = Decoder(
    name="yolov5",
    output="[1,N,5+classes] with 3 boxes per cell",
    fits=fits,
    coordinates=shares_or_pixels,
    decode=decode,
    nms_iou=0.6,
    score_threshold=0.001,
)
