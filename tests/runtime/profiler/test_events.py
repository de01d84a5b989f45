"""Events as LiteRT's profiler leaves them, made up by hand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from evaltools.model.contents import Graph, GraphTensor, Operation
from evaltools.runtime.profiler.events import StrangeEvents, operators_in
from evaltools.runtime.profiler.profiled_model import Event

DEFAULT, NODE, DELEGATE, CODE = 1, 2, 8, 32


def graph_of(*operators: str) -> Graph:
    """A chain of nodes with one output each."""
    nodes = tuple(Operation(place, name, (place,), (place + 1,)) for place, name in enumerate(operators))
    tensors = tuple(GraphTensor(place, f"t{place}", "float32", (1,), (1,)) for place in range(len(operators) + 1))
    return Graph(tensors, nodes, (0,), (len(operators),), "chain")


def run_of(*events: Event, whole_us: int = 1000, graph: int = 0) -> list[Event]:
    """The events of one run of a graph, with what else there is in each."""
    return [
        Event("LiteRT::Run[buffer registration]", DEFAULT, 100, 0, 0),
        Event("invoke", 16, whole_us + 40, -1, 0),
        Event("Invoke", DEFAULT, whole_us, 0, graph),
        *events,
        Event("Invoke", CODE, 1 << 32, -1, graph),
        Event("LiteRT::Run[Buffer sync]", DEFAULT, 15, 0, 0),
    ]


def node(tag: str, number: int, time_us: int, graph: int = 0) -> Event:
    return Event(tag, NODE, time_us, number, graph)


def inside(tag: str, number: int, time_us: int = 1, graph: int = 0) -> Event:
    return Event(tag, DELEGATE, time_us, number, graph)


def test_two_partitions_count_from_zero_each_and_stay_apart() -> None:
    graph = graph_of("ADD", "NEG", "ADD", "ADD", "SOFTMAX")
    events = run_of(inside("Add (ND)", 0, 5), node("NEG", 1, 7), inside("Add (ND)", 0, 6), inside("Add (ND)", 1, 8),
                    node("SOFTMAX", 4, 9))  # fmt: skip
    found = operators_in([events, events], [graph], 0, "LiteRT")
    assert [(op.name, op.node, op.internal, op.times_us) for op in found.ops] == [
        ("Delegate/Add (ND):0", None, True, [5, 5]),
        ("[t2]:1", 1, False, [7, 7]),
        ("Delegate/Add (ND):0", None, True, [6, 6]),
        ("Delegate/Add (ND):1", None, True, [8, 8]),
        ("[t5]:4", 4, False, [9, 9]),
    ]
    assert found.invoke_us == [1000, 1000]


def test_partitions_without_a_node_between_are_distinguished_by_their_numbers() -> None:
    graph = graph_of("ADD", "ADD")
    events = run_of(inside("Add (ND)", 0), inside("Add (ND)", 0))
    found = operators_in([events], [graph], 0, "LiteRT")
    assert [op.calls_per_run for op in found.ops] == [1, 1]


def test_called_graphs_sum_up_by_run_and_keep_their_first_call() -> None:
    graphs = [graph_of("WHILE"), graph_of("LESS"), graph_of("ADD")]

    def looping(*times: int) -> list[Event]:
        calls = [event for time in times for event in (
            Event("Invoke", DEFAULT, 20, 0, 2), node("ADD", 0, time, 2), Event("Invoke", CODE, 1 << 32, -1, 2),
        )]  # fmt: skip
        return run_of(node("WHILE", 0, 500), Event("AllocateTensors", DEFAULT, 30, 0, 2), *calls)

    found = operators_in([looping(4, 3, 3), looping(2, 1, 1)], graphs, 0, "LiteRT")
    assert [(op.type, op.times_us) for op in found.ops] == [("WHILE", [500, 500])]
    (body,) = found.called
    assert (body.graph, body.name) == (2, "chain")
    assert [(op.name, op.times_us, op.calls_per_run, op.first_call_us) for op in body.ops] == [
        ("AllocateTensors/2", [30, 30], 1, None),
        ("[t1]:0", [10, 4], 3, 4),
    ]


def test_the_graph_that_is_run_need_not_be_the_first() -> None:
    found = operators_in([run_of(node("NEG", 0, 5, 1), graph=1)], [graph_of("ADD"), graph_of("NEG")], 1, "LiteRT")
    assert [op.type for op in found.ops] == ["NEG"]
    assert found.called == []


def test_an_output_that_is_no_tensor_is_unknown_as_in_the_native_tool() -> None:
    graph = Graph((), (Operation(0, "ADD", (), (4,)),), (), (), "main")
    assert operators_in([run_of(node("ADD", 0, 1))], [graph], 0, "LiteRT").ops[0].name == "[Unknown]:0"


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([[node("ADD", 0, 1)]], "is there 0 times among 1 events"),
        ([run_of(Event("Invoke", DEFAULT, 5, 0, 0))], "is there 2 times"),
        ([run_of(node("ADD", 2, 1))], "'ADD' is said to be node 2, which there is not"),
        ([run_of(node("ADD", -1, 1))], "node -1"),
        ([run_of(node("ADD", 0, 1, 3))], "of graph 3, which there is not"),
        ([run_of(inside("Add (ND)", 0, 1, -1))], "of graph -1"),
        ([run_of(node("ADD", 0, 900), node("NEG", 1, 900))], "took 1800 us together, and the run only 1000"),
        ([run_of(node("ADD", 0, 1 << 62))], "us together"),
        ([run_of(node("ADD", 0, 1)), run_of(node("NEG", 1, 1))], r"ran \[0, 1\] times in a run, not once"),
        ([run_of(node("ADD", 0, 1), node("ADD", 0, 1))], r"ran \[2\] times"),
    ],
)
def test_events_that_cannot_be_are_refused(runs: Sequence[Sequence[Event]], words: str) -> None:
    with pytest.raises(StrangeEvents, match=words):
        operators_in(runs, [graph_of("ADD", "NEG")], 0, "LiteRT")
