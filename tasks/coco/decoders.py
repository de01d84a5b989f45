"""What every decoder of a raw head is, the arithmetic that they share, and non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.native_average_precision import overlap

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Layout = Literal["rows", "columns"]
Coordinates = Literal["shares", "pixels", "grid", "contradicted", "unknown"]
"""What boxes are given in; the values of an output may contradict a decoder, or hold no box that decides."""

STRIDES: Final = ((8, 16, 32), (8, 16, 32, 64), (4, 8, 16, 32), (16, 32))
"""Pixels per cell of the feature maps of a head: the usual ones, those of P6 and P2 models, and of tiny ones."""
_LARGEST_SHARE: Final = 2.0
_MOST_NEGATIVE: Final = 0.01
_OF_MAPS: Final = 4
"""Pixels per cell of the maps of which masks are made."""


class Head(Struct, frozen=True):
    """What the shape of an output says: ``count`` boxes with ``values`` numbers each, for an input of this size.

    ``layout`` is rows for ``[1, count, values]`` and columns for ``[1, values, count]``. ``strides`` are those of the
    feature maps whose cells the boxes are, empty where boxes are not of cells. Of the values the last ``extra`` are of
    no detection: keypoints of a person, or coefficients of a mask. ``place`` is the number of the output.
    """

    layout: Layout
    count: int
    values: int
    classes: int
    height: int
    width: int
    strides: tuple[int, ...] = ()
    extra: int = 0
    place: int = 0

    @property
    def before_classes(self) -> int:
        """How many values stand before the class scores: those of the box, and objectness where there is one."""
        return self.values - self.classes - self.extra

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the output."""
        return (1, self.count, self.values) if self.layout == "rows" else (1, self.values, self.count)

    def rows(self, output: Floats) -> Floats:
        """The output as ``(count, values)``."""
        table: Floats = output.reshape(self.shape)[0]
        return table if self.layout == "rows" else table.T


class Boxes(Struct, frozen=True):
    """``corners`` ``(N, 4)`` are top, left, bottom, right in shares of the model's input, with N scores and classes."""

    corners: Floats
    scores: Floats
    classes: Ints

    def at(self, places: npt.NDArray[Any]) -> Boxes:
        """The boxes at these places, or where it is true."""
        return Boxes(self.corners[places], self.scores[places], self.classes[places])


class Decoder(Struct, frozen=True):
    """One kind of raw head.

    ``output`` says in words what it is. ``fits`` says from an output's shape, the input's height and width, and how
    many coefficients of a mask each box has, whether it may be one. ``coordinates`` says from the rows of a few
    pictures in what boxes are given, or that they contradict this reading; ``decode`` takes the boxes with a score of
    the threshold or more, from rows, head and coordinates.

    The rest is as the authors' own validation has it: the IoU above which a box suppresses another one of its class
    (None: the model has done so), the least score, whether boxes are cut at the picture's edge, and how pictures become
    inputs.
    """

    name: str
    output: str
    fits: Callable[[Sequence[int], int, int, int], Head | None]
    coordinates: Callable[[Floats, Head], Coordinates]
    decode: Callable[[Floats, Head, Coordinates, float], Boxes]
    nms_iou: float | None
    score_threshold: float
    cuts_at_edge: bool = True
    resize: Literal["letterbox", "letterbox_top_left"] = "letterbox"
    normalization: str = "unit"
    channel_order: Literal["rgb", "bgr"] = "rgb"


