"""Tiny TensorFlow Lite detectors for tests, whose answers follow from the picture by hand.

The input ``[1, 8, 12, 3]`` is cut into six cells of 4x4 pixels, numbered by rows. A cell is an object where it is
brighter than the middle in red, green or blue: the brightest of these is its class 0, 1 or 2, and its score is the mean
of that channel, which is -1..1. The box of a cell is the cell. Objects stand in the order of their scores.

All models run in tflite_runtime 2.14 and in ai-edge-litert 2.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import tflite
from flatbuffers import flexbuffers

from tests.tflite_writer import TENSOR_TYPES, Graph, Quantization, Signature

HEIGHT, WIDTH, CELL = 8, 12, 4
CELLS = 6
CLASSES = 3
ROLES = ("boxes", "classes", "scores", "count")
NAMELESS = tuple(f"StatefulPartitionedCall:{number}" for number in range(4))
"""Names that tell nothing, as exports of TensorFlow 2 have them."""
TF2_ORDER = ("scores", "boxes", "count", "classes")
BOXES: npt.NDArray[np.float32] = np.array(
    [[row / 2, column / 3, (row + 1) / 2, (column + 1) / 3] for row in range(2) for column in range(3)], np.float32
)
"""Top, left, bottom, right of the cells in shares of the picture."""
SHAPES = {"boxes": (1, CELLS, 4), "classes": (1, CELLS), "scores": (1, CELLS), "count": (1,)}
_POSTPROCESS_OPTIONS = {
    "max_detections": CELLS,
    "max_classes_per_detection": 1,
    "nms_score_threshold": 0.01,
    "nms_iou_threshold": 0.5,
    "num_classes": CLASSES,
    "y_scale": 1.0,
    "x_scale": 1.0,
    "h_scale": 1.0,
    "w_scale": 1.0,
}


def postprocess_detector(order: Sequence[str] = ROLES) -> bytes:
    """One with the operator ``TFLite_Detection_PostProcess``, its four outputs in this order."""
    graph = Graph()
    image, brightness = _cells(graph)
    middles = [BOXES[:, :2] + BOXES[:, 2:], 2 * (BOXES[:, 2:] - BOXES[:, :2])]
    anchors = graph.constant("anchors", (np.concatenate(middles, axis=1) / 2).astype(np.float32))
    encodings = graph.constant("encodings", np.zeros((1, CELLS, 4), np.float32))
    outputs = {role: graph.tensor(role, SHAPES[role]) for role in ROLES}
    graph.node(
        "TFLite_Detection_PostProcess",
        [encodings, brightness, anchors],
        list(outputs.values()),
        bytes(flexbuffers.Dumps(_POSTPROCESS_OPTIONS)),
    )
    return graph.to_bytes([image], [outputs[role] for role in order])


def detector(
    order: Sequence[str] = TF2_ORDER,
    names: Sequence[str] = NAMELESS,
    first_class: int = 0,
    boxes: npt.NDArray[np.float32] = BOXES,
    fixed: Mapping[str, npt.NDArray[np.float32]] | None = None,
    signature_names: Sequence[str] = (),
    quantized: Mapping[str, Quantization] | None = None,
) -> bytes:
    """One of ordinary operators.

    The outputs stand in this ``order``, which may leave the count out, with these ``names``. Classes count from
    ``first_class``. ``boxes`` are those of the cells, ``fixed`` outputs are the same for every picture, ``quantized``
    ones have the type uint8.
    """
    graph = Graph()
    image, brightness = _cells(graph)
    outputs = _found(graph, brightness, first_class, boxes)
    for role, values in (fixed or {}).items():
        outputs[role] = graph.constant(role, values)
    for role, scale in (quantized or {}).items():
        whole = graph.tensor(role, SHAPES[role], "uint8", scale)
        outputs[role] = graph.node("QUANTIZE", [outputs[role]], whole, "QuantizeOptions")
    chosen = [
        outputs[role] if role in (quantized or {}) else _reshaped(graph, outputs[role], SHAPES[role], name)
        for role, name in zip(order, names, strict=False)
    ]
    signatures = []
    if signature_names:
        signatures = [Signature("find", 0, {"image": image}, dict(zip(signature_names, chosen, strict=True)))]
    return graph.to_bytes([image], chosen, signatures)


def _cells(graph: Graph) -> tuple[int, int]:
    """The input, and the brightness [1, cells, classes] of its cells, 0 where it is below the middle."""
    image = graph.tensor("input", (1, HEIGHT, WIDTH, 3))
    pooled = graph.node(
        "AVERAGE_POOL_2D",
        [image],
        graph.tensor("pooled", (1, HEIGHT // CELL, WIDTH // CELL, CLASSES)),
        "Pool2DOptions",
        Padding=tflite.Padding.VALID,
        StrideH=CELL,
        StrideW=CELL,
        FilterHeight=CELL,
        FilterWidth=CELL,
        FusedActivationFunction=tflite.ActivationFunctionType.RELU,
    )
    return image, _reshaped(graph, pooled, (1, CELLS, CLASSES))


def _found(graph: Graph, brightness: int, first_class: int, boxes: npt.NDArray[np.float32]) -> dict[str, int]:
    """The four outputs, sorted by score."""
    axis = graph.constant("last axis", np.array([2], np.int32))
    best = graph.node("REDUCE_MAX", [brightness, axis], graph.tensor("best", (1, CELLS)), "ReducerOptions")
    highest = graph.node(
        "ARG_MAX",
        [brightness, axis],
        graph.tensor("highest", (1, CELLS), "int32"),
        "ArgMaxOptions",
        OutputType=TENSOR_TYPES["int32"],
    )
    numbers = _as_float(graph, highest, "int32")
    first = graph.constant("first class", np.array([first_class], np.float32))
    classes = graph.node("ADD", [numbers, first], graph.tensor("classes", (1, CELLS)), "AddOptions")
    how_many = graph.constant("how many", np.array(CELLS, np.int32))
    scores, places = graph.tensor("sorted", (1, CELLS)), graph.tensor("places", (1, CELLS), "int32")
    graph.node("TOPK_V2", [best, how_many], [scores, places], "TopKV2Options")
    zero = graph.constant("zero", np.array([0], np.float32))
    seen = graph.node("GREATER", [scores, zero], graph.tensor("seen", (1, CELLS), "bool"), "GreaterOptions")
    ones = _as_float(graph, seen, "bool")
    along = graph.constant("along", np.array([1], np.int32))
    return {
        "scores": scores,
        "classes": _gathered(graph, _reshaped(graph, classes, (CELLS,)), places, (1, CELLS)),
        "boxes": _gathered(graph, graph.constant("cells", boxes), places, (1, CELLS, 4)),
        "count": graph.node("SUM", [ones, along], graph.tensor("total", (1,)), "ReducerOptions"),
    }


def _reshaped(graph: Graph, tensor: int, shape: Sequence[int], name: str = "reshaped") -> int:
    target = graph.constant("shape", np.array(shape, np.int32))
    return graph.node("RESHAPE", [tensor, target], graph.tensor(name, shape), "ReshapeOptions")


def _as_float(graph: Graph, tensor: int, dtype: str) -> int:
    types = {"InDataType": TENSOR_TYPES[dtype], "OutDataType": TENSOR_TYPES["float32"]}
    return graph.node("CAST", [tensor], graph.tensor("float", graph.shape(tensor)), "CastOptions", **types)


def _gathered(graph: Graph, table: int, places: int, shape: Sequence[int]) -> int:
    return graph.node("GATHER", [table, places], graph.tensor("gathered", shape), "GatherOptions")
