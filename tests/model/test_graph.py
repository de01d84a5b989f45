"""What nodes tell: rows that ids select, outputs that are scores, detectors, state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_graphs
from evaltools.model.graph import DETECTION_OP
from tests import tiny_models
from tests.tflite_writer import Graph


def read(folder: Path, content: bytes) -> ModelFile:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_model(path)


def lookup(
    rows: tuple[int, ...] = (10, 4), axis: int = 0, through: tuple[str, ...] = (), dtype: str = "int32"
) -> bytes:
    """GATHER of rows of a table by the input "ids", perhaps ``through`` other operators first."""
    graph = Graph()
    ids = tensor = graph.tensor("ids", (3,), dtype)
    for op in through:
        tensor = graph.node(op, [tensor], graph.tensor(op, (3,), "int32"))
    table = graph.constant("table", np.zeros(rows, np.float32))
    picked = graph.tensor("picked", (3,))
    return graph.to_bytes([ids], [graph.node("GATHER", [table, tensor], picked, "GatherOptions", Axis=axis)])


def test_nodes_have_their_operator_tensors_and_options() -> None:
    (graph,) = read_graphs(memoryview(tiny_models.add_and_negate(pairs=1)))
    add, negate = graph.nodes
    assert (add.operator, add.inputs, add.outputs) == ("ADD", (0, 0), (1,))
    assert (negate.operator, negate.inputs, negate.outputs) == ("NEG", (1,), (2,))
    assert add.options is not None


def test_operators_with_large_numbers_are_known() -> None:
    """Numbers from 127 on stand in a field of their own: CALL_ONCE is 129."""
    graph = read_graphs(memoryview(tiny_models.two_signatures(call_second=True)))[0]
    assert [node.operator for node in graph.nodes] == ["CALL_ONCE", "ADD"]


@pytest.mark.parametrize(("axis", "rows"), [(0, 10), (1, 4), (-1, 4), (-2, 10), (2, None), (-3, None)])
def test_an_id_selects_a_row_along_the_axis_of_gather(tmp_path: Path, axis: int, rows: int | None) -> None:
    (ids,) = read(tmp_path, lookup(axis=axis)).inputs
    assert ids.rows == rows


@pytest.mark.parametrize("through", [("CAST",), ("RESHAPE", "CAST"), ("SQUEEZE", "EXPAND_DIMS", "STRIDED_SLICE")])
def test_ids_are_followed_through_operators_that_keep_values(tmp_path: Path, through: tuple[str, ...]) -> None:
    assert read(tmp_path, lookup(through=through)).inputs[0].rows == 10


@pytest.mark.parametrize("last", ["SOFTMAX", "LOGISTIC", "L2_NORMALIZATION"])
@pytest.mark.parametrize("after", [(), ("RESHAPE", "QUANTIZE"), ("DEQUANTIZE",)])
def test_the_operator_that_makes_an_output_is_known(tmp_path: Path, last: str, after: tuple[str, ...]) -> None:
    graph = Graph()
    tensor = first = graph.tensor("input", (1, 4))
    for op in (last, *after):
        tensor = graph.node(op, [tensor], graph.tensor(op, (1, 4)))
    assert read(tmp_path, graph.to_bytes([first], [tensor])).outputs[0].made_by == last


@pytest.mark.parametrize(
    ("ops", "maker"), [(("SOFTMAX", "NEG"), "NEG"), (("NEG", "RESHAPE"), "NEG"), (("RESHAPE",), "")]
)
def test_reshaping_makes_no_values(tmp_path: Path, ops: tuple[str, ...], maker: str) -> None:
    graph = Graph()
    tensor = first = graph.tensor("input", (1, 4))
    for op in ops:
        tensor = graph.node(op, [tensor], graph.tensor(op, (1, 4)))
    assert read(tmp_path, graph.to_bytes([first], [tensor])).outputs[0].made_by == maker


def test_a_graph_that_runs_in_circles_ends(tmp_path: Path) -> None:
    graph = Graph()
    first, second = graph.tensor("a", (1,)), graph.tensor("b", (1,))
    graph.node("RESHAPE", [first], second)
    graph.node("RESHAPE", [second], first)
    model = read(tmp_path, graph.to_bytes([first], [second]))
    assert (model.inputs[0].rows, model.outputs[0].made_by) == (None, "")


def detector(order: tuple[int, ...]) -> bytes:
    """Boxes, classes, scores and count of the detection operator, given out in another order."""
    graph = Graph()
    image = graph.tensor("image", (1, 4))
    found = [graph.tensor(name, (1, 10)) for name in ("boxes", "classes", "scores", "count", "other")]
    graph.node(DETECTION_OP, [image], found[:4])
    graph.node("NEG", [image], found[4])
    return graph.to_bytes([image], [found[index] for index in order])


def test_the_outputs_of_a_detector_are_found_in_any_order(tmp_path: Path) -> None:
    found = read(tmp_path, detector((3, 4, 0, 2, 1))).detection
    assert found is not None
    assert (found.boxes, found.classes, found.scores, found.count) == (2, 4, 3, 0)
    assert [found.holds(position) for position in range(5)] == [True, False, True, True, True]


def test_a_model_without_all_four_outputs_is_no_detector(tmp_path: Path) -> None:
    assert read(tmp_path, detector((0, 1, 2))).detection is None
    assert read(tmp_path, tiny_models.classifier()).detection is None


def test_variables_and_resources_make_a_state(tmp_path: Path) -> None:
    for settings, stateful in (({}, False), ({"variable": True}, True), ({"dtype": "resource"}, True)):
        graph = Graph()
        tensor = graph.tensor("input", (1,))
        graph.tensor("memory", (1,), **settings)
        assert read(tmp_path, graph.to_bytes([tensor], [tensor])).stateful is stateful
