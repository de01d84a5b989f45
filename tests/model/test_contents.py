"""What is in a model: names against the schema package, counts and values worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tflite
from msgspec.structs import replace

from evaltools.errors import ModelError
from evaltools.model import read_model
from evaltools.model.contents import OPERATORS, GraphTensor, ModelContents, operator_counts, read_contents
from tests import tiny_models
from tests.tflite_writer import Graph


def contents_of(folder: Path, content: bytes) -> ModelContents:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_contents(read_model(path))


def test_operators_are_named_as_in_the_schema() -> None:
    stated = {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}
    assert dict(enumerate(OPERATORS)) == stated


def test_tensors_nodes_and_constants_are_counted(tmp_path: Path) -> None:
    found = contents_of(tmp_path, tiny_models.conv(shape=(1, 8, 8, 3), filters=4))
    assert (len(found.graphs), found.tensor_count, operator_counts(found.graphs)) == (1, 4, {"CONV_2D": 1})
    assert found.constant_bytes == 4 * (4 * 3 * 3 * 3 + 4)
    (node,) = found.main.nodes
    assert found.main.types_of(node) == "float32 [float32] -> float32"


def test_constants_have_their_values(tmp_path: Path) -> None:
    graph = Graph()
    fed = graph.tensor("input", (1, 3))
    three = graph.constant("three", np.array([1, 2, 3], np.float32))
    total = graph.node("ADD", [fed, three], graph.tensor("sum", (1, 3)))
    found = contents_of(tmp_path, graph.to_bytes([fed], [total])).main
    assert found.tensors[1].values("float32").tolist() == [1, 2, 3]
    assert found.tensors[0].values("float32").tolist() == []


def test_graphs_signatures_and_free_sizes_are_told(tmp_path: Path) -> None:
    found = contents_of(tmp_path, tiny_models.two_signatures(metadata=b"any"))
    assert found.signatures == ("double", "negate")
    assert found.metadata == ("TFLITE_METADATA",)
    assert [[tensor.is_dynamic for tensor in graph.tensors] for graph in found.graphs] == [
        [False, False],
        [True, False, True],
    ]


def test_a_file_that_vanishes_after_it_was_checked_is_refused_where_it_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.add_chain())
    model = read_model(path)
    path.unlink()
    if model.held is not None:
        assert operator_counts(read_contents(model).graphs) == {"ADD": 2}
    with pytest.raises(ModelError, match="model.tflite cannot be read any more: No such file or directory; put it"):
        read_contents(replace(model, held=None))


def test_constants_in_4_bits_are_two_in_a_byte() -> None:
    """The first number is in the lower half of a byte."""
    tensor = GraphTensor(0, "", "int4", (3,), (3,), (0.5,), (0,), constant=memoryview(bytes([0x7F, 0x08])))
    numbers = tensor.real_constant()
    assert numbers is not None
    assert numbers.tolist() == [-0.5, 3.5, -4.0]


def test_a_constant_that_is_stored_in_another_way_has_no_real_numbers() -> None:
    stored = memoryview(b"1234")
    assert GraphTensor(0, "", "int8", (5,), (5,), (0.5,), constant=stored).real_constant() is None
    assert GraphTensor(0, "", "bfloat16", (2,), (2,), constant=stored).real_constant() is None
    assert GraphTensor(0, "", "int8", (4,), (4,), (0.5,)).real_constant() is None