def cell_count(height: int, width: int, strides: Sequence[int]) -> int:
    """The cells of the feature maps of an input: each is a stride smaller, rounded up.

    >>> cell_count(640, 640, (8, 16, 32)), cell_count(416, 416, (8, 16, 32))
    (8400, 3549)
    """
    return sum(-(-height // stride) * -(-width // stride) for stride in strides)


def head_of_cells(
    shape: Sequence[int],
    height: int,
    width: int,
    extra: int = 0,
    *,
    anchors: int,
    before_classes: int,
    layouts: Sequence[Layout],
) -> Head | None:
    """The head that an output of this shape is, with ``anchors`` boxes per cell; None where the number does not fit.

    ``before_classes`` numbers of each box stand before its class scores, ``extra`` behind them.

    >>> head_of_cells((1, 25200, 85), 640, 640, anchors=3, before_classes=5, layouts=["rows"]).classes
    80
    >>> head_of_cells((1, 8400, 85), 640, 640, anchors=3, before_classes=5, layouts=["rows"]) is None
    True
    """
    if len(shape) != 3 or shape[0] != 1:
        return None
    for layout in layouts:
        count, values = (shape[1], shape[2]) if layout == "rows" else (shape[2], shape[1])
        for strides in STRIDES:
            classes = values - before_classes - extra
            if count == anchors * cell_count(height, width, strides) and classes > 0:
                return Head(layout, count, values, classes, height, width, strides, extra)
    return None


def mask_maps(shapes: Sequence[Sequence[int]], height: int, width: int) -> dict[int, int]:
    """The outputs that are maps of which masks are made, a quarter of the picture's size, and how many there are.

    A YOLO for segmentation gives these beside its head, which has a coefficient of each map for every box.

    >>> mask_maps([(1, 116, 8400), (1, 160, 160, 32)], 640, 640)
    {1: 32}
    """
    found = {}
    for place, shape in enumerate(shapes):
        if len(shape) == 4 and shape[0] == 1:
            for sizes, count in ((shape[1:3], shape[3]), (shape[2:], shape[1])):
                if tuple(sizes) == (-(-height // _OF_MAPS), -(-width // _OF_MAPS)):
                    found[place] = count
    return found


def shares_or_pixels(rows: Floats, _head: Head) -> Coordinates:
    """What centres, widths and heights ``(N, 4..)`` are given in; contradicted where widths or heights are negative.

    Centres of all cells cover the input, so in pixels the largest is far beyond 2. Quantisation may turn a few sizes
    near 0 negative.

    >>> shares_or_pixels(np.array([[0.9, 0.5, 2.3, 0.1]], np.float32), None)
    'shares'
    >>> shares_or_pixels(np.array([[600, 20, 30, 40]], np.float32), None)
    'pixels'
    >>> shares_or_pixels(np.array([[0.2, 0.4, -1.5, 0.3]], np.float32), None)
    'contradicted'
    """
    if (rows[:, 2:4] < 0).any(axis=1).mean() > _MOST_NEGATIVE:
        return "contradicted"
    return "pixels" if np.nanmax(rows[:, :2]) > _LARGEST_SHARE else "shares"


def input_size(head: Head, coordinates: Coordinates) -> Floats:
    """Width, height, width, height of the input in the unit of the coordinates; those of a grid are made pixels."""
    return np.array([head.width, head.height] * 2 if coordinates in ("pixels", "grid") else [1] * 4, np.float32)


def corners_of(centres: Floats) -> Floats:
    """Centre x, centre y, width, height ``(N, 4)`` -> top, left, bottom, right.

    >>> corners_of(np.array([[0.5, 0.25, 0.5, 0.25]], np.float32)).tolist()
    [[0.125, 0.25, 0.375, 0.75]]
    """
    x, y, width, height = centres.T
    return np.stack([y - height / 2, x - width / 2, y + height / 2, x + width / 2], axis=1)


def every_class(scores: Floats, threshold: float) -> tuple[Ints, Ints]:
    """Row and class of each score ``(N, classes)`` that is positive and reaches the threshold.

    >>> [each.tolist() for each in every_class(np.array([[0.5, 0.25], [0, 0.75]], np.float32), 0.25)]
    [[0, 0, 1], [0, 1, 1]]
    """
    places = np.flatnonzero((scores >= threshold) & (scores > 0))
    rows, classes = np.divmod(places, scores.shape[1])
    return rows, classes


def best_class(scores: Floats, threshold: float) -> tuple[Ints, Ints]:
    """Row and class of the best score of each row, where it is positive and reaches the threshold.

    >>> [each.tolist() for each in best_class(np.array([[0.5, 0.25], [0, 0.125]], np.float32), 0.25)]
    [[0], [0]]
    """
    classes = scores.argmax(axis=1)
    best = scores[np.arange(len(scores)), classes]
    rows = np.flatnonzero((best >= threshold) & (best > 0))
    return rows, classes[rows]


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
    return boxes.at(kept[:most])


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
