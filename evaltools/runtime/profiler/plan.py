"""In which order nodes run once a delegate took some of them, and which of these an operator of XNNPACK stands for.

TensorFlow Lite groups the nodes that a delegate takes into as few partitions as their order allows: in turns, all nodes
that are ready and stay, then all that are ready and go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from evaltools.model.contents import Graph, Operation

_CONVOLUTIONS: Final = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})
_DEPTHWISE: Final = frozenset({"DEPTHWISE_CONV_2D"})
_SAME_VALUES: Final = frozenset({"RESHAPE", "SQUEEZE", "EXPAND_DIMS"})
_BEFORE: Final[Mapping[str, frozenset[str]]] = {
    "Static Reshape": frozenset({"FULLY_CONNECTED"}),
    "Convert": frozenset({"FULLY_CONNECTED", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "BATCH_MATMUL"}),
}
"""Operators that XNNPACK puts in front of what such a node becomes: fewer dimensions, dynamic quantisation."""
_ACTIVATION: Final = "Clamp"
_WITH_ACTIVATION: Final = frozenset({"ADD", "SUB", "MUL", "DIV"})
"""Nodes whose own activation XNNPACK runs behind them."""
_MOST_OPERATORS: Final = 4
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "Abs": frozenset({"ABS"}),
    "Add": frozenset({"ADD"}),
    "ApproxGELU": frozenset({"GELU"}),
    "Average Pooling": frozenset({"AVERAGE_POOL_2D"}),
    "Batch Matrix Multiply": frozenset({"BATCH_MATMUL"}),
    "Ceiling": frozenset({"CEIL"}),
    "Clamp": frozenset({"RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"}),
    "Constant Pad": frozenset({"PAD", "PADV2"}),
    "Convert": frozenset({"QUANTIZE", "DEQUANTIZE", "CAST"}),
    "Convolution": _CONVOLUTIONS,
    "Copy": _SAME_VALUES | {"CONCATENATION"},
    "Cosine": frozenset({"COS"}),
    "Deconvolution": frozenset({"TRANSPOSE_CONV"}),
    "Depth To Space": frozenset({"DEPTH_TO_SPACE"}),
    "Divide": frozenset({"DIV"}),
    "Dynamic Fully Connected": frozenset({"FULLY_CONNECTED", "BATCH_MATMUL"}),
    "ELU": frozenset({"ELU"}),
    "Exp": frozenset({"EXP"}),
    "Floor": frozenset({"FLOOR"}),
    "Fully Connected": frozenset({"FULLY_CONNECTED", "CONV_2D"}),
    "GELU": frozenset({"GELU"}),
    "HardSwish": frozenset({"HARD_SWISH"}),
    "LeakyReLU": frozenset({"LEAKY_RELU"}),
    "Log": frozenset({"LOG"}),
    "Max Pooling": frozenset({"MAX_POOL_2D"}),
    "Maximum": frozenset({"MAXIMUM"}),
    "Mean": frozenset({"MEAN"}),
    "Minimum": frozenset({"MINIMUM"}),
    "Multiply": frozenset({"MUL"}),
    "Negate": frozenset({"NEG"}),
    "PReLU": frozenset({"PRELU"}),
    "Reciprocal Square Root": frozenset({"RSQRT"}),
    "Reduce Max": frozenset({"REDUCE_MAX"}),
    "Reduce Min": frozenset({"REDUCE_MIN"}),
    "Resize Bilinear": frozenset({"RESIZE_BILINEAR"}),
    "Sigmoid": frozenset({"LOGISTIC"}),
    "Sign": frozenset({"SIGN"}),
    "Sine": frozenset({"SIN"}),
    "Slice": frozenset({"SLICE", "STRIDED_SLICE"}),
    "Softmax": frozenset({"SOFTMAX"}),
    "Space To Depth": frozenset({"SPACE_TO_DEPTH"}),
    "Square": frozenset({"SQUARE"}),
    "Square Root": frozenset({"SQRT"}),
    "Squared Difference": frozenset({"SQUARED_DIFFERENCE"}),
    "Static Expand Dims": _SAME_VALUES,
    "Static Reshape": _SAME_VALUES,
    "Subtract": frozenset({"SUB"}),
    "Sum": frozenset({"SUM"}),
    "TanH": frozenset({"TANH"}),
    "Transpose": frozenset({"TRANSPOSE"}),
}
"""XNNPACK's names of operators, as far as the bracket, and the operators of a model that become one of them."""


