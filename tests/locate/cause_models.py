"""Models of one operator for the signatures' tests, with inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite

from tests.locate.cause_cases import Array, model, random, whole
from tests.tflite_writer import Quantization

RELU = tflite.ActivationFunctionType.RELU
_SAME: dict[str, Any] = {
    "Padding": tflite.Padding.SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1,
}  # fmt: skip
Model = tuple[bytes, list[Array]]


def add(shape: tuple[int, ...] = (1, 6, 7, 5)) -> Model:
    inputs: list[Array] = [random(shape, 1), random(shape, 2)]
    return model("ADD", inputs, shape, options="AddOptions"), inputs


def add_int8(shape: tuple[int, ...] = (1, 6, 7, 5)) -> Model:
    inputs = [whole(shape, 1, -100, 100), whole(shape, 2, -100, 100)]
    quantizations = [Quantization(0.5, -3), Quantization(0.25, 4), Quantization(0.75, 5)]
    return model("ADD", inputs, shape, options="AddOptions", quantizations=quantizations), inputs


def conv(activation: int = 0, bias: bool = True) -> Model:
    """[1, 12, 12, 4] -> [1, 12, 12, 8]."""
    inputs: list[Array] = [random((1, 12, 12, 4), 1)]
    constants = [random((8, 3, 3, 4), 2, 0.3), random((8,), 3) if bias else np.zeros(8, np.float32)]
    fields = {**_SAME, "FusedActivationFunction": activation}
    return model("CONV_2D", inputs, (1, 12, 12, 8), constants, "Conv2DOptions", **fields), inputs


def conv_int8() -> Model:
    inputs = [whole((1, 12, 12, 4), 1)]
    constants = [whole((8, 3, 3, 4), 2), np.arange(8, dtype=np.int32) * 50]
    quantizations = [Quantization(0.05, 60), Quantization(0.01, 0), Quantization(0.0005, 0), Quantization(0.3, -10)]
    return model("CONV_2D", inputs, (1, 12, 12, 8), constants, "Conv2DOptions", quantizations, **_SAME), inputs


def depthwise(multiplier: int) -> Model:
    """[1, 6, 6, 4] with a window of 1x1."""
    inputs: list[Array] = [random((1, 6, 6, 4), 1)]
    constants = [random((1, 1, 1, 4 * multiplier), 2), random((4 * multiplier,), 3)]
    fields = {**_SAME, "DepthMultiplier": multiplier}
    shape = (1, 6, 6, 4 * multiplier)
    return model("DEPTHWISE_CONV_2D", inputs, shape, constants, "DepthwiseConv2DOptions", **fields), inputs


def unary(operator: str, values: Array, options: str = "", **fields: Any) -> Model:
    return model(operator, [values], values.shape, options=options, **fields), [values]


def fully_connected(shape: tuple[int, ...] = (1, 5, 4, 3), units: int = 12) -> Model:
    inputs: list[Array] = [random(shape, 1)]
    weights, biases = random((units, int(np.prod(shape))), 2), random((units,), 3)
    return model("FULLY_CONNECTED", inputs, (1, units), [weights, biases], "FullyConnectedOptions"), inputs


def quantized_mul() -> Model:
    inputs = [whole((1, 400), 1), whole((1, 400), 2)]
    quantizations = [Quantization(0.5, 2), Quantization(0.25, -5), Quantization(20.1, 3)]
    return model("MUL", inputs, (1, 400), options="MulOptions", quantizations=quantizations), inputs


def sum_of_an_image(operator: str = "SUM", largest: float = 20.0) -> Model:
    values = (largest * np.random.default_rng(1).random((1, 112, 112, 4))).astype(np.float32)
    axes = np.array([1, 2], np.int32)
    return model(operator, [values], (1, 1, 1, 4), [axes], "ReducerOptions", KeepDims=True), [values]
