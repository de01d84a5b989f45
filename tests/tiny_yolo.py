"""Tiny models with the heads of YOLOv5, YOLOv8 and YOLOX, and pictures for them.

The input has 64x64 pixels, so the maps of the strides 8, 16, 32 have 8x8, 4x4 and 2x2 cells, 84 together. The scores of
a cell are how far its mean red, green and blue are above the middle, and less on finer maps: classes 0, 1 and 2. The
boxes of a cell are fixed: about as large as the cell, and not quite in its middle. Neighbours overlap, and so do a cell
and those of the other maps in it, so that non-maximum suppression has work to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tflite
from msgspec import Struct
from PIL import Image

from tests.tflite_writer import Graph, Quantization

SIDE = 64
STRIDES = (8, 16, 32)
CELLS = 84
CLASSES = 3
MAPS = 33
NAMES = ("red", "green", "blue")
Floats = npt.NDArray[np.float32]
_WEIGHTS = {8: 0.6, 16: 0.8, 32: 1.0}
_ROWS = 90
_SIZES = {1: (1.05,), 3: (1.05, 0.9, 1.6)}
"""Of boxes in cells: one or three per cell."""
_SHIFT = 0.04


def cells() -> list[tuple[int, int, int]]:
    """Column, row and stride of each cell, the finest map first, each by rows."""
    return [
        (column, row, stride) for stride in STRIDES for row in range(SIDE // stride) for column in range(SIDE // stride)
    ]


def pixel_boxes(anchors: int) -> Floats:
    """Centre x, centre y, width, height of every box, all cells for each size in turn."""
    boxes = []
    for size in _SIZES[anchors]:
        for number, (column, row, stride) in enumerate(cells()):
            shift = _SHIFT * (number % 3 - 1)
            centre = ((column + 0.5 + shift) * stride, (row + 0.5 - shift) * stride)
            boxes.append((*centre, size * stride, size * stride * (1 + shift)))
    return np.array(boxes, np.float32)


def yolov5(pixels: bool = False, quantized: bool = False) -> bytes:
    """``[1, 252, 8]``: boxes, objectness, class scores. The quantised one takes and gives uint8, as its export does."""
    scales = (Quantization(1 / 255, 0), Quantization(1 / 200, 0)) if quantized else None
    return _model(pixel_boxes(3) / np.float32(1 if pixels else SIDE), 3, objectness=True, dtype="uint8", scales=scales)


def yolov8(
    pixels: bool = False, rows: bool = False, quantized: bool = False, junk: bool = False, planes: bool = False
) -> bytes:
    """``[1, 7, 84]``, or ``[1, 84, 7]``: boxes, class scores. The quantised one takes and gives int8.

    ``planes``: the input is ``[1, 3, 64, 64]``. With ``junk`` every cell has a low score for each class, as
    real models do.
    """
    step = 1 / 3 if pixels else 1 / 200
    scales = (Quantization(1 / 255, -128), Quantization(step, -128)) if quantized else None
    boxes = pixel_boxes(1) / np.float32(1 if pixels else SIDE)
    return _model(boxes, 1, objectness=False, dtype="int8", scales=scales, columns=not rows, junk=junk, planes=planes)


def yolox(decoded: bool = False, quantized: bool = False) -> bytes:
    """``[1, 84, 8]``: raw boxes, objectness, class scores; for pixels from 0 to 255 with blue first."""
    boxes = pixel_boxes(1)
    if not decoded:
        place = np.array(cells(), np.float32)
        boxes = np.concatenate(
            [boxes[:, :2] / place[:, 2:] - place[:, :2], np.log(boxes[:, 2:] / place[:, 2:])], axis=1
        )
    scales = (Quantization(1, -128), Quantization(1 / 100, 0)) if quantized else None
    return _model(boxes, 1, objectness=True, dtype="int8", scales=scales, blue_first=True)


def pose(pixels: bool = False, rows: bool = False) -> bytes:
    """``[1, 56, 84]``, as YOLOv8-pose has it: boxes, one score, x, y and score of 17 keypoints in each box."""
    boxes = pixel_boxes(1) / np.float32(1 if pixels else SIDE)
    return _model(
        boxes, 1, objectness=False, dtype="", scales=None, columns=not rows, extra=keypoints(boxes), posing=True
    )


def keypoints(boxes: Floats) -> Floats:
    """X, y and score of 17 keypoints in each box ``(N, 4)``, along its diagonal."""
    steps = np.linspace(-0.4, 0.4, 17, dtype=np.float32)
    places = boxes[:, None, :2] + steps[None, :, None] * boxes[:, None, 2:]
    sure = np.broadcast_to(0.5 + steps[None, :, None], (len(boxes), 17, 1))
    points: Floats = np.concatenate([places, sure], axis=2).reshape(len(boxes), 51).astype(np.float32)
    return points


def masks() -> bytes:
    """``[1, 40, 84]`` beside ``[1, 16, 16, 33]``, as YOLOv8-seg: boxes, class scores, a coefficient for each map."""
    coefficients = np.random.default_rng(3).normal(0, 1, (CELLS, MAPS)).astype(np.float32)
    boxes = pixel_boxes(1) / np.float32(SIDE)
    return _model(boxes, 1, objectness=False, dtype="", scales=None, columns=True, extra=coefficients, maps=True)


def turned() -> bytes:
    """``[1, 8, 84]``, as YOLOv8-obb has it: boxes, class scores, an angle."""
    angles = np.linspace(-0.75, 2.3, CELLS, dtype=np.float32)[:, None]
    boxes = pixel_boxes(1) / np.float32(SIDE)
    return _model(boxes, 1, objectness=False, dtype="", scales=None, columns=True, extra=angles)


def suppressing(pixels: bool = False) -> bytes:
    """``[1, 90, 6]``: left, top, right, bottom, score, class of every cell, and zeros to fill up."""
    graph = Graph()
    picture = graph.tensor("images", (1, SIDE, SIDE, 3))
    scores = _scores(graph, picture, blue_first=False)
    best = _best(graph, scores, 1)
    axis = graph.constant("axis", np.array([2], np.int32))
    highest = graph.node(
        "ARG_MAX",
        [scores, axis],
        graph.tensor("highest", (1, CELLS), "int32"),
        "ArgMaxOptions",
        OutputType=tflite.TensorType.INT32,
    )
    number = graph.node(
        "CAST",
        [highest],
        graph.tensor("number", (1, CELLS)),
        "CastOptions",
        InDataType=tflite.TensorType.INT32,
        OutDataType=tflite.TensorType.FLOAT32,
    )
    boxes = pixel_boxes(1) / np.float32(1 if pixels else SIDE)
    corners = np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], axis=1)
    parts = [graph.constant("corners", corners[None]), best, _reshaped(graph, number, (1, CELLS, 1))]
    rows = _joined(graph, parts, 2, (1, CELLS, 6), "rows")
    empty = graph.constant("empty", np.zeros((1, _ROWS - CELLS, 6), np.float32))
    return graph.to_bytes([picture], [_joined(graph, [rows, empty], 1, (1, _ROWS, 6), "output0")])


def _model(
    boxes: Floats,
    anchors: int,
    objectness: bool,
    dtype: str,
    scales: tuple[Quantization, Quantization] | None,
    columns: bool = False,
    blue_first: bool = False,
    junk: bool = False,
    planes: bool = False,
    extra: Floats | None = None,
    posing: bool = False,
    maps: bool = False,
) -> bytes:
    """Boxes that are fixed beside scores of the picture; ``scales`` are those of input and output.

    ``extra`` are fixed values behind the scores. ``posing``: one score for all classes. ``maps``: a second output.
    """
    graph = Graph()
    count = anchors * CELLS
    if planes:
        picture = graph.tensor("images", (1, 3, SIDE, SIDE))
        last = graph.constant("channels last", np.array([0, 2, 3, 1], np.int32))
        real = graph.node("TRANSPOSE", [picture, last], graph.tensor("real", (1, SIDE, SIDE, 3)), "TransposeOptions")
    elif scales is None:
        picture = real = graph.tensor("images", (1, SIDE, SIDE, 3))
    else:
        picture = graph.tensor("images", (1, SIDE, SIDE, 3), dtype, scales[0])
        real = graph.node("DEQUANTIZE", [picture], graph.tensor("real", (1, SIDE, SIDE, 3)), "DequantizeOptions", 2)
    scores = _scores(graph, real, blue_first)
    if junk:
        least = np.random.default_rng(7).uniform(0.01, 0.1, (1, CELLS, CLASSES)).astype(np.float32)
        everywhere = graph.tensor("everywhere", (1, CELLS, CLASSES))
        scores = graph.node("MAXIMUM", [scores, graph.constant("least", least)], everywhere)
    repeated = _joined(graph, [scores] * anchors, 1, (1, count, CLASSES), "scores")
    parts = [graph.constant("boxes", boxes[None].astype(np.float32))]
    parts += [_best(graph, repeated, anchors)] if objectness or posing else []
    parts += [] if posing else [repeated]
    width = 4 + (1 if posing else objectness + CLASSES)
    if extra is not None:
        parts.append(graph.constant("extra", extra[None]))
        width += extra.shape[1]
    head = _joined(graph, parts, 2, (1, count, width), "output0")
    if columns:
        order = graph.constant("order", np.array([0, 2, 1], np.int32))
        head = graph.node("TRANSPOSE", [head, order], graph.tensor("turned", (1, width, count)), "TransposeOptions")
    if scales is not None:
        whole = graph.tensor("quantized", graph.shape(head), dtype, scales[1])
        head = graph.node("QUANTIZE", [head], whole, "QuantizeOptions")
    return graph.to_bytes([picture], [head, _maps(graph, real)] if maps else [head])


def _maps(graph: Graph, picture: int) -> int:
    """``[1, 16, 16, 33]``: the picture, a quarter as large, eleven times."""
    side = SIDE // 4
    sizes = {"StrideH": 4, "StrideW": 4, "FilterHeight": 4, "FilterWidth": 4}
    small = graph.tensor("small", (1, side, side, CLASSES))
    graph.node("AVERAGE_POOL_2D", [picture], small, "Pool2DOptions", Padding=tflite.Padding.VALID, **sizes)
    return _joined(graph, [small] * (MAPS // CLASSES), 3, (1, side, side, MAPS), "output1")


def _scores(graph: Graph, picture: int, blue_first: bool) -> int:
    """``[1, 84, 3]``: 0 at the middle, 1 at the top, of pixels in 0..1, or in 0..255 where blue comes first."""
    parts = []
    for stride in STRIDES:
        side = SIDE // stride
        pooled = graph.node(
            "AVERAGE_POOL_2D",
            [picture],
            graph.tensor("pooled", (1, side, side, CLASSES)),
            "Pool2DOptions",
            Padding=tflite.Padding.VALID,
            StrideH=stride,
            StrideW=stride,
            FilterHeight=stride,
            FilterWidth=stride,
        )
        parts.append(_reshaped(graph, pooled, (1, side * side, CLASSES)))
    means = _joined(graph, parts, 1, (1, CELLS, CLASSES), "means")
    if blue_first:
        order = graph.constant("red first", np.array([2, 1, 0], np.int32))
        means = graph.node("GATHER", [means, order], graph.tensor("rgb", (1, CELLS, CLASSES)), "GatherOptions", Axis=2)
    factor = graph.constant("factor", np.array([2 / 255 if blue_first else 2], np.float32))
    doubled = graph.node("MUL", [means, factor], graph.tensor("doubled", (1, CELLS, CLASSES)), "MulOptions")
    less = graph.constant("less", np.array([-1], np.float32))
    relu = tflite.ActivationFunctionType.RELU
    above = graph.tensor("above", (1, CELLS, CLASSES))
    graph.node("ADD", [doubled, less], above, "AddOptions", FusedActivationFunction=relu)
    weights = graph.constant("weights", np.array([[_WEIGHTS[stride]] for _, _, stride in cells()], np.float32)[None])
    return graph.node("MUL", [above, weights], graph.tensor("weighted", (1, CELLS, CLASSES)), "MulOptions")


def _best(graph: Graph, scores: int, anchors: int) -> int:
    axis = graph.constant("last", np.array([2], np.int32))
    best = graph.tensor("best", (1, anchors * CELLS, 1))
    return graph.node("REDUCE_MAX", [scores, axis], best, "ReducerOptions", KeepDims=True)


def _joined(graph: Graph, parts: Sequence[int], axis: int, shape: Sequence[int], name: str) -> int:
    return graph.node("CONCATENATION", parts, graph.tensor(name, shape), "ConcatenationOptions", Axis=axis)


def _reshaped(graph: Graph, tensor: int, shape: Sequence[int]) -> int:
    target = graph.constant("shape", np.array(shape, np.int32))
    return graph.node("RESHAPE", [tensor, target], graph.tensor("reshaped", shape), "ReshapeOptions")


class YoloSet(Struct, frozen=True):
    """A data set as YOLO has it: pictures, a label file for each, the names of the classes."""

    folder: Path

    @property
    def images(self) -> Path:
        """The pictures."""
        return self.folder / "images"

    @property
    def labels(self) -> Path:
        """The label files."""
        return self.folder / "labels"

    @property
    def names(self) -> Path:
        """Names of the classes, one a line."""
        return self.folder / "names.txt"


PICTURE_SIZES = ((64, 32), (48, 64), (128, 96), (64, 64), (64, 128))
"""Width and height: letterboxed, every pixel or every second one of them is in the input."""


def make_yolo_set(folder: Path, count: int = 10, seed: int = 5) -> YoloSet:
    """Pictures with one to three rectangles each, of one colour on a dark ground, about where cells are."""
    made = YoloSet(folder)
    made.images.mkdir(parents=True)
    made.labels.mkdir()
    made.names.write_text("".join(f"{name}\n" for name in NAMES))
    random = np.random.default_rng(seed)
    for index in range(count):
        width, height = PICTURE_SIZES[index % len(PICTURE_SIZES)]
        unit = max(width, height) // SIDE
        pixels = random.integers(0, 60, (height, width, 3), np.uint8)
        lines = []
        for _ in range(int(random.integers(1, 4))):
            size = int(random.choice([8, 16, 16, 32])) * unit
            left, top = (
                min(max(int(random.integers(side // size)) * size + int(random.integers(-1, 2)), 0), side - size)
                for side in (width, height)
            )
            right, bottom = left + size, top + size
            number = int(random.integers(CLASSES))
            pixels[top:bottom, left:right] = 0
            pixels[top:bottom, left:right, number] = int(random.integers(170, 256))
            centre = ((left + right) / 2 / width, (top + bottom) / 2 / height)
            shares = (*centre, (right - left) / width, (bottom - top) / height)
            lines.append(f"{number} {' '.join(f'{share:.6f}' for share in shares)}\n")
        Image.fromarray(pixels).save(made.images / f"{index + 1:06d}.png")
        (made.labels / f"{index + 1:06d}.txt").write_text("".join(lines))
    return made
