"""What the graph tells of an operator's arithmetic: how long its sums are, how it rounds, whether it quantises."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.locate.parts.difference import HALVES
from evaltools.model.contents import Graph, GraphTensor, Operation

_Floats = npt.NDArray[np.float64]
_WEIGHTED: Final = frozenset(
    {
        "CONV_2D", "CONV_3D", "TRANSPOSE_CONV", "FULLY_CONNECTED", "LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM",
        "BIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF",
    }
)  # fmt: skip
_REDUCTIONS: Final = frozenset({"SUM", "MEAN", "AVERAGE_POOL_2D", "L2_NORMALIZATION", "CUMSUM", "REDUCE_PROD"})
_HYBRID: Final = _WEIGHTED | {"DEPTHWISE_CONV_2D", "BATCH_MATMUL"}
_PRODUCTS: Final = _HYBRID | {"MUL", "PRELU", "SQUARED_DIFFERENCE"}
_APPROXIMATED: Final = frozenset(
    {
        "LOGISTIC", "TANH", "EXP", "SOFTMAX", "LOG_SOFTMAX", "LOG", "POW", "RSQRT", "SQRT", "GELU", "ELU", "DIV",
        "L2_NORMALIZATION", "SIN", "COS", "ATAN2", "HARD_SWISH",
    }
)  # fmt: skip
"""Operators that hardware computes by tables or polynomials, so that more than rounding is no fault."""
_AVERAGES: Final = frozenset({"AVERAGE_POOL_2D", "MEAN"})
_GRAPHS_OF: Final = {"WHILE": 2, "IF": 2, "CALL": 1}
"""How many numbers of graphs these have, which are the first of their options."""
_BYTES: Final = ("int8", "uint8")
_STEPS: Final = 255
_SMALL_MULTIPLIER: Final = 1 / 8
"""Up to this one, rules for rounding differ by no more than :data:`HALVES`."""


class Arithmetic(Struct, frozen=True):
    """What matters of how an operator computes.

    ``sums``: how many numbers it adds up, ``bias``: by how many steps right kernels may differ to one side, each the
    most of what a loop or a branch runs. ``approximated``: hardware computes it by tables or polynomials. ``hybrid``:
    floats with constants in 8 bits or fewer.
    """

    approximated: bool = False
    sums: int = 1
    hybrid: bool = False
    bias: float = HALVES


def arithmetic_of(graphs: Sequence[Graph], place: int) -> Arithmetic:
    """That of an operator of the first graph, of WHILE, IF and CALL that of what they run."""
    inside = _computed_by(graphs, graphs[0].nodes[place])
    return Arithmetic(
        approximated=any(node.operator in _APPROXIMATED for _, node in inside),
        sums=max((sum_length(graph, node) for graph, node in inside), default=1),
        hybrid=any(is_hybrid(graph, node) for graph, node in inside),
        bias=max((usual_bias(graph, node) for graph, node in inside), default=HALVES),
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


def usual_bias(graph: Graph, node: Operation) -> float:
    """By how many steps right kernels of a quantised operator may differ to one side on average, as its scales tell.

    It multiplies whole numbers by what they are worth in steps of the output, alone or as products, and rounds that.
    Averages of an even number can be halves, whatever the scales are.
    """
    least = rules_differ(1 / 2) if node.operator in _AVERAGES else HALVES
    fed = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None and tensor.dtype in _BYTES]
    given = graph.tensor((*node.outputs, -1)[0])
    if given is None or not given.step or not fed:
        return least
    scales = [np.unique(tensor.scales or 1.0) for tensor in fed]
    if node.operator in _PRODUCTS:
        scales = [np.multiply.outer(scales[0], scales[-1]).ravel()]
    multipliers = np.concatenate(scales) / given.step
    return max([least, *(rules_differ(float(each)) for each in multipliers if each > _SMALL_MULTIPLIER)])


def rules_differ(multiplier: float) -> float:
    """The most by which right rules for rounding differ on average, of multiples of a number that have one sign.

    The rules are those that kernels follow: a half goes up, away from zero, or to the even number. Integer arithmetic
    has the multiplier as *q* / 2^*n* with *q* from a half to 1, and rounds twice: first what *q* gives, up, then what
    the shift by *n* gives, up or away from zero.

    >>> [round(rules_differ(multiplier), 2) for multiplier in (1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 8, 0.01)]
    [0.0, 0.5, 0.67, 0.5, 0.25, 0.01]
    """
    fraction, exponent = math.frexp(multiplier)
    numbers = np.arange(1, max(2, _STEPS / multiplier))
    largest = 0.0
    for signed in (numbers, -numbers):
        exact = multiplier * signed
        rounded = [_half_up(exact), _half_away(exact), np.rint(exact)]
        if exponent < 0:
            shifted = _half_up(fraction * signed) * 2.0**exponent
            rounded += [_half_up(shifted), _half_away(shifted)]
        means = [float(np.mean(each - exact)) for each in rounded]
        largest = max(largest, max(means) - min(means))
    return largest


def _half_up(values: _Floats) -> _Floats:
    rounded: _Floats = np.floor(values + 0.5)
    return rounded


def _half_away(values: _Floats) -> _Floats:
    rounded: _Floats = np.trunc(values + np.copysign(0.5, values))
    return rounded


def is_hybrid(graph: Graph, node: Operation) -> bool:
    """Whether an operator computes floats with constants in 8 bits or fewer."""
    if node.operator not in _HYBRID:
        return False
    tensors = [tensor for tensor in map(graph.tensor, node.inputs) if tensor is not None]
    fed_floats = any(tensor.dtype == "float32" and tensor.constant is None for tensor in tensors)
    return fed_floats and any(tensor.dtype in ("int8", "uint8", "int4") and tensor.constant for tensor in tensors)


def _size(tensors: Sequence[GraphTensor]) -> int:
    return math.prod(tensors[0].shape) if tensors else 1
