"""The head of YOLOv8, which YOLOv9, YOLO11 and the ``u`` models of YOLOv5 share.

One output ``[1, 4 + classes, N]``, with one box per cell of the strides 8, 16, 32: 8400 at 640x640; some converters
turn it into ``[1, N, 4 + classes]``. A box is centre x, centre y, width, height, and class scores after the sigmoid;
there is no objectness. Exports to TensorFlow Lite give shares of the input, others pixels (``Detect`` in
``ultralytics/nn/modules/head.py``, which divides for the formats tflite and edgetpu). Every class of a box that reaches
the threshold counts (``yolo val``: confidence 0.001, IoU 0.7).
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

    >>> fits((1, 84, 8400), 640, 640).layout, fits((1, 2100, 6), 320, 320).layout
    ('columns', 'rows')
    """
    return head_of_cells(shape, height, width, anchors=1, before_classes=4, layouts=["columns", "rows"])


def decode(rows: Floats, head: Head, coordinates: Coordinates, threshold: float) -> Boxes:
    """The boxes of rows ``(N, 4 + classes)``.

    >>> row = np.array([[160, 320, 64, 128, 0.5, 0.25]], np.float32)
    >>> found = decode(row, Head("columns", 1, 6, 2, 512, 512), "pixels", 0.5)
    >>> found.corners.tolist(), found.scores.tolist(), found.classes.tolist()
    ([[0.5, 0.25, 0.75, 0.375]], [0.5], [0])
    """
    likely = rows[rows[:, 4:].max(axis=1) >= threshold]
    scores = np.ascontiguousarray(likely[:, 4:])
    chosen, classes = every_class(scores, threshold)
    centres = likely[chosen, :4] / input_size(head, coordinates)
    return Boxes(corners_of(centres), scores[chosen, classes], classes.astype(np.int64))


DECODER: Final = Decoder(
    name="yolov8",
    output="[1,4+classes,N] or [1,N,4+classes] with 1 box per cell",
    fits=fits,
    coordinates=shares_or_pixels,
    decode=decode,
    nms_iou=0.7,
    score_threshold=0.001,
)
