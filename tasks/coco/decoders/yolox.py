"""The head of YOLOX.

One output ``[1, N, 5 + classes]``, with one box per cell of the strides 8, 16, 32: 8400 at 640x640. Each row is an
offset in the cell, the logarithms of width and height in cells, objectness, class scores; objectness and class scores
are after the sigmoid. Exports leave the boxes raw (``decode_in_inference`` false), and ``demo_postprocess`` in
``yolox/utils/demo_utils.py`` decodes them: ``(offset + cell) * stride``, ``exp(size) * stride`` pixels. Heads that were
decoded in the graph give centre x, centre y, width, height in pixels.

A score is objectness times the best class score, and that class alone counts (``postprocess`` in
``yolox/utils/boxes.py``; ``yolox/exp/yolox_base.py``: ``test_conf`` 0.01, ``nmsthre`` 0.65). Boxes are not cut at the
picture's edge. Pictures lie at the top left, blue first, 0..255 (``preproc`` in ``yolox/data/data_augment.py``).
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
    best_class,
    corners_of,
    head_of_cells,
    input_size,
)

_FARTHEST_OFFSET: Final = 4.0
_LARGEST_LOGARITHM: Final = 20.0


def fits(shape: Sequence[int], height: int, width: int) -> Head | None:
    """Whether an output may be such a head.

    >>> fits((1, 3549, 85), 416, 416).classes
    80
    """
    return head_of_cells(shape, height, width, anchors=1, before_classes=5, layouts=["rows"])


def coordinates(rows: Floats, _head: Head) -> Coordinates:
    """Raw offsets are about 0..1 and seldom beyond a few cells; centres in pixels cover the input.

    >>> coordinates(np.array([[0.5, 0.25, -1.5, 2, 0, 0]], np.float32), None)
    'grid'
    >>> coordinates(np.array([[300, 200, 15, 20, 0, 0]], np.float32), None)
    'pixels'
    """
    return "pixels" if np.median(np.abs(rows[:, :2])) > _FARTHEST_OFFSET else "grid"


def grid(height: int, width: int, strides: Sequence[int]) -> tuple[Floats, Floats]:
    """Column and row of each cell ``(N, 2)``, and its stride ``(N, 1)``; the finest map first, each by rows.

    >>> [part.tolist() for part in grid(16, 32, (16, 32))]
    [[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [[16.0], [16.0], [32.0]]]
    """
    cells, sizes = [], []
    for stride in strides:
        rows, columns = np.mgrid[: -(-height // stride), : -(-width // stride)]
        cells.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        sizes.append(np.full((rows.size, 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(sizes).astype(np.float32)


def decode(rows: Floats, head: Head, coordinates: Coordinates, threshold: float) -> Boxes:
    """The boxes of rows ``(N, 5 + classes)``.

    >>> row = np.array([[0.5, 0.5, 0, np.log(0.5), 0.5, 0.0, 0.5]], np.float32)
    >>> found = decode(row, Head("rows", 1, 7, 2, 16, 16, (16,)), "grid", 0.01)
    >>> found.corners.tolist(), found.scores.tolist(), found.classes.tolist()
    ([[0.25, 0.0, 0.75, 1.0]], [0.25], [1])
    """
    likely = np.flatnonzero(rows[:, 4] >= threshold)
    scores = rows[likely, 5:] * rows[likely, 4:5]
    chosen, classes = best_class(scores, threshold)
    taken = likely[chosen]
    centres = rows[taken, :4]
    if coordinates == "grid":
        cells, strides = (part[taken] for part in grid(head.height, head.width, head.strides))
        sizes = np.exp(np.minimum(centres[:, 2:], _LARGEST_LOGARITHM))
        centres = np.concatenate([centres[:, :2] + cells, sizes], axis=1) * strides
    corners = corners_of(centres / input_size(head, "pixels"))
    return Boxes(corners, scores[chosen, classes], classes.astype(np.int64))


DECODER: Final = Decoder(
    name="yolox",
    output="[1,N,5+classes] with 1 box per cell",
    fits=fits,
    coordinates=coordinates,
    decode=decode,
    nms_iou=0.65,
    score_threshold=0.01,
    cuts_at_edge=False,
    resize="letterbox_top_left",
    normalization="none",
    channel_order="bgr",
)
