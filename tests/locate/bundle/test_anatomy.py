from __future__ import annotations

import numpy as np

from evaltools.locate.bundle.anatomy import anatomy
from evaltools.model.cut import CuttableModel, Form
from tests.locate.bundle.cases import addition, large_sum
from tests.tflite_writer import Graph, Quantization


def test_operators_have_names_options_and_tensors() -> None:
    found = anatomy(large_sum().content)
    (operator,) = found.operators
    assert (operator.name, dict(operator.options)) == ("SUM", {"keepDims": "True"})
    assert [(each.name, each.kind, each.is_constant) for each in operator.inputs] == [
        ("image", "float32[1,112,112,1]", False),
        ("axes", "int32[2]", True),
    ]
    assert [each.name for each in found.outputs] == ["total"]


def test_numbers_that_stand_for_words_are_words() -> None:
    graph = Graph()
    image = graph.tensor("image", (1, 4, 4, 1))
    pooled = graph.tensor("pooled", (1, 2, 2, 1))
    graph.node("MAX_POOL_2D", [image], pooled, "Pool2DOptions", Padding=1, StrideW=2, StrideH=2, FilterWidth=2)
    options = anatomy(graph.to_bytes([image], [pooled])).operators[0].options
    assert (options["padding"], options["fusedActivationFunction"], options["strideW"]) == ("VALID", "NONE", "2")


def test_quantisation_is_said_in_words() -> None:
    graph = Graph()
    image = graph.tensor("image", (1, 4), "int8", Quantization(0.25, -3))
    graph.node("LOGISTIC", [image], graph.tensor("given", (1, 4), "int8", Quantization(1 / 256, -128)))
    found = anatomy(graph.to_bytes([image], [1]))
    assert found.inputs[0].quantization == "scale 0.25, zero point -3"


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
