"""The events of LiteRT's profiler as times of operators.

What a run of ai-edge-litert 2.3.0 leaves, seen with real models:

* ``OPERATOR_INVOKE`` (2), with the node's index and its graph, for each node that runs by itself. A WHILE or an IF
  encloses the events of the graphs that it calls.
* ``DELEGATE_PROFILED_OPERATOR_INVOKE`` (8) for each operator inside XNNPACK, with numbers that begin with 0 in each
  partition. The partition itself leaves no event, so that nothing encloses these. Their times are cut off to whole
  microseconds, which costs half of one each on average.
* ``DEFAULT`` (1): ``Invoke`` for each run of a graph, ``AllocateTensors`` for each preparation of a called one, and
  LiteRT's own handling of buffers. The profiler asks for the memory in use around each of them, which takes some 10 us.
* ``invoke`` of kind 16, around the run, and ``Invoke`` of kind 32, whose time is a code and no time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics.op_profile import CalledGraph, OpTimes
from evaltools.model.contents import Graph, Operation
from evaltools.runtime.profiler.profiled_model import Event

_DEFAULT: Final = 1
_OPERATOR: Final = 2
_DELEGATE_OPERATOR: Final = 8
_RUN, _PREPARATION = "Invoke", "AllocateTensors"
_SLACK_US: Final = 20
_Calls: TypeAlias = list[list[int]]
"""The times of one operator's calls, by run."""
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


class StrangeEvents(Exception):
    """The events cannot be those of this model."""


class _Key(Struct, frozen=True):
    """What distinguishes operators: of XNNPACK's in the main graph, also which partition they are in."""

    graph: int
    kind: int
    tag: str
    number: int
    partition: int = 0


class Operators(Struct, frozen=True):
    """The operators of the main graph, those of the graphs it calls, and the main graph's own time in each run."""

    ops: list[OpTimes]
    called: list[CalledGraph]
    invoke_us: list[int]


def operators_in(runs: Iterable[Sequence[Event]], graphs: Sequence[Graph], main: int) -> Operators:
    """Sum up the events of runs with the same inputs; ``graphs`` are the file's, ``main`` the one that was run.

    The runs are gone through once, and their events are not kept.

    Raises :class:`StrangeEvents` where a run is not there once, an operator is of no node or of no graph, times do not
    fit into that of the run, or the runs do not have the same operators.
    """
    by_key: dict[_Key, dict[int, list[int]]] = {}
    invoke_us: list[int] = []
    for number, events in enumerate(runs):
        _require_known(events, graphs)
        whole = _main_run(events, main)
        spent = 0
        for key, event in _keyed(events, main):
            by_key.setdefault(key, {}).setdefault(number, []).append(event.elapsed_us)
            spent += event.elapsed_us if key.graph == main else 0
        if spent > whole + _SLACK_US:
            raise StrangeEvents(f"the operators of a run took {spent} us together, and the run only {whole}")
        invoke_us.append(whole)
    calls = {key: [times.get(number, []) for number in range(len(invoke_us))] for key, times in by_key.items()}
    _require_every_run(calls, main)
    found = {key: _op_times(key, by_run, graphs[key.graph]) for key, by_run in calls.items()}
    main_keys = [key for key in found if key.graph == main]
    nodes = _nodes_of(main_keys, graphs[main])
    called = sorted({key.graph for key in found} - {main})
    return Operators(
        [replace(found[key], node=nodes.get(key, found[key].node)) for key in main_keys],
        [
            CalledGraph(graph, graphs[graph].name, [op for key, op in found.items() if key.graph == graph])
            for graph in called
        ],
        invoke_us,
    )


def _require_known(events: Sequence[Event], graphs: Sequence[Graph]) -> None:
    for event in events:
        if event.kind not in (_OPERATOR, _DELEGATE_OPERATOR):
            continue
        if not 0 <= event.graph < len(graphs):
            raise StrangeEvents(f"an operator {event.tag!r} is said to be of graph {event.graph}, which there is not")
        if event.kind == _OPERATOR and not 0 <= event.node < len(graphs[event.graph].nodes):
            raise StrangeEvents(f"an operator {event.tag!r} is said to be node {event.node}, which there is not")