class Step(Struct, frozen=True):
    """A node that runs on its own, or the nodes of one partition in the order of the file."""

    nodes: tuple[int, ...]
    is_partition: bool


def execution_plan(graph: Graph, taken: frozenset[int]) -> list[Step]:
    """The steps in which a graph runs when a delegate takes the nodes ``taken``.

    >>> nodes = [Operation(0, "ADD", (0,), (1,)), Operation(1, "NEG", (1,), (2,)), Operation(2, "ADD", (0,), (3,))]
    >>> execution_plan(Graph((), tuple(nodes), (0,), (2, 3)), frozenset({0, 2}))
    [Step(nodes=(0, 2), is_partition=True), Step(nodes=(1,), is_partition=False)]
    """
    missing = {tensor for node in graph.nodes for tensor in node.outputs}
    waiting = list(graph.nodes)
    steps: list[Step] = []
    while waiting:
        first = next((node for node in waiting if not missing.intersection(node.inputs)), None)
        if first is None:
            return []
        goes = first.index in taken
        group = _ready(waiting, missing, taken, goes)
        numbers = tuple(node.index for node in group)
        steps += [Step(numbers, True)] if goes else [Step((number,), False) for number in numbers]
    return steps


def _ready(waiting: list[Operation], missing: set[int], taken: frozenset[int], goes: bool) -> list[Operation]:
    """Take all nodes that can run now and go, or stay, out of those that wait."""
    group = []
    while True:
        found = False
        for node in list(waiting):
            if (node.index in taken) == goes and not missing.intersection(node.inputs):
                waiting.remove(node)
                missing.difference_update(node.outputs)
                group.append(node)
                found = True
        if not found:
            return group


def nodes_of_partition(operators: Sequence[str], nodes: Sequence[Operation]) -> list[int] | None:
    """Which node each operator of an XNNPACK partition stands for, None where that is not certain.

    It is where there is exactly one way to give each node, in order, operators that it can become: one, perhaps with a
    reshape or a conversion before it or its activation behind. XNNPACK keeps the order, but may put several nodes into
    one operator.

    >>> nodes = [Operation(3, "CONV_2D", (), ()), Operation(4, "FULLY_CONNECTED", (), ())]
    >>> nodes_of_partition(["Convolution (NHWC, QU8) IGEMM", "Static Reshape (NC)", "Fully Connected (NC, QS8)"], nodes)
    [3, 4, 4]
    >>> nodes_of_partition(["Convolution (NHWC, QU8) IGEMM"], nodes) is None
    True
    """
    ways: dict[int, tuple[int, list[int]]] = {0: (1, [])}
    for node in nodes:
        longer: dict[int, tuple[int, list[int]]] = {}
        for used, (count, path) in ways.items():
            for more in range(1, min(_MOST_OPERATORS, len(operators) - used) + 1):
                if _can_become(node.operator, operators[used : used + more]):
                    known = longer.get(used + more, (0, []))[0]
                    longer[used + more] = (known + count, path + [node.index] * more)
        ways = longer
    count, path = ways.get(len(operators), (0, []))
    return path if count == 1 else None


def _can_become(node: str, operators: Sequence[str]) -> bool:
    names = [operator.partition(" (")[0] for operator in operators]
    if len(names) > 1 and node in _WITH_ACTIVATION and names[-1] == _ACTIVATION:
        names.pop()
    while len(names) > 1 and node in _BEFORE.get(names[0], ()):
        names.pop(0)
    if len(names) != 1:
        return False
    return node in (_DEPTHWISE if "DWConv" in operators[-1] else _KINDS.get(names[0], frozenset()))
