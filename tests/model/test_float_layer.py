"""A copy of a quantised model with one layer in float: how it is built, and that runtimes run it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.model import read_model
from evaltools.model.contents import Graph, operator_counts, read_contents
from evaltools.model.cut import NotCuttable
from evaltools.model.float_layer import is_quantized_layer, with_float_layer
from tests import locate_models
from tests.interpreters import RUNTIMES, make_interpreter, random_inputs, run
from tests.locate_models import NET_OPERATORS, net_weights


def main_graph(folder: Path, content: bytes) -> Graph:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_contents(read_model(path)).main


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("place", range(len(NET_OPERATORS)))
def test_each_layer_runs_in_float_and_gives_nearly_the_same(runtime: str, place: int, tmp_path: Path) -> None:
    content = locate_models.quantized_net(by_channel=True)
    graph = main_graph(tmp_path, content)
    constants = {}
    for position in (1, 2):
        name = f"{graph.tensors[graph.nodes[place].outputs[0]].name} {('weights', 'bias')[position - 1]}"
        if name in net_weights():
            constants[position] = net_weights()[name]
    copy = with_float_layer(content, graph, place, constants)
    edited = main_graph(tmp_path, copy)
    before = 2 if NET_OPERATORS[place] == "ADD" else 1
    assert [node.operator for node in edited.nodes] == [
        *NET_OPERATORS[:place], *["DEQUANTIZE"] * before, NET_OPERATORS[place], "QUANTIZE", *NET_OPERATORS[place + 1 :],
    ]  # fmt: skip
    layer = edited.nodes[place + before]
    assert {edited.tensors[index].dtype for index in (*layer.inputs, *layer.outputs)} <= {"float32", "int32"}
    assert (edited.inputs, edited.outputs) == (graph.inputs, graph.outputs)
    first, second = make_interpreter(runtime, content), make_interpreter(runtime, copy)
    inputs = random_inputs(first)
    given, expected = run(second, inputs).astype(int), run(first, inputs).astype(int)
    assert np.abs(expected).max() > 0
    assert np.abs(given - expected).max() <= 6


def test_tensors_within_may_be_outputs_as_well(tmp_path: Path) -> None:
    content = locate_models.quantized_net()
    graph = main_graph(tmp_path, content)
    total = graph.nodes[3].outputs[0]
    assert main_graph(tmp_path, with_float_layer(content, graph, 2, {}, [total])).outputs == (*graph.outputs, total)


def test_a_layer_with_a_state_is_refused(tmp_path: Path) -> None:
    content = locate_models.svdf()
    with pytest.raises(NotCuttable, match="SVDF keeps a state"):
        with_float_layer(content, main_graph(tmp_path, content), 0, {})


def test_a_layer_is_quantised_by_its_tensors_or_its_weights(tmp_path: Path) -> None:
    quantized = main_graph(tmp_path, locate_models.quantized_net())
    assert all(is_quantized_layer(quantized, place) for place in range(len(NET_OPERATORS)))
    for content in (locate_models.net(), locate_models.fp16_constants()):
        graph = main_graph(tmp_path, content)
        assert not any(is_quantized_layer(graph, node.index) for node in graph.nodes)
    assert operator_counts([quantized])["CONV_2D"] == 2
