"""Writes a copy of a quantised model in which one operator computes in float32."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaltools.model.contents import Graph
from evaltools.model.cut import CONTROL_FLOW, NotCuttable, editable_model, operator_between, packed, schema_package

_FLOAT32: Final = 0
_DEQUANTIZE: Final = 6
_QUANTIZE: Final = 114
_VERSION: Final = {_DEQUANTIZE: 3, _QUANTIZE: 2}
"""Those that know int16 as well."""
CONVERSIONS: Final = frozenset({"DEQUANTIZE", "QUANTIZE"})


def is_quantized_layer(graph: Graph, place: int) -> bool:
    """Whether an operator computes with whole numbers that stand for real ones, and is more than a conversion."""
    node = graph.nodes[place]
    read = [graph.constant_behind(index) or graph.tensor(index) for index in node.inputs]
    tensors = [*read, *(graph.tensor(index) for index in node.outputs)]
    return node.operator not in CONVERSIONS and any(each is not None and each.is_quantized for each in tensors)


def with_float_layer(
    content: bytes,
    graph: Graph,
    place: int,
    constants: Mapping[int, npt.NDArray[np.generic]],
    exposed: Sequence[int] = (),
) -> bytes:
    """The model with one operator of its main graph in float32.

    ``graph`` is the main graph of ``content``, ``constants`` are real numbers by the position of the input. What else
    the operator reads in whole numbers passes a DEQUANTIZE, what it gives a QUANTIZE. ``exposed`` are tensors that are
    outputs as well. Raises :class:`~evaltools.model.cut.NotCuttable` for an operator that keeps a state or runs other
    graphs.
    """
    return _Editor(content, graph).edited(place, constants, exposed)


class _Editor:
    """One copy of a model, to which tensors and operators are added."""

    def __init__(self, content: bytes, graph: Graph) -> None:
        self._known = graph
        self._model = editable_model(content)
        self._graph = self._model.subgraphs[0]

    def edited(self, place: int, constants: Mapping[int, npt.NDArray[np.generic]], exposed: Sequence[int]) -> bytes:
        """The content of the file."""
        operator, node = copy.copy(self._graph.operators[place]), self._known.nodes[place]
        operator.inputs, operator.outputs = np.array(node.inputs, np.int32), np.array(node.outputs, np.int32)
        if node.operator in CONTROL_FLOW:
            raise NotCuttable(f"{node.operator} runs other graphs")
        if any(index >= 0 and self._graph.tensors[index].isVariable for index in node.inputs):
            raise NotCuttable(f"{node.operator} keeps a state")
        before: list[Any] = []
        after: list[Any] = []
        for position, index in enumerate(node.inputs):
            if position in constants:
                operator.inputs[position] = self._float_tensor(index, constants[position])
            elif self._is_quantized(index):
                operator.inputs[position] = self._float_tensor(index)
                before.append(self._conversion(_DEQUANTIZE, index, operator.inputs[position]))
        for position, index in enumerate(node.outputs):
            if self._is_quantized(index):
                operator.outputs[position] = self._float_tensor(index)
                after.append(self._conversion(_QUANTIZE, operator.outputs[position], index))
        operator.intermediates = None
        self._graph.operators[place : place + 1] = [*before, operator, *after]
        self._graph.outputs = np.array([*self._known.outputs, *exposed], np.int32)
        return packed(self._model)

    def _is_quantized(self, index: int) -> bool:
        tensor = self._known.tensor(index)
        return tensor is not None and tensor.is_quantized

    def _float_tensor(self, index: int, values: npt.NDArray[np.generic] | None = None) -> int:
        """The number of a new tensor in float32 that is otherwise as that one; a constant where there are values."""
        new = copy.copy(self._graph.tensors[index])
        new.name = (new.name or b"") + b"/float"
        new.type, new.quantization, new.buffer = _FLOAT32, None, 0
        if values is not None:
            buffer = schema_package().BufferT()
            buffer.data = np.frombuffer(values.astype(np.float32).tobytes(), np.uint8)
            self._model.buffers.append(buffer)
            new.buffer = len(self._model.buffers) - 1
        self._graph.tensors.append(new)
        return len(self._graph.tensors) - 1

    def _conversion(self, code: int, source: int, target: int) -> Any:
        return operator_between(self._model.operatorCodes, code, [source], target, _VERSION[code])
