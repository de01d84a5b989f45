"""Signatures: the graph that runs is the one asked for, in both runtimes, also with other input sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.errors import ModelError
from evaltools.model import read_model
from evaltools.model.flatbuffer import Table
from evaltools.model.metadata import signature_names, with_main_graph
from evaltools.runtime import open_session
from tests import tiny_models
from tests.interpreters import runtime_module
from tests.tflite_writer import Graph, Signature

RUNTIMES = {"litert": "ai_edge_litert", "tflite_runtime": "tflite_runtime"}
in_every_runtime = pytest.mark.parametrize("runtime", RUNTIMES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "two.tflite"
    path.write_bytes(tiny_models.two_signatures())
    return path


def test_a_signature_names_tensors() -> None:
    model = Table.root(memoryview(tiny_models.two_signatures()))
    assert signature_names(model, 1, "negate") == ({0: "negated"}, {2: "minus"})
    assert signature_names(model, 0) == ({0: "doubled"}, {1: "twice"})
    assert signature_names(model, 0, "negate") == ({}, {})


def test_two_signatures_of_one_graph_give_no_names_until_one_is_chosen() -> None:
    graph = Graph()
    tensor = graph.tensor("x", (1,))
    signatures = [Signature(key, 0, {key: tensor}, {key: tensor}) for key in ("a", "b")]
    model = Table.root(memoryview(graph.to_bytes([tensor], [tensor], signatures)))
    assert signature_names(model, 0) == ({}, {})
    assert signature_names(model, 0, "b") == ({0: "b"}, {0: "b"})


def test_a_model_describes_the_graph_of_its_signature(path: Path) -> None:
    first, second = read_model(path), read_model(path, "negate")
    assert [(tensor.name, tensor.signature_name) for tensor in first.inputs + first.outputs] == [
        ("x", "doubled"),
        ("double", "twice"),
    ]
    assert [(tensor.name, tensor.signature_name, tensor.shape_signature) for tensor in second.inputs] == [
        ("y", "negated", (-1, -1))
    ]
    assert (second.signature, second.outputs[0].signature_name, second.sha256) == ("negate", "minus", first.sha256)


def test_only_another_graph_than_the_main_one_changes_the_file(path: Path) -> None:
    assert read_model(path, "double").content is None
    assert read_model(path, "double").read() == path.read_bytes()
    edited = read_model(path, "negate").read()
    assert sum(left != right for left, right in zip(edited, path.read_bytes(), strict=True)) in range(1, 9)


@in_every_runtime
@pytest.mark.parametrize("kernels", ["default", "builtin", "reference"])
def test_the_graph_of_the_signature_runs_with_another_shape(path: Path, runtime: str, kernels: str) -> None:
    runtime_module(RUNTIMES[runtime])
    model = read_model(path, "negate").with_input_shapes({0: (3, 1)})
    session = open_session(model, Configuration("test", runtime=runtime, kernels=kernels))
    assert session.inputs[0].shape == (3, 1)
    assert session.run([np.array([[5], [6], [-7]], np.float32)]).outputs[0].tolist() == [[-5], [-6], [7]]
    assert session.delegation.total_nodes == 1


def test_a_graph_that_others_call_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.tflite"
    path.write_bytes(tiny_models.two_signatures(call_second=True))
    with pytest.raises(ModelError, match="the graph of signature 'negate' is also called from other graphs"):
        read_model(path, "negate")
    assert read_model(path, "double").node_count == 2


@pytest.mark.parametrize(
    ("options", "fields", "called"),
    [
        ("IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}, {1, 2}),
        ("WhileOptions", {"CondSubgraphIndex": 2, "BodySubgraphIndex": 2}, {2}),
        ("CallOptions", {"Subgraph": 1}, {1}),
        ("CallOnceOptions", {"InitSubgraphIndex": 0}, {0, 1, 2}),
    ],
)
def test_every_operator_that_calls_a_graph_is_known(options: str, fields: dict[str, int], called: set[int]) -> None:
    """The main graph is always one of the two, so a call of graph 0 stands against every signature."""
    graph = Graph()
    for _ in range(2):
        tensor = graph.tensor("x", (1,))
        graph.next_graph([tensor], [tensor])
    tensor = graph.tensor("x", (1,))
    graph.node("IF", [tensor], tensor, options, **fields)
    content = graph.to_bytes([tensor], [tensor])
    for number in (1, 2):
        if number in called:
            with pytest.raises(ModelError, match="^it is also called"):
                with_main_graph(content, number, "it")
        else:
            assert with_main_graph(content, number, "it") != content


def test_an_unknown_signature_is_refused_with_those_that_exist(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no signature 'negat'; it has 'double', 'negate'. Did you mean negate"):
        read_model(path, "negat")
    (tmp_path / "none.tflite").write_bytes(tiny_models.add_chain())
    with pytest.raises(ModelError, match="it has none; leave --signature out"):
        read_model(tmp_path / "none.tflite", "negate")