def _main_run(events: Sequence[Event], main: int) -> int:
    """How long the main graph ran. It begins before its operators, so that a full buffer loses it first."""
    found = [event.elapsed_us for event in events if (event.kind, event.tag, event.graph) == (_DEFAULT, _RUN, main)]
    if len(found) != 1:
        raise StrangeEvents(f"a run of the graph is there {len(found)} times among {len(events)} events, not once")
    return found[0]


def _keyed(events: Sequence[Event], main: int) -> Iterator[tuple[_Key, Event]]:
    """The operators of a run; a partition of XNNPACK ends where its numbers do not go on."""
    partition, last = 0, -1
    for event in events:
        if event.kind == _OPERATOR:
            yield _Key(event.graph, event.kind, event.tag, event.node), event
            if event.graph == main and last >= 0:
                partition += 1
                last = -1
        elif event.kind == _DELEGATE_OPERATOR and event.graph == main:
            if event.node <= last:
                partition += 1
            last = event.node
            yield _Key(main, event.kind, event.tag, event.node, partition), event
        elif event.kind == _DELEGATE_OPERATOR or _prepares_called(event, main):
            yield _Key(event.graph, event.kind, event.tag, event.node), event


def _prepares_called(event: Event, main: int) -> bool:
    """Whether a called graph was prepared, which may take longer than its operators."""
    return (event.kind, event.tag) == (_DEFAULT, _PREPARATION) and event.graph != main


def _require_every_run(calls: Mapping[_Key, _Calls], main: int) -> None:
    for key, by_run in calls.items():
        counts = {len(times) for times in by_run}
        if key.graph == main and counts != {1}:
            raise StrangeEvents(f"the operator {key.tag!r} {key.number} ran {sorted(counts)} times in a run, not once")


def _op_times(key: _Key, by_run: _Calls, graph: Graph) -> OpTimes:
    calls = [len(times) for times in by_run]
    every = [time for times in by_run for time in times]
    is_node = key.kind == _OPERATOR
    return OpTimes(
        type=key.tag,
        name=_name(key, graph),
        node=key.number if is_node else None,
        internal=key.kind == _DELEGATE_OPERATOR,
        times_us=[sum(times) for times in by_run],
        calls_per_run=sum(calls) // len(calls),
        first_call_us=every[0] if max(calls) > 1 else None,
    )


def _name(key: _Key, graph: Graph) -> str:
    """What the native tool calls it; an output without a tensor is ``Unknown``."""
    if key.kind == _DELEGATE_OPERATOR:
        return f"Delegate/{key.tag}:{key.number}"
    if key.kind == _DEFAULT:
        return f"{key.tag}/{key.graph}"
    tensors = [graph.tensor(output) for output in graph.nodes[key.number].outputs]
    return f"[{', '.join('Unknown' if tensor is None else tensor.name for tensor in tensors)}]:{key.number}"


def _nodes_of(keys: Sequence[_Key], graph: Graph) -> dict[_Key, int]:
    """The nodes that operators of XNNPACK stand for, as far as that is certain.

    Only where the order in which nodes and partitions were seen is that in which they must run.
    """
    alone = {key.number for key in keys if key.kind == _OPERATOR}
    sizes = Counter(key.partition for key in keys if key.kind == _DELEGATE_OPERATOR)
    plan = execution_plan(graph, frozenset(node.index for node in graph.nodes) - alone)
    seen: list[int | None] = []
    for key in keys:
        if key.kind == _OPERATOR:
            seen.append(key.number)
        elif key.number == 0:
            seen.append(None)
    if seen != [None if step.is_partition else step.nodes[0] for step in plan]:
        return {}
    found: dict[_Key, int] = {}
    partitions = [step for step in plan if step.is_partition]
    for partition, step in zip(sorted(sizes), partitions, strict=True):
        operators = [key for key in keys if key.kind == _DELEGATE_OPERATOR and key.partition == partition]
        nodes = nodes_of_partition([key.tag for key in operators], [graph.nodes[node] for node in step.nodes])
        found |= dict(zip(operators, nodes, strict=True)) if nodes is not None else {}
    return found


class Step(Struct, frozen=True):
    """A node that runs on its own, or the nodes of one partition in the order of the file."""

    nodes: tuple[int, ...]
    is_partition: bool


def execution_plan(graph: Graph, taken: frozenset[int]) -> list[Step]:
    """The steps in which a graph runs when a delegate takes the nodes ``taken``.

    TensorFlow Lite groups these into as few partitions as their order allows: in turns, all nodes that are ready and
    stay, then all that are ready and go.

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
