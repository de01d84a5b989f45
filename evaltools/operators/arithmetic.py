"""What the graph says of an operator's arithmetic: how long its sums are, whether it quantises or approximates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from evaltools.model.contents import Graph, GraphTensor, Operation

_WEIGHTED: Final = frozenset(
    {
        "CONV_2D", "CONV_3D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF",
    }
)  # fmt: skip
_REDUCTIONS: Final = frozenset({"SUM", "MEAN", "AVERAGE_POOL_2D", "L2_NORMALIZATION", "CUMSUM", "REDUCE_PROD"})
_HYBRID: Final = _WEIGHTED | {"DEPTHWISE_CONV_2D", "BATCH_MATMUL"}
_APPROXIMATED: Final = frozenset(
    {
        "LOGISTIC", "TANH", "EXP", "SOFTMAX", "LOG_SOFTMAX", "LOG", "POW", "RSQRT", "SQRT", "GELU", "ELU", "DIV",
        "L2_NORMALIZATION", "SIN", "COS", "ATAN2", "HARD_SWISH",
    }
)  # fmt: skip
"""Operators that hardware computes by tables or polynomials, so that more than rounding is not a fault."""
_SUMS_OF_TWO: Final = frozenset({"ADD", "SUB"})
_MOVES: Final = frozenset(
    {
        "RESHAPE", "SQUEEZE", "EXPAND_DIMS", "TRANSPOSE", "PAD", "PADV2", "MIRROR_PAD", "SLICE", "STRIDED_SLICE",
        "SPLIT", "SPLIT_V", "PACK", "UNPACK", "GATHER", "GATHER_ND", "TILE", "MAX_POOL_2D", "REDUCE_MAX", "REDUCE_MIN",
        "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND", "RESIZE_NEAREST_NEIGHBOR",
        "REVERSE_V2",
    }
)  # fmt: skip
"""Operators that compute nothing, so that there is nothing to round."""
_MOST_BIAS: Final = 0.25
"""Steps to one side on average: kernels of the CPU make at most 0.09, of sums of many products."""
_MOST_BIAS_OF_MIDDLES: Final = 0.9
"""Where results often lie in the middle between two steps, as means of few: rules for rounding make 0.67 at most."""
_MIDDLES: Final = 8
_NEARLY: Final = 1e-4
_GRAPHS_OF: Final = {"WHILE": 2, "IF": 2, "CALL": 1}
"""How many numbers of graphs these have, which are the first of their options."""


class Arithmetic(Struct, frozen=True):
    """What matters of how an operator computes, of a loop or a branch the most of what it runs.

    ``sums``: how many numbers it adds up. ``approximated``: hardware computes it by tables or polynomials. ``hybrid``:
    floats with constants in 8 bits or fewer. ``most_bias``: by how many steps rules for rounding may move all that it
    gives to one side, on average; any number where all of it may lie in the middle between two steps, as q - 127.5.
    """

    sums: int = 1
    approximated: bool = False
    hybrid: bool = False
    most_bias: float = _MOST_BIAS


def arithmetic_of(graphs: Sequence[Graph], place: int) -> Arithmetic:
    """That of an operator of the first graph, of WHILE, IF and CALL that of what they run."""
    inside = _computed_by(graphs, graphs[0].nodes[place])
    return Arithmetic(
        sums=max((sum_length(graph, node) for graph, node in inside), default=1),
        approximated=any(node.operator in _APPROXIMATED for _, node in inside),
        hybrid=any(is_hybrid(graph, node) for graph, node in inside),
        most_bias=max((_most_bias(graph, node) for graph, node in inside), default=_MOST_BIAS),
    )


def _computed_by(graphs: Sequence[Graph], node: Operation) -> list[tuple[Graph, Operation]]:
    """The operators of the graphs that a WHILE, IF or CALL of the first graph runs; of any other operator itself."""
    found: list[tuple[Graph, Operation]] = []
    waiting, seen = [(0, node)], {0}
    while waiting:
        number, each = waiting.pop()
        fields = _GRAPHS_OF.get(each.operator, ())
        inside = {each.options.integer(field, "i") for field in range(fields)} if fields and each.options else set()
        for index in inside - seen:
            seen.add(index)
            waiting += [(index, other) for other in graphs[index].nodes]
        if not inside:
            found.append((graphs[number], each))
    return found


def _most_bias(graph: Graph, node: Operation) -> float:
    """That of :class:`Arithmetic`.

    Of sums it depends on the scales: whole multiples of an eighth of the output's step often add up to a half.
    """
    if node.operator in _MOVES:
        return _MOST_BIAS
    if node.operator not in _HYBRID | _SUMS_OF_TWO:
        return _MOST_BIAS_OF_MIDDLES
    steps = [0.0 if tensor is None else tensor.step for tensor in map(graph.tensor, node.inputs[:2])]
    given = max((tensor.step for tensor in map(graph.tensor, node.outputs) if tensor is not None), default=0.0)
    if not given:
        return math.inf
    addends = steps if node.operator in _SUMS_OF_TWO else [math.prod(steps)]
    eighths = [_MIDDLES * addend / given for addend in addends]
    return math.inf if any(each and abs(each - round(each)) < _NEARLY * each for each in eighths) else _MOST_BIAS


def sum_length(graph: Graph, node: Operation) -> int:
    """How many products or values an operator adds up for one value of its output, 1 where it adds up none.

    Of operators with weights ``[outputs, ...]`` it is the product of the other sizes, of reductions the number of
    values fed for one that is given, of BATCH_MATMUL and SOFTMAX the last size.
    """
    tensors = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None]
    given = [tensor for tensor in map(graph.tensor, node.outputs) if tensor is not None]
    weights = [tensor.shape for tensor in tensors[1:] if len(tensor.shape) > 1]
    if node.operator in _WEIGHTED:
        return max([1, *(math.prod(shape[1:]) for shape in weights)])
    if node.operator == "DEPTHWISE_CONV_2D":
        return max([1, *(math.prod(shape[:-1]) for shape in weights)])
    if node.operator in ("BATCH_MATMUL", "SOFTMAX", "LOG_SOFTMAX"):
        return max(1, tensors[0].shape[-1]) if tensors and tensors[0].shape else 1
    if node.operator in _REDUCTIONS:
        return max(1, _size(tensors[:1]) // max(1, _size(given[:1])))
    return 1


def is_hybrid(graph: Graph, node: Operation) -> bool:
    """Whether an operator computes floats with constants in 8 bits or fewer."""
    if node.operator not in _HYBRID:
        return False
    tensors = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None]
    fed_floats = any(tensor.dtype == "float32" and tensor.constant is None for tensor in tensors)
    return fed_floats and any(tensor.dtype in ("int8", "uint8", "int4") and tensor.constant for tensor in tensors)


def _size(tensors: Sequence[GraphTensor]) -> int:
    return math.prod(tensors[0].shape) if tensors else 1
