"""Models to look for the operator at fault in; each tensor has a name of its own, so that a fault can be put anywhere.

Functions return the content of a .tflite file; the same arguments give the same bytes. What the net computes is worked
out in NumPy from its weights, in float64.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import tflite
from msgspec import Struct, field

from evaltools.model.cut import schema_package
from tests.tflite_writer import Graph, Quantization, Shape

Array = npt.NDArray[Any]
Padding = Literal["SAME", "VALID"]

NET_SHAPE = (1, 16, 16, 3)
NET_CHANNELS, NET_CLASSES = 8, 10
NET_OPERATORS = (
    "CONV_2D", "DEPTHWISE_CONV_2D", "CONV_2D", "ADD", "AVERAGE_POOL_2D", "RESHAPE", "FULLY_CONNECTED", "SOFTMAX",
)  # fmt: skip
NET_TENSORS = ("stem", "spread", "project", "total", "pooled", "flat", "logits", "scores")
"""The output of each of :data:`NET_OPERATORS`."""
SCORES = Quantization(1 / 256, -128)

_RELU6 = tflite.ActivationFunctionType.RELU6


# ---- Two that are known ---------------------------------------------------------------------


def add_that_is_also_an_output(shape: Shape = (1, 8, 8, 4)) -> bytes:
    """ADD of "a" and "b", which is an output and summed up for another one: google-ai-edge/LiteRT#8599.

    The GPU leaves one of the operands in the first output ("total"); the second ("everything") is right.
    """
    graph = Graph()
    left, right = graph.tensor("a", shape), graph.tensor("b", shape)
    total = graph.node("ADD", [left, right], graph.tensor("total", shape), "AddOptions")
    axes = tuple(range(1, len(shape)))
    everything = _add_sum(graph, total, axes, "everything")
    return graph.to_bytes([left, right], [total, everything])


def sum_beyond_fp16(size: int = 112) -> bytes:
    """SUM over a picture of one channel: with numbers from 0 to 20 beyond 65504, google-ai-edge/LiteRT#9249."""
    graph = Graph()
    image = graph.tensor("image", (1, size, size, 1))
    return graph.to_bytes([image], [_add_sum(graph, image, (1, 2), "sum")])


# ---- A net, in float32 and in int8 ----------------------------------------------------------


@cache
def net_weights(seed: int = 0) -> dict[str, Array]:
    """Weights and biases of the net by name, float32; not to be changed."""
    random = np.random.default_rng(seed)
    shapes = {
        "stem": (NET_CHANNELS, 3, 3, NET_SHAPE[3]),
        "spread": (1, 3, 3, NET_CHANNELS),
        "project": (NET_CHANNELS, 1, 1, NET_CHANNELS),
        "logits": (NET_CLASSES, NET_CHANNELS),
    }
    found = {}
    for name, shape in shapes.items():
        inputs = np.prod(shape) / (NET_CHANNELS if name != "logits" else NET_CLASSES)
        found[f"{name} weights"] = (2 * random.standard_normal(shape) / np.sqrt(inputs)).astype(np.float32)
        found[f"{name} bias"] = random.uniform(-0.2, 0.2, NET_CLASSES if name == "logits" else NET_CHANNELS)
    return {name: values.astype(np.float32) for name, values in found.items()}


def net_tensors(image: Array, weights: dict[str, Array]) -> dict[str, Array]:
    """The output of each operator of the net by name, worked out in NumPy."""
    stem = np.clip(_conv(image, weights["stem weights"], weights["stem bias"], 2), 0, 6)
    spread = np.einsum("bhwcij,ijc->bhwc", _windows(stem, 3, 1), weights["spread weights"][0].astype(float))
    spread = np.clip(spread + weights["spread bias"], 0, 6)
    project = _conv(spread, weights["project weights"], weights["project bias"], 1)
    total = stem + project
    pooled = total.mean((1, 2), keepdims=True)
    flat = pooled.reshape(1, NET_CHANNELS)
    logits = flat @ weights["logits weights"].astype(float).T + weights["logits bias"]
    powers = np.exp(logits - logits.max())
    found = (stem, spread, project, total, pooled, flat, logits, powers / powers.sum())
    return dict(zip(NET_TENSORS, found, strict=True))


