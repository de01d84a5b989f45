"""What a graph says of its inputs and outputs.

Rows that ids select, the operator that computes an output, the outputs of a detector, and which values a float input is
made for, from what the graph does with it first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.model.contents import Graph, GraphTensor, Operation
from evaltools.model.metadata import ValueRange

Floats = npt.NDArray[np.float64]

DETECTION_OP: Final = "TFLite_Detection_PostProcess"
SAME_VALUES: Final = frozenset({"CAST", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "STRIDED_SLICE", "DEQUANTIZE", "QUANTIZE"})
_ARITHMETIC: Final = frozenset({"ADD", "MUL", "SUB", "DIV"})
_KEEP_RANGE: Final = frozenset(
    {"CAST", "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"}
)
_WHOLE_TYPES: Final = frozenset({"uint8", "int16", "int8", "uint16"})
_FLOAT_TYPES: Final = frozenset({"float32", "float16"})
_MOST_CHANNELS: Final = 4
_MOST_STEPS: Final = 8
_EXACT: Final = 0.03

_PIXELS: Final = ValueRange(0, 255)
_UNIT: Final = ValueRange(0, 1)
_SYMMETRIC: Final = ValueRange(-1, 1)


class DetectionOutputs(Struct, frozen=True):
    """Which of a model's outputs hold what ``TFLite_Detection_PostProcess`` gives; positions from 0."""

    boxes: int
    classes: int
    scores: int
    count: int

    def holds(self, output: int) -> bool:
        """Whether the output at that position is one of the four."""
        return output in (self.boxes, self.classes, self.scores, self.count)


def find_detection_outputs(graph: Graph) -> DetectionOutputs | None:
    """The positions of the outputs of a ``TFLite_Detection_PostProcess``, in whatever order the graph has them.

    None where the graph's outputs are not those of one such operator.
    """
    for node in graph.nodes:
        if node.operator == DETECTION_OP and len(node.outputs) == 4 and set(node.outputs) <= set(graph.outputs):
            return DetectionOutputs(*(graph.outputs.index(tensor) for tensor in node.outputs))
    return None


def maker_of(graph: Graph, output: int) -> str:
    """The operator that computes an output's values, which may be reshaped or quantised afterwards; empty for none."""
    seen = set()
    tensor = output
    while tensor in graph.makers and tensor not in seen:
        seen.add(tensor)
        node = graph.nodes[graph.makers[tensor]]
        if node.operator not in SAME_VALUES or not node.inputs:
            return node.operator
        tensor = node.inputs[0]
    return ""


def rows_selected(graph: Graph, tensor: int) -> int | None:
    """Of how many rows a tensor's values select one (token ids into a table), None where they select none.

    A value of that number or more, or a negative one, makes GATHER and EMBEDDING_LOOKUP fail.
    """
    limits = []
    pending, seen = [tensor], set()
    while pending:
        current = pending.pop()
        seen.add(current)
        for node in graph.nodes:
            if current not in node.inputs:
                continue
            rows = _rows_of_table(graph, node, current)
            if rows:
                limits.append(rows)
            elif node.operator in SAME_VALUES and node.inputs[0] == current:
                pending.extend(output for output in node.outputs if output not in seen)
    return min(limits, default=None)


def _rows_of_table(graph: Graph, node: Operation, ids: int) -> int | None:
    if node.operator == "GATHER" and len(node.inputs) > 1 and node.inputs[1] == ids:
        shape = graph.tensors[node.inputs[0]].shape
        axis = node.options.integer(0, "i") if node.options else 0
        return shape[axis] if -len(shape) <= axis < len(shape) and shape[axis] > 0 else None
    if node.operator == "EMBEDDING_LOOKUP" and len(node.inputs) > 1 and node.inputs[0] == ids:
        shape = graph.tensors[node.inputs[1]].shape
        return shape[0] if shape and shape[0] > 0 else None
    return None


def _few_floats(graph: Graph, index: int) -> Floats | None:
    """A float constant of one value or one per channel, perhaps behind a DEQUANTIZE; None for any other tensor."""
    tensor = graph.constant_behind(index)
    if tensor is None or tensor.constant is None or tensor.dtype not in _FLOAT_TYPES:
        return None
    size = np.dtype(tensor.dtype).itemsize
    if not 0 < len(tensor.constant) <= _MOST_CHANNELS * size or len(tensor.constant) % size:
        return None
    values: Floats = tensor.values(tensor.dtype).astype(np.float64)
    return values if np.isfinite(values).all() else None


