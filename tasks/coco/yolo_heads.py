"""The raw heads of YOLOs that can be read.

A new one is a :class:`Decoder` in ``DECODERS``, and its name in ``DECODERS`` of ``__init__.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import numpy as np
from msgspec.structs import replace

from evaltools.tasks.coco.decoders import (
    Boxes,
    Coordinates,
    Decoder,
    Floats,
    Head,
    Ints,
    best_class,
    corners_of,
    every_class,
    head_of_cells,
    input_size,
    shares_or_pixels,
)

Choose = Callable[[Floats, float], tuple[Ints, Ints]]
_LARGEST_SHARE: Final = 2.0
_FARTHEST_OFFSET: Final = 4.0
_LARGEST_LOGARITHM: Final = 20.0
_MOST_ROWS: Final = 1000
_VALUES: Final = 6
_WITH_OBJECTNESS: Final = 5
KEYPOINTS_OF_PERSON: Final = 3 * 17
"""Values of the keypoints of a person: x, y and score of each."""
_MOST_POSING: Final = 10
"""Classes of a head with keypoints."""
_FOLLOWS: Final = 0.7
_NO_SCORE: Final = 0.02
"""So far outside of 0..1 a value is no score."""
_LARGEST_CLASS: Final = 2**24
"""Up to here float32 holds every whole number."""


def grid(head: Head) -> tuple[Floats, Floats]:
    """Column and row of each cell ``(N, 2)``, and its stride ``(N, 1)``; the finest map first, each by rows.

    >>> [part.tolist() for part in grid(Head("rows", 3, 7, 2, height=16, width=32, strides=(16, 32)))]
    [[[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]], [[16.0], [16.0], [32.0]]]
    """
    cells, sizes = [], []
    for stride in head.strides:
        rows, columns = np.mgrid[: -(-head.height // stride), : -(-head.width // stride)]
        cells.append(np.stack([columns.ravel(), rows.ravel()], axis=1))
        sizes.append(np.full((rows.size, 1), stride))
    return np.concatenate(cells).astype(np.float32), np.concatenate(sizes).astype(np.float32)


def decode_cells(
    rows: Floats, head: Head, coordinates: Coordinates, threshold: float, choose: Choose = every_class
) -> Boxes:
    """The boxes of rows ``(N, 4 + classes)``, or ``(N, 5 + classes)`` with objectness before the class scores.

    No class score is above 1, so objectness is looked at first. ``choose`` says which classes of a box count.

    >>> row = np.array([[0.5, 0.5, 0.25, 0.5, 0.5, 0.5, 0.0]], np.float32)
    >>> found = decode_cells(row, Head("rows", 1, 7, 2, 16, 16), "shares", 0.2)
    >>> found.corners.tolist(), found.scores.tolist(), found.classes.tolist()
    ([[0.25, 0.375, 0.75, 0.625]], [0.25], [0])
    >>> row = np.array([[0.5, 0.5, 0, np.log(0.5), 0.5, 0.0, 0.5]], np.float32)
    >>> found = decode_cells(row, Head("rows", 1, 7, 2, 16, 16, (16,)), "grid", 0.01, best_class)
    >>> found.corners.tolist(), found.scores.tolist(), found.classes.tolist()
    ([[0.25, 0.0, 0.75, 1.0]], [0.25], [1])
    """
    has_objectness = head.before_classes == _WITH_OBJECTNESS
    every_score = rows[:, head.before_classes : head.before_classes + head.classes]
    likely = np.flatnonzero((rows[:, 4] if has_objectness else every_score.max(axis=1)) >= threshold)
    scores = every_score[likely] * rows[likely, 4:5] if has_objectness else np.ascontiguousarray(every_score[likely])
    chosen, classes = choose(scores, threshold)
    taken = likely[chosen]
    centres = rows[taken, :4]
    if coordinates == "grid":
        cells, strides = (part[taken] for part in grid(head))
        sizes = np.exp(np.minimum(centres[:, 2:], _LARGEST_LOGARITHM))
        centres = np.concatenate([centres[:, :2] + cells, sizes], axis=1) * strides
    corners = corners_of(centres / input_size(head, coordinates))
    return Boxes(corners, scores[chosen, classes], classes.astype(np.int64))


YOLOV5: Final = Decoder(
    name="yolov5",
    output="[1,N,5+classes] with 3 boxes per cell",
    fits=partial(head_of_cells, anchors=3, before_classes=5, layouts=("rows",)),
    coordinates=shares_or_pixels,
    decode=decode_cells,
    nms_iou=0.6,
    score_threshold=0.001,
)
"""The head of YOLOv5, which YOLOv3 and YOLOv7 share.

