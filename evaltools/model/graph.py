"""What the nodes of a graph say about its inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from evaltools.model.flatbuffer import Table
from evaltools.model.operators import operator_name

_OPCODE_SHORT, _OPCODE_CUSTOM, _OPCODE_LONG = 0, 1, 3
_OPERATOR_OPCODE, _OPERATOR_INPUTS, _OPERATOR_OUTPUTS, _OPERATOR_OPTIONS = 0, 1, 2, 4
_TENSOR_SHAPE, _TENSOR_TYPE, _TENSOR_IS_VARIABLE = 0, 1, 5
_RESOURCE: Final = 13

_CAST, _RESHAPE, _SQUEEZE, _EXPAND_DIMS, _STRIDED_SLICE = 53, 22, 43, 70, 45
_DEQUANTIZE, _QUANTIZE = 6, 114
_GATHER, _EMBEDDING_LOOKUP = 36, 7
_SAME_VALUES: Final = frozenset({_CAST, _RESHAPE, _SQUEEZE, _EXPAND_DIMS, _STRIDED_SLICE, _DEQUANTIZE, _QUANTIZE})
DETECTION_OP: Final = "TFLite_Detection_PostProcess"


class Node(Struct, frozen=True):
    """One operator of a graph with its tensors by index; ``custom`` is empty for a builtin operator."""

    code: int
    custom: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None


class DetectionOutputs(Struct, frozen=True):
    """Which of a model's outputs hold what ``TFLite_Detection_PostProcess`` gives; positions from 0."""

    boxes: int
    classes: int
    scores: int
    count: int

    def holds(self, output: int) -> bool:
        """Whether the output at that position is one of the four."""
        return output in (self.boxes, self.classes, self.scores, self.count)


def read_nodes(model: Table, subgraph: Table) -> tuple[Node, ...]:
    """The nodes of a graph in the order of execution."""
    opcodes = [
        (max(code.integer(_OPCODE_SHORT, "b"), code.integer(_OPCODE_LONG, "i")), code.text(_OPCODE_CUSTOM))
        for code in model.tables(1)
    ]
    return tuple(
        Node(
            *opcodes[operator.integer(_OPERATOR_OPCODE, "I")],
            inputs=tuple(operator.numbers(_OPERATOR_INPUTS, "int32").tolist()),
            outputs=tuple(operator.numbers(_OPERATOR_OUTPUTS, "int32").tolist()),
            options=operator.table(_OPERATOR_OPTIONS),
        )
        for operator in subgraph.tables(3)
    )


def find_detection_outputs(nodes: Sequence[Node], outputs: Sequence[int]) -> DetectionOutputs | None:
    """The positions of the outputs of a ``TFLite_Detection_PostProcess``, in whatever order the graph has them.

    None where the graph's outputs are not those of one such operator.
    """
    for node in nodes:
        if node.custom == DETECTION_OP and len(node.outputs) == 4 and set(node.outputs) <= set(outputs):
            return DetectionOutputs(*(list(outputs).index(tensor) for tensor in node.outputs))
    return None


def keeps_state(subgraphs: Sequence[Table]) -> bool:
    """Whether a graph has variable tensors or resources, which keep values from one run to the next."""
    return any(
        tensor.integer(_TENSOR_IS_VARIABLE, "B") or tensor.integer(_TENSOR_TYPE, "b") == _RESOURCE
        for subgraph in subgraphs
        for tensor in subgraph.tables(0)
    )


def maker_of(nodes: Sequence[Node], output: int) -> str:
    """The operator that computes an output's values, which may be reshaped or quantised afterwards; empty for none."""
    producers = {tensor: node for node in nodes for tensor in node.outputs}
    seen = set()
    tensor = output
    while tensor in producers and tensor not in seen:
        seen.add(tensor)
        node = producers[tensor]
        if node.code not in _SAME_VALUES or not node.inputs:
            return operator_name(node.code, node.custom)
        tensor = node.inputs[0]
    return ""


def rows_selected(nodes: Sequence[Node], tensors: Sequence[Table], tensor: int) -> int | None:
    """Of how many rows a tensor's values select one (token ids into a table), None where they select none.

    A value of that number or more, or a negative one, makes GATHER and EMBEDDING_LOOKUP fail.
    """
    limits = []
    pending, seen = [tensor], set()
    while pending:
        current = pending.pop()
        seen.add(current)
        for node in nodes:
            if current not in node.inputs:
                continue
            rows = _rows_of_table(node, tensors, current)
            if rows:
                limits.append(rows)
            elif node.code in _SAME_VALUES and node.inputs[0] == current:
                pending.extend(output for output in node.outputs if output not in seen)
    return min(limits, default=None)


def _rows_of_table(node: Node, tensors: Sequence[Table], ids: int) -> int | None:
    if node.code == _GATHER and len(node.inputs) > 1 and node.inputs[1] == ids:
        shape = tensors[node.inputs[0]].numbers(_TENSOR_SHAPE, "int32").tolist()
        axis = node.options.integer(0, "i") if node.options else 0
        return shape[axis] if -len(shape) <= axis < len(shape) and shape[axis] > 0 else None
    if node.code == _EMBEDDING_LOOKUP and len(node.inputs) > 1 and node.inputs[0] == ids:
        shape = tensors[node.inputs[1]].numbers(_TENSOR_SHAPE, "int32").tolist()
        return shape[0] if shape and shape[0] > 0 else None
    return None