def range_by_graph(graph: Graph, tensor: int) -> ValueRange | None:
    """The values that an input is made for, with the operators that show it, where its first ones do.

    A QUANTIZE takes what its type can hold. A chain of ADD, SUB, MUL and DIV by constants that makes small numbers
    around 0 of 0..255, or of 0..1, is the normalisation of pixels. Constants that overflow show nothing.
    """
    with np.errstate(all="ignore"):
        return _range_by_graph(graph, tensor)


def _range_by_graph(graph: Graph, tensor: int) -> ValueRange | None:
    factor, term = np.ones(1), np.zeros(1)
    operators: tuple[str, ...] = ()
    for node, constant in _first_nodes(graph, tensor):
        if node.operator == "QUANTIZE":
            held = _quantized_range(graph.tensors[node.outputs[0]])
            return replace(held, operators=("QUANTIZE",)) if held and not operators else None
        if constant is None or (node.operator in ("DIV", "MUL") and not constant.all()):
            return None
        operators = (*operators, node.operator)
        if node.operator in ("ADD", "SUB"):
            term = term + (constant if node.operator == "ADD" else -constant)
        else:
            scale = constant if node.operator == "MUL" else 1 / constant
            factor, term = factor * scale, term * scale
        found = _made_for(factor, term)
        if found is not None:
            return replace(found, operators=operators)
    return None


def _quantized_range(tensor: GraphTensor) -> ValueRange | None:
    """The real values that a tensor of a whole type with one scale can hold."""
    if tensor.dtype not in _WHOLE_TYPES or len(tensor.scales) != 1:
        return None
    (scale,), zero_point = tensor.scales, tensor.zero_points[0] if tensor.zero_points else 0
    return real_range(tensor.dtype, scale, zero_point) if np.isfinite(scale) and scale > 0 else None


def real_range(dtype: str, scale: float, zero_point: int) -> ValueRange:
    """What all numbers of a whole type stand for, ``real = (quantised - zero_point) * scale``.

    >>> real_range("uint8", 1 / 128, 128)
    ValueRange(low=-1.0, high=0.9921875, operators=())
    """
    limits = np.iinfo(dtype)
    return ValueRange((int(limits.min) - zero_point) * scale, (int(limits.max) - zero_point) * scale)


def _first_nodes(graph: Graph, tensor: int) -> Iterator[tuple[Operation, Any]]:
    """The arithmetic with its constant, and QUANTIZE, that an input goes through before anything else is done."""
    current = tensor
    for _ in range(_MOST_STEPS):
        readers = [node for node in graph.nodes if current in node.inputs and node.operator != "SHAPE"]
        if len(readers) != 1 or len(readers[0].outputs) != 1:
            return
        node = readers[0]
        if node.operator in _ARITHMETIC and len(node.inputs) == 2:
            first, second = node.inputs
            if first != current and node.operator not in ("ADD", "MUL"):
                return
            yield node, _few_floats(graph, second if first == current else first)
        elif node.operator == "QUANTIZE":
            yield node, None
            return
        elif node.operator not in _KEEP_RANGE or node.inputs[0] != current:
            return
        current = node.outputs[0]


def _made_for(factor: Floats, term: Floats) -> ValueRange | None:
    """The range of pixels that ``factor * input + term`` normalises: 0..255, 0..1 or -1..1; None for others."""

    def image(inputs: ValueRange) -> tuple[Floats, Floats]:
        """What the lowest and the highest input become, the smaller one first."""
        ends = factor * inputs.low + term, factor * inputs.high + term
        return np.minimum(*ends), np.maximum(*ends)

    low, high = image(_PIXELS)
    mean_taken = bool(((low > -140) & (low < -90) & (np.abs(high - low - 255) < 1)).all())
    if mean_taken or (_is_normalised(low, high) and bool((low < 0.05).all())):
        return _PIXELS
    low, high = image(_UNIT)
    if _is_normalised(low, high) and bool((low < -0.2).all()):
        return _UNIT
    low, high = image(_SYMMETRIC)
    if bool((np.abs(low) < _EXACT).all()) and any(bool((np.abs(high / top - 1) < _EXACT).all()) for top in (1, 255)):
        return _SYMMETRIC
    return None


def _is_normalised(low: Floats, high: Floats) -> bool:
    """From 0..1 to what the mean and the standard deviation of pictures make of pixels."""
    width = high - low
    inside = (low > -3.2) & (high > 0.45) & (high < 4.2) & (width > 0.9) & (width < 6)
    return bool(inside.all())
