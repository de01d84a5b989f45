"""Models of one operator for the signatures' tests, with inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from tests.locate.causes.cases import Array, model, random, whole
from tests.tflite_writer import Quantization

HALF = Quantization(0.5, -3)
SAME, VALID = tflite.Padding.SAME, tflite.Padding.VALID
NONE, RELU, RELU6 = (tflite.ActivationFunctionType.NONE, tflite.ActivationFunctionType.RELU,
                     tflite.ActivationFunctionType.RELU6)  # fmt: skip


def add(shape: tuple[int, ...] = (1, 6, 7, 5), activation: int = NONE) -> tuple[bytes, list[Array]]:
    inputs: list[Array] = [random(shape, 1), random(shape, 2)]
    content = model("ADD", inputs, shape, options="AddOptions", FusedActivationFunction=activation)
    return content, inputs


def add_int8(shape: tuple[int, ...] = (1, 6, 7, 5)) -> tuple[bytes, list[Array]]:
    inputs = [whole(shape, 1, -100, 100), whole(shape, 2, -100, 100)]
    quantizations = [Quantization(0.5, -3), Quantization(0.25, 4), Quantization(0.75, 5)]
    return model("ADD", inputs, shape, options="AddOptions", quantizations=quantizations), inputs


def conv(
    size: int = 12, stride: int = 1, channels: int = 8, activation: int = NONE, bias: bool = True, kernel: int = 3
) -> tuple[bytes, list[Array]]:
    inputs: list[Array] = [random((1, size, size, 4), 1)]
    weights, biases = random((channels, kernel, kernel, 4), 2, 0.3), random((channels,), 3)
    out = -(-size // stride)
    content = model(
        "CONV_2D",
        inputs,
        (1, out, out, channels),
        [weights, biases if bias else np.zeros(channels, np.float32)],
        "Conv2DOptions",
        Padding=SAME,
        StrideH=stride,
        StrideW=stride,
        DilationHFactor=1,
        DilationWFactor=1,
        FusedActivationFunction=activation,
    )
    return content, inputs


def conv_int8(size: int = 12, channels: int = 8, kernel: int = 3, stride: int = 1) -> tuple[bytes, list[Array]]:
    inputs = [whole((1, size, size, 4), 1)]
    weights, biases = whole((channels, kernel, kernel, 4), 2), np.arange(channels, dtype=np.int32) * 50
    quantizations = [Quantization(0.05, 60), Quantization(0.01, 0), Quantization(0.0005, 0), Quantization(0.3, -10)]
    out = -(-size // stride)
    content = model(
        "CONV_2D",
        inputs,
        (1, out, out, channels),
        [weights, biases],
        "Conv2DOptions",
        quantizations,
        Padding=SAME,
        StrideH=stride,
        StrideW=stride,
        DilationHFactor=1,
        DilationWFactor=1,
    )
    return content, inputs


def pool(operator: str, size: int = 12) -> tuple[bytes, list[Array]]:
    inputs: list[Array] = [random((1, size, size, 4), 1) - np.float32(1)]
    content = model(
        operator,
        inputs,
        (1, size, size, 4),
        (),
        "Pool2DOptions",
        Padding=SAME,
        StrideH=1,
        StrideW=1,
        FilterHeight=3,
        FilterWidth=3,
    )
    return content, inputs


def unary(operator: str, values: Array, options: str = "", **fields: Any) -> tuple[bytes, list[Array]]:
    return model(operator, [values], values.shape, options=options, **fields), [values]


def fully_connected(shape: tuple[int, ...] = (1, 5, 4, 3), units: int = 12) -> tuple[bytes, list[Array]]:
    inputs: list[Array] = [random(shape, 1)]
    weights, biases = random((units, int(np.prod(shape))), 2), random((units,), 3)
    content = model("FULLY_CONNECTED", inputs, (1, units), [weights, biases], "FullyConnectedOptions")
    return content, inputs