def _conv(image: Array, weights: Array, bias: Array, stride: int) -> Array:
    """CONV_2D with SAME padding: weights are [filters, size, size, channels]."""
    seen = _windows(image, weights.shape[1], stride)
    result: Array = np.einsum("bhwcij,fijc->bhwf", seen, weights.astype(float)) + bias
    return result


def _windows(image: Array, size: int, stride: int) -> Array:
    """The squares of ``size`` that a kernel sees: [batch, rows, columns, channels, size, size]."""
    edges = []
    for length in image.shape[1:3]:
        total = max(0, (-(-length // stride) - 1) * stride + size - length)
        edges.append((total // 2, total - total // 2))  # as many zeros as the last window needs, the odd one behind
    padded = np.pad(image.astype(float), [(0, 0), *edges, (0, 0)])
    rows = np.lib.stride_tricks.sliding_window_view(padded, size, 1)[:, ::stride]
    seen: Array = np.lib.stride_tricks.sliding_window_view(rows, size, 2)[:, :, ::stride]
    return seen


def net(seed: int = 0, ends_in: str = "scores") -> bytes:
    """Eight operators, :data:`NET_OPERATORS`: [1, 16, 16, 3] -> [1, 10], one branch around two of them; float32."""
    return _write_net(_Types(), seed, ends_in)


def quantized_net(
    seed: int = 0, coarse: str = "", times: int = 8, by_channel: bool = False, ends_in: str = "scores"
) -> bytes:
    """The same in int8, for pictures from -1 to 1.

    There is one scale for each tensor, with ``by_channel`` one for each filter. The weights of the layer ``coarse``
    have so many ``times`` the scale; eight times cost them 3 bits. The output is the tensor ``ends_in``: "logits",
    "scores" or "best", their largest one's number.
    """
    types = _Int8("int8", net_quantization(seed), coarse={coarse: times}, by_channel=by_channel)
    return _write_net(types, seed, ends_in)


@cache
def net_quantization(seed: int = 0) -> dict[str, Quantization]:
    """The scale of each tensor of the quantised net, from its range on pictures of noise."""
    random = np.random.default_rng(seed + 1)
    images = [random.uniform(-1, 1, NET_SHAPE) for _ in range(8)]
    seen = [net_tensors(image, net_weights(seed)) for image in images]
    found = {"image": Quantization(1 / 127, 0), "scores": SCORES}
    for name in ("stem", "spread", "project", "total", "logits"):
        values = np.array([each[name] for each in seen])
        found[name] = asymmetric(float(min(values.min(), 0)), float(max(values.max(), 0)))
    return found | {"pooled": found["total"], "flat": found["total"]}


def asymmetric(low: float, high: float) -> Quantization:
    """Int8 from ``low`` to ``high``, with 0 as a whole number."""
    scale = float(np.float32((high - low) / 255))
    return Quantization(scale, int(np.clip(np.rint(-128 - low / scale), -128, 127)))


class _Types(Struct):
    """How the net's tensors and constants are stored: as they are."""

    dtype: str = "float32"
    quantization: dict[str, Quantization] = field(default_factory=dict)

    def tensor(self, graph: Graph, name: str, shape: Shape) -> int:
        """A tensor that is computed or fed."""
        return graph.tensor(name, shape, self.dtype, self.quantization.get(name))

    def constants(self, graph: Graph, name: str, source: str, weights: dict[str, Array]) -> list[int]:
        """Weights and bias of the operator with the output ``name`` and the input ``source``."""
        del source
        return [graph.constant(f"{name} {kind}", weights[f"{name} {kind}"]) for kind in ("weights", "bias")]


class _Int8(_Types):
    """Int8; a bias has the scale of the products that it is added to."""

    coarse: dict[str, int] = field(default_factory=dict)
    by_channel: bool = False

    def constants(self, graph: Graph, name: str, source: str, weights: dict[str, Array]) -> list[int]:
        """Whole numbers next to the float ones."""
        numbers = weights[f"{name} weights"]
        axis = numbers.ndim - 1 if len(numbers) == 1 else 0
        others = tuple(each for each in range(numbers.ndim) if each != axis) if self.by_channel else None
        largest = np.abs(numbers).max(others, keepdims=True)
        scales = (largest / 127 * self.coarse.get(name, 1)).astype(np.float32)
        products = (scales * np.float32(self.quantization[source].scale)).astype(np.float32)
        stored = np.rint(numbers / scales).astype(np.int8)
        bias = np.rint(weights[f"{name} bias"] / products.ravel()).astype(np.int32)
        return [
            graph.constant(f"{name} weights", stored, _by_channel(scales, axis)),
            graph.constant(f"{name} bias", bias, _by_channel(products, 0)),
        ]


def _by_channel(scales: Array, axis: int) -> Quantization:
    if scales.size == 1:
        return Quantization(float(scales.item()), 0)
    return Quantization(0.0, 0, tuple(map(float, scales.ravel())), axis)


def _write_net(types: _Types, seed: int, ends_in: str) -> bytes:
    graph, weights = Graph(), net_weights(seed)
    middle = (1, 8, 8, NET_CHANNELS)
    image = types.tensor(graph, "image", NET_SHAPE)
    stem, spread, project, total = (types.tensor(graph, name, middle) for name in NET_TENSORS[:4])
    pooled = types.tensor(graph, "pooled", (1, 1, 1, NET_CHANNELS))
    flat = types.tensor(graph, "flat", (1, NET_CHANNELS))
    logits, scores = (types.tensor(graph, name, (1, NET_CLASSES)) for name in NET_TENSORS[6:])
    _add_conv(graph, [image, *types.constants(graph, "stem", "image", weights)], stem, 2, activation=_RELU6)
    graph.node(
        "DEPTHWISE_CONV_2D", [stem, *types.constants(graph, "spread", "stem", weights)], spread,
        "DepthwiseConv2DOptions", **_conv_fields(1, "SAME", _RELU6), DepthMultiplier=1,
    )  # fmt: skip
    _add_conv(graph, [spread, *types.constants(graph, "project", "spread", weights)], project)
    graph.node("ADD", [stem, project], total, "AddOptions")
    fields = {"StrideH": 8, "StrideW": 8, "FilterHeight": 8, "FilterWidth": 8, "Padding": tflite.Padding.VALID}
    graph.node("AVERAGE_POOL_2D", [total], pooled, "Pool2DOptions", **fields)
    shape = graph.constant("flat shape", np.array([1, NET_CHANNELS], np.int32))
    graph.node("RESHAPE", [pooled, shape], flat, "ReshapeOptions")
    dense = [flat, *types.constants(graph, "logits", "flat", weights)]
    graph.node("FULLY_CONNECTED", dense, logits, "FullyConnectedOptions")
    if ends_in == "logits":
        return graph.to_bytes([image], [logits])
    graph.node("SOFTMAX", [logits], scores, "SoftmaxOptions", Beta=1.0)
    if ends_in == "scores":
        return graph.to_bytes([image], [scores])
    best = graph.tensor("best", (1,), "int32")
    axis = graph.constant("axis", np.array(1, np.int32))
    kind = schema_package().TensorType.INT32
    graph.node("ARG_MAX", [scores, axis], best, "ArgMaxOptions", OutputType=kind)
    return graph.to_bytes([image], [best])


# ---- Kinds of operators ---------------------------------------------------------------------


@cache
def svdf_weights() -> tuple[Array, Array, Array]:
    """Of 5 filters over 6 numbers with 4 results kept: feature [5, 6], time [5, 4] and bias [5]; not to be changed."""
    random = np.random.default_rng(5)
    feature, time, bias = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((5, 6), (5, 4), (5,)))
    return feature, time, bias


def svdf() -> bytes:
    """SVDF, whose state is a variable tensor: what it gives depends on the inferences before."""
    graph = Graph()
    feature, time, bias = svdf_weights()
    frame = graph.tensor("frame", (1, feature.shape[1]))
    state = graph.tensor("state", (1, time.size), variable=True)
    constants = [
        graph.constant(name, values) for name, values in zip(("feature", "time", "bias"), svdf_weights(), strict=True)
    ]
    filtered = graph.tensor("filtered", (1, len(bias)))
    graph.node("SVDF", [frame, *constants, state], filtered, "SVDFOptions", Rank=1)
    negated = graph.node("NEG", [filtered], graph.tensor("negated", (1, len(bias))), "NegOptions")
    return graph.to_bytes([frame], [negated])


@cache
def conv_weights(filters: int = 4, channels: int = 3) -> tuple[Array, Array]:
    """Weights [4, 3, 3, 3] and bias of a convolution, numbers that fp16 holds; not to be changed."""
    random = np.random.default_rng(6)
    weights = random.uniform(-0.5, 0.5, (filters, 3, 3, channels)).astype(np.float16)
    return weights, random.uniform(-0.5, 0.5, filters).astype(np.float16)


def fp16_constants(shape: Shape = (1, 8, 8, 3)) -> bytes:
    """CONV_2D whose weights and bias are stored in fp16, each with its own DEQUANTIZE, as converters write them."""
    graph = Graph()
    image = graph.tensor("image", shape)
    stored = [
        graph.constant(f"{name} in fp16", values)
        for name, values in zip(("weights", "bias"), conv_weights(), strict=True)
    ]
    floats = [
        graph.node("DEQUANTIZE", [index], graph.tensor(name, graph.shape(index)), "DequantizeOptions")
        for name, index in zip(("weights", "bias"), stored, strict=True)
    ]
    output = graph.tensor("conv", (*shape[:3], len(conv_weights()[0])))
    return graph.to_bytes([image], [_add_conv(graph, [image, *floats], output)])


def resize(shape: Shape = (1, 4, 5, 2), height: int = 7, width: int = 10) -> bytes:
    """RESIZE_BILINEAR with half_pixel_centers, which delegates without that option move by half a pixel."""
    graph = Graph()
    image = graph.tensor("image", shape)
    size = graph.constant("size", np.array([height, width], np.int32))
    output = graph.tensor("resized", (shape[0], height, width, shape[3]))
    graph.node("RESIZE_BILINEAR", [image, size], output, "ResizeBilinearOptions", HalfPixelCenters=True)
    return graph.to_bytes([image], [output])


def broadcast_add(shape: Shape = (1, 4, 4, 3), second: Shape = (1, 1, 1, 3)) -> bytes:
    """ADD of two inputs, "image" and "colour", the second of which stands for every pixel."""
    graph = Graph()
    image, colour = graph.tensor("image", shape), graph.tensor("colour", second)
    total = graph.node("ADD", [image, colour], graph.tensor("total", shape), "AddOptions")
    return graph.to_bytes([image, colour], [total])


def pad_and_conv(shape: Shape = (1, 8, 8, 3), before: int = 1, after: int = 1) -> bytes:
    """An explicit PAD and a CONV_2D with stride 2 and no padding of its own, as PyTorch's convolutions become."""
    graph = Graph()
    image = graph.tensor("image", shape)
    edges = graph.constant("edges", np.array([[0, 0], [before, after], [before, after], [0, 0]], np.int32))
    height, width = (length + before + after for length in shape[1:3])
    padded = graph.node(
        "PAD", [image, edges], graph.tensor("padded", (shape[0], height, width, shape[3])), "PadOptions"
    )
    output = graph.tensor("conv", (shape[0], (height - 1) // 2, (width - 1) // 2, len(conv_weights()[0])))
    _add_conv(graph, [padded, *_conv_constants(graph)], output, 2, "VALID")
    return graph.to_bytes([image], [output])


def same_conv(shape: Shape = (1, 8, 8, 3)) -> bytes:
    """CONV_2D with stride 2 and SAME padding: of an even picture the zeros stand behind it alone."""
    graph = Graph()
    image = graph.tensor("image", shape)
    output = graph.tensor("conv", (shape[0], -(-shape[1] // 2), -(-shape[2] // 2), len(conv_weights()[0])))
    _add_conv(graph, [image, *_conv_constants(graph)], output, 2)
    return graph.to_bytes([image], [output])


def hybrid(steps: int = 0, size: int = 32) -> bytes:
    """FULLY_CONNECTED of floats with 8-bit weights and TANH, once, or in a WHILE that runs them so many times."""
    graph = Graph()
    if not steps:
        state = graph.tensor("state", (1, size))
        return graph.to_bytes([state], [_add_hybrid(graph, state, size)])
    state = graph.tensor("state", (1, size))
    start = graph.constant("start", np.zeros((), np.float32))
    made = [graph.tensor("steps", ()), graph.tensor("turned", (1, size))]
    graph.node("WHILE", [start, state], made, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=2)
    two = graph.constant("two", np.full(1, 2, np.float32))
    doubled = graph.node("MUL", [made[1], two], graph.tensor("doubled", (1, size)), "MulOptions")
    graph.next_graph([state], [doubled])
    count, state = graph.tensor("count", ()), graph.tensor("state", (1, size))
    limit = graph.constant("limit", np.array(steps, np.float32))
    graph.next_graph(
        [count, state], [graph.node("LESS", [count, limit], graph.tensor("less", (), "bool"), "LessOptions")]
    )
    count, state = graph.tensor("count", ()), graph.tensor("state", (1, size))
    one = graph.constant("one", np.ones((), np.float32))
    more = graph.node("ADD", [count, one], graph.tensor("more", ()), "AddOptions")
    return graph.to_bytes([count, state], [more, _add_hybrid(graph, state, size)])


def _add_hybrid(graph: Graph, state: int, size: int) -> int:
    weights = np.random.default_rng(8).integers(-127, 128, (size, size)).astype(np.int8)
    stored = graph.constant("weights in 8 bits", weights, Quantization(0.002, 0))
    bias = graph.constant("bias", np.full(size, 0.1, np.float32))
    dense = graph.node(
        "FULLY_CONNECTED", [state, stored, bias], graph.tensor("dense", (1, size)), "FullyConnectedOptions"
    )
    return graph.node("TANH", [dense], graph.tensor("given", (1, size)))


def of_seven_dimensions() -> bytes:
    """RESHAPE, and a FULLY_CONNECTED of seven dimensions, which XNNPACK accepts and then refuses."""
    graph, shape = Graph(), (1, 1, 1, 1, 1, 1, 6)
    fed = graph.tensor("fed", (1, 1, 1, 6))
    wanted = graph.constant("shape", np.array(shape, np.int32))
    many = graph.node("RESHAPE", [fed, wanted], graph.tensor("many", shape), "ReshapeOptions")
    weights = graph.constant("weights", np.ones((1, 6), np.float32))
    given = graph.tensor("given", (*shape[:-1], 1))
    node = graph.node("FULLY_CONNECTED", [many, weights, -1], given, "FullyConnectedOptions", KeepNumDims=True)
    return graph.to_bytes([fed], [node])


def reused_buffer() -> bytes:
    """Views of one buffer, of which the builtin kernels reuse that of "total" for "negated" while it is still read."""
    graph = Graph()
    fed = graph.tensor("fed", (4, 6))
    made = graph.node("MUL", [fed, fed], graph.tensor("squared", (4, 6)), "MulOptions")
    views = []
    for name, shape in (("flat", (24,)), ("wide", (2, 12)), ("turned", (6, 4))):
        wanted = graph.constant(f"{name} shape", np.array(shape, np.int32))
        made = graph.node("RESHAPE", [made, wanted], graph.tensor(name, shape), "ReshapeOptions")
        views.append(made)
    one = graph.constant("one", np.ones(1, np.float32))
    total = graph.node("ADD", [views[2], one], graph.tensor("total", (6, 4)), "AddOptions")
    negated = graph.node("NEG", [views[1]], graph.tensor("negated", (2, 12)), "NegOptions")
    cosine = graph.node("COS", [total], graph.tensor("cosine", (6, 4)))
    return graph.to_bytes([fed], [cosine, negated])


def halves() -> bytes:
    """SUB of int8 whose operands have other scales: a number less 127.5, which is a half everywhere."""
    graph = Graph()
    fed = graph.tensor("fed", (1, 16, 16, 3), "int8", Quantization(1.0, -128))
    middle = graph.constant("middle", np.full((1,), 127, np.int8), Quantization(0.5, -128))
    given = graph.tensor("given", (1, 16, 16, 3), "int8", Quantization(1.0, 0))
    return graph.to_bytes([fed], [graph.node("SUB", [fed, middle], given, "SubOptions")])


def divided(hidden: bool) -> bytes:
    """1 / RELU(x), which divides by 0; ``hidden``: 1 / (1 + that), to which that makes no difference."""
    graph, shape = Graph(), (1, 16)
    fed = graph.tensor("fed", shape)
    ones = graph.constant("ones", np.ones(shape, np.float32))
    positive = graph.node("RELU", [fed], graph.tensor("positive", shape))
    quotient = graph.node("DIV", [ones, positive], graph.tensor("quotient", shape), "DivOptions")
    if not hidden:
        return graph.to_bytes([fed], [quotient])
    more = graph.node("ADD", [quotient, ones], graph.tensor("more", shape), "AddOptions")
    return graph.to_bytes([fed], [graph.node("DIV", [ones, more], graph.tensor("share", shape), "DivOptions")])


def int16_tanh() -> bytes:
    """TANH of int16 with a scale that is not a power of two, for which no kernel is."""
    graph = Graph()
    fed = graph.tensor("fed", (1, 4), "int16", Quantization(0.001, 0))
    given = graph.tensor("given", (1, 4), "int16", Quantization(0.0001, 0))
    return graph.to_bytes([fed], [graph.node("TANH", [fed], given)])


def on_a_constant(operator: str = "NEG", shape: Shape = (1, 16)) -> bytes:
    """ADD of "fed" and "row", which an operator makes of a constant."""
    graph = Graph()
    fed = graph.tensor("fed", shape)
    stored = graph.constant("stored", np.linspace(1, 3, shape[-1], dtype=np.float32).reshape(shape))
    row = graph.node(operator, [stored], graph.tensor("row", shape))
    return graph.to_bytes([fed], [graph.node("ADD", [fed, row], graph.tensor("total", shape), "AddOptions")])


def where_set() -> bytes:
    """WHERE, whose output is as long as there are such values: no delegate takes it."""
    graph = Graph()
    fed = graph.tensor("fed", (8,), "bool")
    return graph.to_bytes([fed], [graph.node("WHERE", [fed], graph.tensor("given", (8, 1), "int64"))])


def all_models() -> dict[str, bytes]:
    """Each of these by name."""
    return {
        "add that is also an output": add_that_is_also_an_output(),
        "sum beyond fp16": sum_beyond_fp16(),
        "net": net(),
        "quantized net": quantized_net(),
        "svdf": svdf(),
        "fp16 constants": fp16_constants(),
        "resize": resize(),
        "broadcast add": broadcast_add(),
        "pad and conv": pad_and_conv(),
        "same conv": same_conv(),
        "on a constant": on_a_constant(),
    }


# ---- Nodes ----------------------------------------------------------------------------------


def _add_sum(graph: Graph, tensor: int, axes: Shape, name: str) -> int:
    shape = [1 if axis in axes else length for axis, length in enumerate(graph.shape(tensor))]
    which = graph.constant("axes", np.array(axes, np.int32))
    return graph.node("SUM", [tensor, which], graph.tensor(name, shape), "ReducerOptions", KeepDims=True)


def _conv_constants(graph: Graph) -> list[int]:
    weights, bias = (values.astype(np.float32) for values in conv_weights())
    return [graph.constant("weights", weights), graph.constant("bias", bias)]


def _add_conv(
    graph: Graph, inputs: list[int], output: int, stride: int = 1, padding: Padding = "SAME", activation: int = 0
) -> int:
    return graph.node("CONV_2D", inputs, output, "Conv2DOptions", **_conv_fields(stride, padding, activation))


def _conv_fields(stride: int, padding: Padding, activation: int) -> dict[str, int]:
    return {
        "Padding": getattr(tflite.Padding, padding),
        "StrideH": stride,
        "StrideW": stride,
        "FusedActivationFunction": activation,
    }
