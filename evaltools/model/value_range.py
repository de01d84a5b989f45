"""Finds out which values a float input is made for, from what the graph does with it first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.model.flatbuffer import Table
from evaltools.model.graph import Node
from evaltools.model.metadata import ValueRange

Floats = npt.NDArray[np.float64]

_ADD, _MUL, _SUB, _DIV = 0, 18, 41, 42
_ARITHMETIC: Final = {_ADD: "ADD", _MUL: "MUL", _SUB: "SUB", _DIV: "DIV"}
_QUANTIZE, _DEQUANTIZE, _SHAPE = 114, 6, 77
_CAST, _RESHAPE, _SQUEEZE, _EXPAND_DIMS, _TRANSPOSE = 53, 22, 43, 70, 39
_RESIZE_BILINEAR, _RESIZE_NEAREST_NEIGHBOR = 23, 97
_KEEP_RANGE: Final = frozenset(
    {_CAST, _RESHAPE, _SQUEEZE, _EXPAND_DIMS, _TRANSPOSE, _RESIZE_BILINEAR, _RESIZE_NEAREST_NEIGHBOR}
)
_TENSOR_TYPE, _TENSOR_BUFFER, _TENSOR_QUANTIZATION = 1, 2, 4
_WHOLE_TYPES: Final = {3: "uint8", 7: "int16", 9: "int8", 16: "uint16"}
_FLOAT_TYPES: Final = {0: "float32", 1: "float16"}
_MOST_CHANNELS: Final = 4
_MOST_STEPS: Final = 8
_EXACT: Final = 0.03

PIXELS: Final = ValueRange(0, 255)
_UNIT: Final = ValueRange(0, 1)
_SYMMETRIC: Final = ValueRange(-1, 1)


class _LinearChain(Struct, frozen=True):
    """``value = factor * input + term`` per channel: the effect of the operators named on an input."""

    factor: Floats
    term: Floats
    operators: tuple[str, ...] = ()

    def after(self, operator: str, constant: Floats) -> _LinearChain:
        operators = (*self.operators, operator)
        if operator in ("ADD", "SUB"):
            change = constant if operator == "ADD" else -constant
            return _LinearChain(self.factor, self.term + change, operators)
        scale = constant if operator == "MUL" else 1 / constant
        return _LinearChain(self.factor * scale, self.term * scale, operators)

    def image(self, inputs: ValueRange) -> tuple[Floats, Floats]:
        """What the lowest and the highest input become, the smaller one first."""
        ends = self.factor * inputs.low + self.term, self.factor * inputs.high + self.term
        return np.minimum(*ends), np.maximum(*ends)


class Constants(Struct, frozen=True):
    """The buffers of a model, and the tensors of a graph that have their values there."""

    buffers: Sequence[Table]
    tensors: Sequence[Table]
    nodes: Sequence[Node]

    def few_floats(self, index: int) -> Floats | None:
        """A float constant of one value or one per channel, perhaps behind a DEQUANTIZE; None for any other tensor."""
        makers = [node for node in self.nodes if index in node.outputs]
        if makers and makers[0].code == _DEQUANTIZE and makers[0].inputs:
            index = makers[0].inputs[0]
        if not 0 <= index < len(self.tensors):
            return None
        dtype = _FLOAT_TYPES.get(self.tensors[index].integer(_TENSOR_TYPE, "b"))
        number = self.tensors[index].integer(_TENSOR_BUFFER, "I")
        if dtype is None or not 0 < number < len(self.buffers):
            return None
        content = self.buffers[number].numbers(0, "uint8")
        if not 0 < len(content) <= _MOST_CHANNELS * np.dtype(dtype).itemsize or len(content) % np.dtype(dtype).itemsize:
            return None
        values: Floats = content.view(np.dtype(dtype).newbyteorder("<")).astype(np.float64)
        return values if np.isfinite(values).all() else None


def range_by_graph(constants: Constants, tensor: int) -> ValueRange | None:
    """The values that an input is made for, with the operators that show it, where its first ones do.

    A QUANTIZE takes what its type can hold. A chain of ADD, SUB, MUL and DIV by constants that makes small numbers
    around 0 of 0..255, or of 0..1, is the normalisation of pixels. Constants that overflow show nothing.
    """
    with np.errstate(all="ignore"):
        return _range_by_graph(constants, tensor)


def _range_by_graph(constants: Constants, tensor: int) -> ValueRange | None:
    line = _LinearChain(np.ones(1), np.zeros(1))
    for node, constant in _first_nodes(constants, tensor):
        if node.code == _QUANTIZE:
            held = quantized_range(constants.tensors[node.outputs[0]])
            return replace(held, operators=("QUANTIZE",)) if held and not line.operators else None
        if constant is None or (node.code in (_DIV, _MUL) and not constant.all()):
            return None
        line = line.after(_ARITHMETIC[node.code], constant)
        found = _made_for(line)
        if found is not None:
            return replace(found, operators=line.operators)
    return None


def quantized_range(tensor: Table) -> ValueRange | None:
    """The real values that a tensor of a whole type with one scale can hold."""
    dtype, quantization = _WHOLE_TYPES.get(tensor.integer(_TENSOR_TYPE, "b")), tensor.table(_TENSOR_QUANTIZATION)
    if dtype is None or quantization is None:
        return None
    scales = quantization.numbers(2, "float32").tolist()
    zero_points = quantization.numbers(3, "int64").tolist() or [0]
    if len(scales) != 1 or not np.isfinite(scales[0]) or scales[0] <= 0:
        return None
    return real_range(dtype, scales[0], zero_points[0])


def real_range(dtype: str, scale: float, zero_point: int) -> ValueRange:
    """What all numbers of a whole type stand for, ``real = (quantised - zero_point) * scale``.

    >>> real_range("uint8", 1 / 128, 128)
    ValueRange(low=-1.0, high=0.9921875, operators=())
    """
    limits = np.iinfo(dtype)
    return ValueRange((int(limits.min) - zero_point) * scale, (int(limits.max) - zero_point) * scale)


def _first_nodes(constants: Constants, tensor: int) -> Iterator[tuple[Node, Any]]:
    """The arithmetic with its constant, and QUANTIZE, that an input goes through before anything else is done."""
    current = tensor
    for _ in range(_MOST_STEPS):
        readers = [node for node in constants.nodes if current in node.inputs and node.code != _SHAPE]
        if len(readers) != 1 or len(readers[0].outputs) != 1:
            return
        node = readers[0]
        if node.code in _ARITHMETIC and len(node.inputs) == 2:
            first, second = node.inputs
            if first != current and node.code not in (_ADD, _MUL):
                return
            yield node, constants.few_floats(second if first == current else first)
        elif node.code == _QUANTIZE:
            yield node, None
            return
        elif node.code not in _KEEP_RANGE or node.inputs[0] != current:
            return
        current = node.outputs[0]


def _made_for(line: _LinearChain) -> ValueRange | None:
    """The range of pixels that a chain of operators normalises: 0..255, 0..1 or -1..1; None for others."""
    low, high = line.image(PIXELS)
    mean_taken = bool(((low > -140) & (low < -90) & (np.abs(high - low - 255) < 1)).all())
    if mean_taken or (_is_normalised(low, high) and bool((low < 0.05).all())):
        return PIXELS
    low, high = line.image(_UNIT)
    if _is_normalised(low, high) and bool((low < -0.2).all()):
        return _UNIT
    low, high = line.image(_SYMMETRIC)
    if bool((np.abs(low) < _EXACT).all()) and any(bool((np.abs(high / top - 1) < _EXACT).all()) for top in (1, 255)):
        return _SYMMETRIC
    return None


def _is_normalised(low: Floats, high: Floats) -> bool:
    """From 0..1 to what the mean and the standard deviation of pictures make of pixels."""
    width = high - low
    inside = (low > -3.2) & (high > 0.45) & (high < 4.2) & (width > 0.9) & (width < 6)
    return bool(inside.all())
