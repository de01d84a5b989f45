"""A YOLO that suppresses overlapping boxes itself.

One output ``[1, N, 6]``, N being 300 as a rule: left, top, right, bottom, score, class, in shares or in pixels of the
input, with scores of 0 where less was found (``export(nms=True)`` of ultralytics, and YOLOv10, which needs no
suppression).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.tasks.coco.decoders.kind import Boxes, Coordinates, Decoder, Floats, Head, input_size

_MOST_ROWS: Final = 1000
_LARGEST_SHARE: Final = 2.0
_VALUES: Final = 6
_LARGEST_CLASS: Final = 2**24
"""Up to here float32 holds every whole number."""


def fits(shape: Sequence[int], height: int, width: int) -> Head | None:
    """Whether an output may be such a head.

    >>> fits((1, 300, 6), 640, 640).count, fits((1, 300, 7), 640, 640)
    (300, None)
    """
    if len(shape) != 3 or shape[0] != 1 or shape[2] != _VALUES or not 1 < shape[1] <= _MOST_ROWS:
        return None
    return Head("rows", shape[1], _VALUES, 0, height, width)


def coordinates(rows: Floats, _head: Head) -> Coordinates:
    """Pixels where a side of a box that was found is beyond 2; contradicted where boxes end before they begin.

    Unknown where no box was found.

    >>> coordinates(np.array([[10, 20, 300, 200, 0.5, 1]], np.float32), None)
    'pixels'
    """
    found = rows[rows[:, 4] > 0]
    if not len(found):
        return "unknown"
    if (found[:, 2:4] < found[:, :2]).any(axis=1).mean() > 0.5:
        return "contradicted"
    return "pixels" if found[:, :4].max() > _LARGEST_SHARE else "shares"


def decode(rows: Floats, head: Head, coordinates: Coordinates, threshold: float) -> Boxes:
    """The boxes of rows ``(N, 6)``.

    >>> decode(np.array([[0, 0.25, 0.5, 1, 0.5, 3]], np.float32), None, "shares", 0.1).corners.tolist()
    [[0.25, 0.0, 1.0, 0.5]]
    """
    found = rows[(rows[:, 4] >= threshold) & (rows[:, 4] > 0)]
    corners = (found[:, :4] / input_size(head, coordinates))[:, [1, 0, 3, 2]]
    return Boxes(corners, found[:, 4], np.rint(np.clip(found[:, 5], 0, _LARGEST_CLASS)).astype(np.int64))


DECODER: Final = Decoder(
    name="yolo_nms",
    output="[1,N,6] with left, top, right, bottom, score, class",
    fits=fits,
    coordinates=coordinates,
    decode=decode,
    nms_iou=None,
    score_threshold=0.001,
)
