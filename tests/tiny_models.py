"""Tiny TensorFlow Lite models for tests.

Every function returns the content of a .tflite file. Weights are random with a fixed seed, so
the same arguments give the same bytes. All models run in tflite_runtime 2.14 and in
ai-edge-litert 2.3, unless the function says otherwise.

Images are NHWC. Inputs are named "input" or "left" and "right", outputs after what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import tflite
from msgspec import Struct

from tests.tflite_writer import TENSOR_TYPES, Graph, Quantization, Shape, Signature

Padding = Literal["SAME", "VALID"]
Activation = Literal["NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH"]

INPUT_QUANTIZATION = {
    "uint8": Quantization(scale=1 / 128, zero_point=128),
    "int8": Quantization(scale=1 / 128, zero_point=0),
    "int16": Quantization(scale=1 / 32768, zero_point=0),
}
SCORE_QUANTIZATION = {
    "uint8": Quantization(scale=1 / 256, zero_point=0),
    "int8": Quantization(scale=1 / 256, zero_point=-128),
    "int16": Quantization(scale=1 / 32768, zero_point=0),
}


class Window(Struct, frozen=True):
    """How a convolution moves over the image; pairs are (height, width)."""

    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    padding: Padding = "SAME"
    activation: Activation = "NONE"

    def output_size(self, size: Sequence[int]) -> tuple[int, int]:
        """Height and width of the output for an image of this height and width."""
        height, width = (self._length(axis, size[axis]) for axis in range(2))
        return height, width

    def _length(self, axis: int, length: int) -> int:
        if self.padding == "SAME":
            return -(-length // self.stride[axis])
        covered = (self.kernel[axis] - 1) * self.dilation[axis] + 1
        return (length - covered) // self.stride[axis] + 1

    def fields(self) -> dict[str, int]:
        """The fields of Conv2DOptions and DepthwiseConv2DOptions."""
        return {
            "Padding": getattr(tflite.Padding, self.padding),
            "StrideH": self.stride[0],
            "StrideW": self.stride[1],
            "DilationHFactor": self.dilation[0],
            "DilationWFactor": self.dilation[1],
            "FusedActivationFunction": activation_code(self.activation),
        }


def activation_code(activation: Activation) -> int:
    """The number of a fused activation in the schema."""
    return int(getattr(tflite.ActivationFunctionType, activation))


def _random(rng: np.random.Generator, shape: Shape, scale: float = 1.0) -> npt.NDArray[np.float32]:
    return (scale * rng.standard_normal(tuple(shape))).astype(np.float32)


def _add_conv(
    graph: Graph,
    rng: np.random.Generator,
    image: int,
    filters: int,
    window: Window,
    groups: int = 1,
    reverse_channels: bool = False,
) -> int:
    channels = graph.shape(image)[3] // groups
    scale = (channels * window.kernel[0] * window.kernel[1]) ** -0.5
    values = _random(rng, (filters, *window.kernel, channels), scale)
    weights = graph.constant("weights", np.ascontiguousarray(values[..., ::-1]) if reverse_channels else values)
    return _add_conv_node(graph, image, weights, _random(rng, (filters,), 0.1), window)


def _add_conv_node(graph: Graph, image: int, weights: int, bias: npt.NDArray[np.float32], window: Window) -> int:
    batch, height, width, _ = graph.shape(image)
    output = graph.tensor("conv", (batch, *window.output_size((height, width)), len(bias)))
    inputs = [image, weights, graph.constant("bias", bias)]
    return graph.node("CONV_2D", inputs, output, "Conv2DOptions", **window.fields())


def _add_depthwise(
    graph: Graph,
    rng: np.random.Generator,
    image: int,
    multiplier: int,
    window: Window,
    *,
    bias: bool = True,
) -> int:
    batch, height, width, channels = graph.shape(image)
    outputs = channels * multiplier
    scale = (window.kernel[0] * window.kernel[1]) ** -0.5
    inputs = [image, graph.constant("weights", _random(rng, (1, *window.kernel, outputs), scale))]
    if bias:
        inputs.append(graph.constant("bias", _random(rng, (outputs,), 0.1)))
    output = graph.tensor("depthwise", (batch, *window.output_size((height, width)), outputs))
    fields = {**window.fields(), "DepthMultiplier": multiplier}
    return graph.node("DEPTHWISE_CONV_2D", inputs, output, "DepthwiseConv2DOptions", **fields)


def _add_dense(graph: Graph, rng: np.random.Generator, features: int, outputs: int) -> int:
    count = int(np.prod(graph.shape(features)[1:]))
    weights = graph.constant("weights", _random(rng, (outputs, count), 4 * count**-0.5))
    bias = graph.constant("bias", _random(rng, (outputs,), 0.1))
    output = graph.tensor("logits", (1, outputs))
    inputs = [features, weights, bias]
    return graph.node("FULLY_CONNECTED", inputs, output, "FullyConnectedOptions")


def _add_softmax(graph: Graph, logits: int, name: str) -> int:
    output = graph.tensor(name, graph.shape(logits))
    return graph.node("SOFTMAX", [logits], output, "SoftmaxOptions", Beta=1.0)


def _add_add(graph: Graph, left: int, right: int, output: int, activation: Activation = "NONE") -> int:
    code = activation_code(activation)
    return graph.node("ADD", [left, right], output, "AddOptions", FusedActivationFunction=code)


def _add_pool(graph: Graph, image: int) -> int:
    """Average the image down to 4x4 pixels."""
    batch, height, width, channels = graph.shape(image)
    output = graph.tensor("pooled", (batch, 4, 4, channels))
    fields = {
        "Padding": tflite.Padding.VALID,
        "StrideH": height // 4,
        "StrideW": width // 4,
        "FilterHeight": height // 4,
        "FilterWidth": width // 4,
    }
    return graph.node("AVERAGE_POOL_2D", [image], output, "Pool2DOptions", **fields)


def _add_reshape(graph: Graph, tensor: int, shape: Shape) -> int:
    target = graph.constant("shape", np.array(shape, np.int32))
    output = graph.tensor("reshaped", shape)
    return graph.node("RESHAPE", [tensor, target], output, "ReshapeOptions")


def _add_cast(graph: Graph, tensor: int, output: int, from_type: str, to_type: str) -> int:
    fields = {"InDataType": TENSOR_TYPES[from_type], "OutDataType": TENSOR_TYPES[to_type]}
    return graph.node("CAST", [tensor], output, "CastOptions", **fields)


def _to_float(graph: Graph, tensor: int, dtype: str) -> int:
    if dtype == "float32":
        return tensor
    output = graph.tensor("float32 input", graph.shape(tensor))
    if dtype == "float16":
        return _add_cast(graph, tensor, output, "float16", "float32")
    return graph.node("DEQUANTIZE", [tensor], output, "DequantizeOptions")


def _from_float(graph: Graph, tensor: int, dtype: str) -> int:
    if dtype == "float32":
        return tensor
    output = graph.tensor(f"{dtype} output", graph.shape(tensor), dtype, SCORE_QUANTIZATION.get(dtype))
    if dtype == "float16":
        return _add_cast(graph, tensor, output, "float32", "float16")
    return graph.node("QUANTIZE", [tensor], output, "QuantizeOptions")


def add_chain(shape: Shape = (1, 8, 8, 3), length: int = 2, dtype: str = "float32") -> bytes:
    """``length`` ADD nodes in a row, each adding the input: output = (length + 1) * input.

    With more than one node there are tensors that stay within a delegate's partition. ``dtype``
    is "float32", "int32", or "int8" or "uint8" (quantised, for inputs from -1 to 1).
    """
    graph = Graph()
    quantization = INPUT_QUANTIZATION.get(dtype)
    first = graph.tensor("input", shape, dtype, quantization)
    total = first
    for count in range(2, length + 2):
        if quantization is None:
            sum_quantization = None
        else:
            sum_quantization = Quantization(count * quantization.scale, quantization.zero_point)
        output = graph.tensor(f"{count} times", shape, dtype, sum_quantization)
        total = _add_add(graph, total, first, output)
    return graph.to_bytes([first], [total])


def add_and_negate(pairs: int = 3, shape: Shape = (1, 8, 8, 3)) -> bytes:
    """``pairs`` times ADD of the input, then NEG: a delegate for ADD gets ``pairs`` partitions.

    The output is -2 * input if ``pairs`` is odd, else the input.
    """
    graph = Graph()
    first = graph.tensor("input", shape)
    total = first
    for _ in range(pairs):
        total = _add_add(graph, total, first, graph.tensor("sum", shape))
        total = graph.node("NEG", [total], graph.tensor("negated", shape), "NegOptions")
    return graph.to_bytes([first], [total])


def brighten(shape: Shape = (1, 4, 4, 2), steps: int = 8) -> bytes:
    """``steps`` times ``x + (x - x * x)``, the curve of nets that brighten dark pictures.

    The output is ``1 - (1 - x) ** (2 ** steps)``: inside 0..1 for an input in there, beyond float32 for -1.
    """
    graph = Graph()
    first = total = graph.tensor("input", shape)
    for _ in range(steps):
        square = graph.node("MUL", [total, total], graph.tensor("square", shape), "MulOptions")
        change = graph.node("SUB", [total, square], graph.tensor("change", shape), "SubOptions")
        total = _add_add(graph, total, change, graph.tensor("brighter", shape))
    return graph.to_bytes([first], [total])


def two_inputs(
    left_shape: Shape = (1, 8, 8, 3),
    right_shape: Shape = (1, 8, 8, 3),
    activation: Activation = "NONE",
) -> bytes:
    """One ADD of the inputs "left" and "right", whose shapes may need broadcasting."""
    graph = Graph()
    left = graph.tensor("left", left_shape)
    right = graph.tensor("right", right_shape)
    output_shape = np.broadcast_shapes(tuple(left_shape), tuple(right_shape))
    output = _add_add(graph, left, right, graph.tensor("sum", output_shape), activation)
    return graph.to_bytes([left, right], [output])


def conv(
    shape: Shape = (1, 8, 8, 3),
    filters: int = 4,
    window: Window = Window(),
    groups: int = 1,
    seed: int = 0,
) -> bytes:
    """One CONV_2D. With ``groups`` > 1 each filter sees only its group's channels.

    It always has a bias: neither runtime runs a float32 CONV_2D without one.
    """
    graph = Graph()
    image = graph.tensor("input", shape)
    rng = np.random.default_rng(seed)
    output = _add_conv(graph, rng, image, filters, window, groups)
    return graph.to_bytes([image], [output])


def conv_with_fed_filter(shape: Shape = (1, 8, 8, 3), filters: int = 4, window: Window = Window()) -> bytes:
    """One CONV_2D whose filter is not a constant but the second input, "weights"."""
    graph = Graph()
    image = graph.tensor("input", shape)
    weights = graph.tensor("weights", (filters, *window.kernel, shape[3]))
    output = _add_conv_node(graph, image, weights, np.zeros(filters, np.float32), window)
    return graph.to_bytes([image, weights], [output])


def depthwise(
    shape: Shape = (1, 8, 8, 3),
    multiplier: int = 1,
    window: Window = Window(),
    *,
    bias: bool = True,
    seed: int = 0,
) -> bytes:
    """One DEPTHWISE_CONV_2D with ``multiplier`` outputs for every input channel.

    Without ``bias`` only the reference kernels run it: the optimised kernels of both runtimes
    end the process with a segmentation fault.
    """
    graph = Graph()
    image = graph.tensor("input", shape)
    rng = np.random.default_rng(seed)
    output = _add_depthwise(graph, rng, image, multiplier, window, bias=bias)
    return graph.to_bytes([image], [output])


def classifier(
    classes: int = 12,
    size: int = 16,
    input_dtype: str = "float32",
    output_dtype: str = "float32",
    output_rank: Literal[2, 4] = 2,
    seed: int = 0,
    planes: bool = False,
    blue_first: bool = False,
) -> bytes:
    """An image classifier: [1, size, size, 3] -> [1, classes] or [1, 1, 1, classes].

    CONV_2D, DEPTHWISE_CONV_2D, ADD, AVERAGE_POOL_2D, FULLY_CONNECTED, SOFTMAX, all in float32;
    ``size`` is a multiple of 8. The best class depends on the image. Other types than float32
    are converted at the edges: "float16" by CAST, "uint8", "int8" and "int16" by DEQUANTIZE and
    QUANTIZE with :data:`INPUT_QUANTIZATION` and :data:`SCORE_QUANTIZATION`. ``planes``: the input is
    [1, 3, size, size], with a TRANSPOSE behind it; ``blue_first``: the first convolution wants BGR.
    """
    if size % 8:
        msg = f"size must be a multiple of 8, got {size}"
        raise ValueError(msg)
    graph = Graph()
    rng = np.random.default_rng(seed)
    quantization = INPUT_QUANTIZATION.get(input_dtype)
    shape = (1, size, size, 3)
    image = graph.tensor("input", (1, 3, size, size) if planes else shape, input_dtype, quantization)
    pixels = _to_float(graph, image, input_dtype)
    if planes:
        order = graph.constant("order", np.array([0, 2, 3, 1], np.int32))
        pixels = graph.node("TRANSPOSE", [pixels, order], graph.tensor("pixels", shape), "TransposeOptions")
    stem = Window(stride=(2, 2), activation="RELU_N1_TO_1")
    features = _add_conv(graph, rng, pixels, 8, stem, reverse_channels=blue_first)
    refined = _add_depthwise(graph, rng, features, 1, Window(activation="RELU6"))
    total = _add_add(graph, features, refined, graph.tensor("sum", graph.shape(features)))
    logits = _add_dense(graph, rng, _add_pool(graph, total), classes)
    if output_rank == 4:
        logits = _add_reshape(graph, logits, (1, 1, 1, classes))
    scores = _from_float(graph, _add_softmax(graph, logits, "scores"), output_dtype)
    return graph.to_bytes([image], [scores])


def vector_input(length: int = 16, classes: int = 4, seed: int = 0) -> bytes:
    """FULLY_CONNECTED and SOFTMAX on a rank 2 input: [1, length] -> [1, classes]."""
    graph = Graph()
    vector = graph.tensor("input", (1, length))
    logits = _add_dense(graph, np.random.default_rng(seed), vector, classes)
    return graph.to_bytes([vector], [_add_softmax(graph, logits, "scores")])


def two_signatures(call_second: bool = False, metadata: bytes = b"") -> bytes:
    """Graphs "double" ([4] -> [4]) and "negate" ([2, 3] -> [2, 3], both sizes free), one signature each.

    Their inputs are tensors "x" and "y", which the signatures name "doubled" and "negated". With
    ``call_second`` the first graph has a node that calls the second by its number; that model is not for running.
    """
    graph = Graph()
    first = graph.tensor("x", (4,))
    if call_second:
        graph.node("CALL_ONCE", [], [], "CallOnceOptions", InitSubgraphIndex=1)
    double = _add_add(graph, first, first, graph.tensor("double", (4,)))
    graph.next_graph([first], [double])
    second = graph.tensor("y", (2, 3), shape_signature=(-1, -1))
    graph.tensor("unused", (1,))
    negated = graph.node("NEG", [second], graph.tensor("negated", (2, 3), shape_signature=(-1, -1)), "NegOptions")
    signatures = (
        Signature("double", 0, {"doubled": first}, {"twice": double}),
        Signature("negate", 1, {"negated": second}, {"minus": negated}),
    )
    return graph.to_bytes([second], [negated], signatures, metadata)