One output ``[1, N, 5 + classes]``, with three boxes per cell of the strides 8, 16, 32: 25200 at 640x640. Each row is
centre x, centre y, width, height, objectness, class scores. Sigmoid, grid and anchors are applied in the graph
(``TFDetect`` in ``models/tf.py`` of ultralytics/yolov5, which then divides the first four by the input's size; other
exports leave pixels). A score is objectness times class score, and every class of a box that reaches the threshold
counts (``non_max_suppression`` in ``utils/general.py`` with ``multi_label``; ``val.py``: confidence 0.001, IoU 0.6).
"""


def head_of_poses(shape: Sequence[int], height: int, width: int, extra: int = 0) -> Head | None:
    """The head of a YOLOv8 with keypoints: 17 behind the scores of a few classes, or any number behind that of one.

    >>> [head_of_poses((1, values, 8400), 640, 640).classes for values in (56, 58, 4 + 1 + 21 * 3, 14)]
    [1, 3, 1, 1]
    >>> head_of_poses((1, 84, 8400), 640, 640) is None
    True
    """
    if extra:
        return None
    head = head_of_cells(shape, height, width, anchors=1, before_classes=4, layouts=("columns", "rows"))
    if head is None:
        return None
    keypoints = KEYPOINTS_OF_PERSON if 0 < head.classes - KEYPOINTS_OF_PERSON <= _MOST_POSING else head.classes - 1
    if not keypoints or keypoints % 3:
        return None
    return replace(head, classes=head.classes - keypoints, extra=keypoints)


def are_keypoints(rows: Floats, head: Head) -> bool:
    """Whether the values behind the class scores are x, y and score of keypoints, which lie about their box.

    That is so in every cell, also where nothing is found: places that follow the box's centre are no class scores.
    """
    places = rows[:, head.values - head.extra :].reshape(len(rows), -1, 3)
    with np.errstate(invalid="ignore", divide="ignore"):
        follow = [
            np.corrcoef(rows[:, axis], places[:, number, axis])[0, 1] > _FOLLOWS
            for axis in (0, 1)
            for number in range(places.shape[1])
        ]
    return 2 * sum(map(bool, follow)) > len(follow)


def of_poses(rows: Floats, head: Head) -> Coordinates:
    """As :func:`shares_or_pixels`; contradicted also where no keypoints lie about the boxes."""
    return shares_or_pixels(rows, head) if are_keypoints(rows, head) else "contradicted"


def of_scores(rows: Floats, head: Head) -> Coordinates:
    """As :func:`shares_or_pixels`; contradicted also where what would be class scores are keypoints, or an angle."""
    poses = head_of_poses(head.shape, head.height, head.width, head.extra)
    others = is_turned(rows, head) or (poses is not None and are_keypoints(rows, poses))
    return "contradicted" if others else shares_or_pixels(rows, head)


def is_turned(rows: Floats, head: Head) -> bool:
    """Whether the last value of each box is its angle, which is no score, while those before it are.

    >>> head = head_of_cells((1, 7, 8400), 640, 640, anchors=1, before_classes=4, layouts=["columns"])
    >>> rows = np.array([[9, 9, 9, 9, 0.5, 0.1, -0.7], [9, 9, 9, 9, 0, 0, 1.5]], np.float32)
    >>> is_turned(rows, head), is_turned(np.abs(rows) % 1, head)
    (True, False)
    """
    if head.extra or head.classes < 2:
        return False
    scores = rows[:, head.before_classes :]
    sound = (scores >= -_NO_SCORE) & (scores <= 1 + _NO_SCORE)
    return bool(sound[:, :-1].all() and not sound[:, -1].all())


YOLOV8: Final = Decoder(
    name="yolov8",
    output="[1,4+classes,N] or [1,N,4+classes] with 1 box per cell",
    fits=partial(head_of_cells, anchors=1, before_classes=4, layouts=("columns", "rows")),
    coordinates=of_scores,
    decode=decode_cells,
    nms_iou=0.7,
    score_threshold=0.001,
)
"""The head of YOLOv8, which YOLOv9, YOLO11 and the ``u`` models of YOLOv5 share.

One output ``[1, 4 + classes, N]``, with one box per cell of the strides 8, 16, 32: 8400 at 640x640; some converters
turn it into ``[1, N, 4 + classes]``. A box is centre x, centre y, width, height, and class scores after the sigmoid;
there is no objectness. Exports to TensorFlow Lite give shares of the input, others pixels (``Detect`` in
``ultralytics/nn/modules/head.py``, which divides for the formats tflite and edgetpu). Every class of a box that reaches
the threshold counts (``yolo val``: confidence 0.001, IoU 0.7).
"""


YOLOV8_POSE: Final = Decoder(
    name="yolov8_pose",
    output="[1,4+classes+3*keypoints,N] or [1,N,4+classes+3*keypoints] with 1 box per cell",
    fits=head_of_poses,
    coordinates=of_poses,
    decode=decode_cells,
    nms_iou=0.7,
    score_threshold=0.001,
)
"""The head of YOLOv8 with keypoints, which YOLO11 shares: ``[1, 56, N]`` for a person's 17.

