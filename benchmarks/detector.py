"""A detector as an EfficientDet is built, drawn by code: random weights, always the same ones.

A backbone with branches around its blocks, two pyramids of five levels that go down and up again, and on each level a
head for the classes and one for the boxes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import tflite

from tests.tflite_writer import Graph

OPERATORS: Final = 200
_IMAGE: Final = (1, 128, 128, 3)
_STAGES: Final = ((16, 1, 2), (24, 2, 3), (32, 2, 4), (48, 2, 5), (64, 2, 4))
"""Of the backbone: channels, stride of the first block, blocks."""
_EXPANSION: Final = 4
_CHANNELS: Final = 32
_PYRAMIDS: Final = 2
_ANCHORS, _CLASSES, _SIDES = 3, 20, 4
_NONE, _RELU6 = tflite.ActivationFunctionType.NONE, tflite.ActivationFunctionType.RELU6
_SEED: Final = 0


def detector() -> bytes:
    """The .tflite file, float32, from a picture to the scores and boxes of all anchors."""
    drawing = _Drawing()
    image = drawing.graph.tensor("image", _IMAGE)
    levels = drawing.levels(image)
    for _ in range(_PYRAMIDS):
        levels = drawing.pyramid(levels)
    scores, moved = drawing.head(levels, _CLASSES), drawing.head(levels, _SIDES)
    scores = drawing.node("LOGISTIC", [scores], drawing.graph.shape(scores))
    boxes = drawing.add(moved, drawing.constant(drawing.graph.shape(moved), 1.0))
    return drawing.graph.to_bytes([image], [scores, boxes])


class _Drawing:
    """Nodes with their weights, one after the other."""

    def __init__(self) -> None:
        self.graph = Graph()
        self._random = np.random.default_rng(_SEED)
        self._numbers = itertools.count()

    def node(self, operator: str, inputs: Sequence[int], shape: Sequence[int], options: str = "", **fields: int) -> int:
        """An operator with a tensor of its own."""
        output = self.graph.tensor(f"{operator.lower()} {next(self._numbers)}", shape)
        return self.graph.node(operator, inputs, output, options, **fields)

    def constant(self, shape: Sequence[int], size: float) -> int:
        """Random numbers as large as ``size`` on average."""
        return self._constant(self._random.normal(0.0, size, tuple(shape)), np.float32)

    def levels(self, image: int) -> list[int]:
        """The backbone, and five levels, each half as large as the one before."""
        shape = self.graph.shape(image)
        scaled = self.node("MUL", [image, self._constant([0.5], np.float32)], shape, "MulOptions")
        source = self.node("SUB", [scaled, self._constant([0.1], np.float32)], shape, "SubOptions")
        source = self._conv(source, _STAGES[0][0], 3, 2, _RELU6)
        stages = []
        for channels, stride, count in _STAGES:
            for place in range(count):
                source = self._block(source, channels, stride if place == 0 else 1)
            stages.append(source)
        found = [self._conv(stage, _CHANNELS) for stage in stages[-3:]]
        found.append(self._halved(found[-1]))
        return [*found, self._halved(found[-1])]

    def pyramid(self, levels: Sequence[int]) -> list[int]:
        """Each level with what the smaller ones have, then with what the larger ones have."""
        down = [levels[-1]]
        for level in reversed(levels[:-1]):
            down.insert(0, self._mixed(self.add(level, self._doubled(down[0]))))
        up = [down[0]]
        for level, mixed in zip(levels[1:], down[1:], strict=True):
            together = self.add(mixed, self._halved(up[-1]))
            up.append(self._mixed(together if mixed is level else self.add(together, level)))
        return up

    def head(self, levels: Sequence[int], numbers: int) -> int:
        """So many numbers of each anchor of all levels: [1, anchors, numbers]."""
        rows = []
        for level in levels:
            found = self._conv(self._depthwise(self._mixed(level)), _ANCHORS * numbers)
            shape = (1, math.prod(self.graph.shape(found)) // numbers, numbers)
            rows.append(self.node("RESHAPE", [found, self._constant(shape, np.int32)], shape, "ReshapeOptions"))
        count = sum(self.graph.shape(row)[1] for row in rows)
        return self.node("CONCATENATION", rows, (1, count, numbers), "ConcatenationOptions", Axis=1)

    def add(self, one: int, other: int) -> int:
        """Two tensors of one shape."""
        return self.node("ADD", [one, other], self.graph.shape(one), "AddOptions")

    def _block(self, source: int, channels: int, stride: int) -> int:
        """Wider, depthwise, narrow again, and added to what came in where that has the same shape."""
        wide = self._conv(source, _EXPANSION * self.graph.shape(source)[3], activation=_RELU6)
        narrow = self._conv(self._depthwise(wide, stride), channels)
        return self.add(source, narrow) if self.graph.shape(narrow) == self.graph.shape(source) else narrow

    def _mixed(self, source: int) -> int:
        return self._conv(self._depthwise(source), self.graph.shape(source)[3])

    def _conv(self, source: int, channels: int, size: int = 1, stride: int = 1, activation: int = _NONE) -> int:
        batch, height, width, fed = self.graph.shape(source)
        weights = self.constant((channels, size, size, fed), (size * size * fed) ** -0.5)
        return self.node(
            "CONV_2D", [source, weights, self.constant((channels,), 0.1)],
            (batch, height // stride, width // stride, channels), "Conv2DOptions", **_window(stride),
            DilationHFactor=1, DilationWFactor=1, FusedActivationFunction=activation,
        )  # fmt: skip

    def _depthwise(self, source: int, stride: int = 1) -> int:
        batch, height, width, channels = self.graph.shape(source)
        weights, bias = self.constant((1, 3, 3, channels), 1 / 2), self.constant((channels,), 0.1)
        return self.node(
            "DEPTHWISE_CONV_2D", [source, weights, bias], (batch, height // stride, width // stride, channels),
            "DepthwiseConv2DOptions", **_window(stride), DilationHFactor=1, DilationWFactor=1, DepthMultiplier=1,
            FusedActivationFunction=_RELU6,
        )  # fmt: skip

    def _halved(self, source: int) -> int:
        batch, height, width, channels = self.graph.shape(source)
        shape = (batch, height // 2, width // 2, channels)
        return self.node("MAX_POOL_2D", [source], shape, "Pool2DOptions", **_window(2), FilterHeight=2, FilterWidth=2)

    def _doubled(self, source: int) -> int:
        batch, height, width, channels = self.graph.shape(source)
        size = self._constant([2 * height, 2 * width], np.int32)
        shape = (batch, 2 * height, 2 * width, channels)
        return self.node("RESIZE_NEAREST_NEIGHBOR", [source, size], shape, "ResizeNearestNeighborOptions")

    def _constant(self, values: npt.ArrayLike, dtype: npt.DTypeLike) -> int:
        return self.graph.constant(f"constant {next(self._numbers)}", np.asarray(values, dtype))


def _window(stride: int) -> dict[str, int]:
    return {"Padding": tflite.Padding.SAME, "StrideH": stride, "StrideW": stride}
