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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from evaltools.metrics.op_profile import CalledGraph, OpProfile, OpTimes
from evaltools.model.contents import Graph
from evaltools.runtime.profiler.profiled_model import Event

_DEFAULT: Final = 1
_OPERATOR: Final = 2
_DELEGATE_OPERATOR: Final = 8
_RUN, _PREPARATION = "Invoke", "AllocateTensors"
_SLACK_US: Final = 20
_Calls: TypeAlias = list[list[int]]
"""The times of one operator's calls, by run."""


class StrangeEvents(Exception):
    """The events cannot be those of this model."""


class _Key(Struct, frozen=True):
    """What distinguishes operators: of XNNPACK's in the main graph, also which partition they are in."""

    graph: int
    kind: int
    tag: str
    number: int
    partition: int = 0


def operators_in(runs: Iterable[Sequence[Event]], graphs: Sequence[Graph], main: int, runtime: str) -> OpProfile:
    """Sum up the events of runs with the same inputs; ``graphs`` are the file's, ``main`` the one that was run.

    The runs are gone through once, and their events are not kept. Which nodes XNNPACK's operators stand for is not
    known.

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
    called = sorted({key.graph for key in found} - {main})
    return OpProfile(
        runtime=runtime,
        runs=len(invoke_us),
        ops=[op for key, op in found.items() if key.graph == main],
        invoke_us=invoke_us,
        called=[
            CalledGraph(graph, graphs[graph].name, [op for key, op in found.items() if key.graph == graph])
            for graph in called
        ],
        graph_name=graphs[main].name,
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