As :data:`YOLOV8`, and behind the class scores x, y and score of each keypoint, in the unit of the box (``Pose`` in
``ultralytics/nn/modules/head.py``).
"""


def offsets_or_pixels(rows: Floats, _head: Head) -> Coordinates:
    """Raw offsets are about 0..1 and seldom beyond a few cells; centres in pixels cover the input.

    >>> offsets_or_pixels(np.array([[0.5, 0.25, -1.5, 2, 0, 0]], np.float32), None)
    'grid'
    >>> offsets_or_pixels(np.array([[300, 200, 15, 20, 0, 0]], np.float32), None)
    'pixels'
    """
    return "pixels" if np.median(np.abs(rows[:, :2])) > _FARTHEST_OFFSET else "grid"


YOLOX: Final = Decoder(
    name="yolox",
    output="[1,N,5+classes] with 1 box per cell",
    fits=partial(head_of_cells, anchors=1, before_classes=5, layouts=("rows",)),
    coordinates=offsets_or_pixels,
    decode=partial(decode_cells, choose=best_class),
    nms_iou=0.65,
    score_threshold=0.01,
    cuts_at_edge=False,
    resize="letterbox_top_left",
    normalization="none",
    channel_order="bgr",
)
"""The head of YOLOX.

One output ``[1, N, 5 + classes]``, with one box per cell of the strides 8, 16, 32: 8400 at 640x640. Each row is an
offset in the cell, the logarithms of width and height in cells, objectness, class scores; objectness and class scores
are after the sigmoid. Exports leave the boxes raw (``decode_in_inference`` false), and ``demo_postprocess`` in
``yolox/utils/demo_utils.py`` decodes them: ``(offset + cell) * stride``, ``exp(size) * stride`` pixels. Heads that were
decoded in the graph give centre x, centre y, width, height in pixels.

A score is objectness times the best class score, and only that class counts (``postprocess`` in
``yolox/utils/boxes.py``; ``yolox/exp/yolox_base.py``: ``test_conf`` 0.01, ``nmsthre`` 0.65). Boxes are not cut at the
picture's edge. Pictures lie at the top left, blue first, 0..255 (``preproc`` in ``yolox/data/data_augment.py``).
"""


def fits_rows(shape: Sequence[int], height: int, width: int, masks: int = 0) -> Head | None:
    """Whether an output may be ``[1, N, 6]``, and behind each box 17 keypoints or the coefficients of its mask.

    >>> fits_rows((1, 300, 6), 640, 640).count, fits_rows((1, 300, 7), 640, 640)
    (300, None)
    >>> fits_rows((1, 300, 57), 640, 640).extra, fits_rows((1, 300, 38), 640, 640, 32).extra
    (51, 32)
    """
    if len(shape) != 3 or shape[0] != 1 or not 1 < shape[1] <= _MOST_ROWS:
        return None
    extra = shape[2] - _VALUES
    known = (masks,) if masks else (0, KEYPOINTS_OF_PERSON)
    return Head("rows", shape[1], shape[2], 0, height, width, extra=extra) if extra in known else None


def found_in(rows: Floats, _head: Head) -> Coordinates:
    """Pixels where a side of a box that was found is beyond 2; contradicted where boxes end before they begin.

    Unknown where no box was found.

    >>> found_in(np.array([[10, 20, 300, 200, 0.5, 1]], np.float32), None)
    'pixels'
    """
    found = rows[rows[:, 4] > 0]
    if not len(found):
        return "unknown"
    if (found[:, 2:4] < found[:, :2]).any(axis=1).mean() > 0.5:
        return "contradicted"
    return "pixels" if found[:, :4].max() > _LARGEST_SHARE else "shares"


def decode_rows(rows: Floats, head: Head, coordinates: Coordinates, threshold: float) -> Boxes:
    """The boxes of rows ``(N, 6)``.

    >>> decode_rows(np.array([[0, 0.25, 0.5, 1, 0.5, 3]], np.float32), None, "shares", 0.1).corners.tolist()
    [[0.25, 0.0, 1.0, 0.5]]
    """
    found = rows[(rows[:, 4] >= threshold) & (rows[:, 4] > 0)]
    corners = (found[:, :4] / input_size(head, coordinates))[:, [1, 0, 3, 2]]
    return Boxes(corners, found[:, 4], np.rint(np.clip(found[:, 5], 0, _LARGEST_CLASS)).astype(np.int64))


YOLO_NMS: Final = Decoder(
    name="yolo_nms",
    output="[1,N,6] with left, top, right, bottom, score, class",
    fits=fits_rows,
    coordinates=found_in,
    decode=decode_rows,
    nms_iou=None,
    score_threshold=0.001,
)
"""A YOLO that suppresses overlapping boxes itself.

One output ``[1, N, 6]``, N being 300 as a rule: left, top, right, bottom, score, class, in shares or in pixels of the
input, with scores of 0 where less was found (``export(nms=True)`` of ultralytics, and YOLOv10 and YOLO26, which need no
suppression). Behind these there may be keypoints or coefficients of a mask.
"""

DECODERS: Final = {each.name: each for each in (YOLOV5, YOLOV8, YOLOV8_POSE, YOLOX, YOLO_NMS)}
"""In the order in which they are taken where a shape fits several and nothing else distinguishes them."""
