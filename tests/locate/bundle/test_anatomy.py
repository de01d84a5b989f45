from __future__ import annotations

import numpy as np

from evaltools.locate.bundle.anatomy import anatomy
from evaltools.model.cut import CuttableModel, Form
from tests.locate.bundle.cases import addition
from tests.tflite_writer import Graph


def test_outputs_are_found_by_name_then_kind() -> None:
    graph = Graph()
    left = graph.tensor("x", (2,))
    for shape in ((2,), (2, 1)):
        axes = graph.constant("shape", np.array(shape, np.int32))
        graph.node("RESHAPE", [left, axes], graph.tensor("same", shape), "ReshapeOptions")
    found = anatomy(graph.to_bytes([left], [2, 4]))
    assert found.output_named("same", "float32", (2,)) == 0
    assert found.output_named("same", "float32", (2, 1)) == 1
    assert found.output_named("same", "int8", (7,)) == 0
    assert found.output_named("unknown", "float32", (2,)) == 1


def test_a_tap_counts_as_its_tensor() -> None:
    model = CuttableModel(addition("sum").content)
    forms = {tensor: Form((2, 4), "float32") for tensor in range(3)}
    found = anatomy(model.cut(0, 0, forms, taps=[2]).content)
    assert [each.name for each in found.outputs] == ["sum", "sum/tap"]
    assert found.output_named("sum", "float32", (2, 4)) == 0
