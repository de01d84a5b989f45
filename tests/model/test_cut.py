"""A part of a model gives, bit for bit, what the whole model has in the same tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from ai_edge_litert import schema_py_generated as schema

from evaltools.model.cut import CuttableModel, Form, NotCuttable
from tests import locate_models
from tests.interpreters import make_interpreter
from tests.tflite_writer import Graph

Array = npt.NDArray[Any]
MODELS = locate_models.all_models()


def run(content: bytes, inputs: list[Array]) -> list[Array]:
    interpreter = make_interpreter("ai_edge_litert", content)
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def random_inputs(content: bytes) -> list[Array]:
    random = np.random.default_rng(5)
    details = make_interpreter("ai_edge_litert", content).get_input_details()
    return [
        random.uniform(-1, 1, detail["shape"]).astype(np.float32)
        if detail["dtype"] is np.float32
        else random.integers(-128, 127, detail["shape"]).astype(detail["dtype"])
        for detail in details
    ]


def tensors(model: CuttableModel, inputs: list[Array]) -> dict[int, Array]:
    """All tensors that hold numbers, of one run."""
    places = [place for place in range(len(model.operators)) if place not in model.folded]
    exposed = [tensor for place in places for tensor in model.made_by(place)]
    cut = model.cut(0, len(model.operators) - 1, {}, exposed=exposed)
    known = dict(zip(model.graph_inputs, inputs, strict=True))
    given = run(cut.content, [known[tensor] for tensor in cut.inputs])
    return known | dict(zip(cut.outputs, given, strict=True))


def forms(values: dict[int, Array]) -> dict[int, Form]:
    return {tensor: Form(array.shape, str(array.dtype)) for tensor, array in values.items()}


@pytest.mark.parametrize("name", MODELS)
def test_every_operator_alone_gives_the_bits_of_the_whole_model(name: str) -> None:
    model = CuttableModel(MODELS[name])
    inputs = random_inputs(MODELS[name])
    values = tensors(model, inputs)
    for tensor, array in zip(model.graph_outputs, run(MODELS[name], inputs), strict=True):
        assert array.tobytes() == values[tensor].tobytes()
    for place in range(len(model.operators)):
        if place in model.folded:
            continue
        cut = model.cut(place, place, forms(values))
        for tensor, array in zip(cut.outputs, run(cut.content, [values[each] for each in cut.inputs]), strict=True):
            assert array.tobytes() == values[tensor].tobytes(), (name, place)


@pytest.mark.parametrize("name", MODELS)
def test_copies_of_all_tensors_hold_what_the_tensors_hold(name: str) -> None:
    model = CuttableModel(MODELS[name])
    values = tensors(model, random_inputs(MODELS[name]))
    taps = [tensor for tensor in values if tensor in model.makers]
    cut = model.cut(0, len(model.operators) - 1, forms(values), taps=taps)
    given = run(cut.content, [values[tensor] for tensor in cut.inputs])
    assert len(given) == len(model.graph_outputs) + len(taps)
    for tensor, array in zip(cut.outputs, given, strict=True):
        assert array.tobytes() == values[tensor].tobytes(), (name, model.name(tensor))


def test_a_range_takes_what_it_reads_and_gives_what_others_read() -> None:
    model = CuttableModel(MODELS["net"])
    values = tensors(model, random_inputs(MODELS["net"]))
    cut = model.cut(1, 3, forms(values))
    assert [model.name(tensor) for tensor in cut.inputs] == ["stem"]
    assert [model.name(tensor) for tensor in cut.outputs] == ["total"]


def test_constants_that_are_computed_come_with_the_operator_that_reads_them() -> None:
    model = CuttableModel(MODELS["fp16 constants"])
    assert {model.operators[place] for place in model.folded} == {"DEQUANTIZE"}
    conv = model.operators.index("CONV_2D")
    cut = model.cut(conv, conv, {})
    assert [model.name(tensor) for tensor in cut.inputs] == [model.name(tensor) for tensor in model.graph_inputs]


@pytest.mark.parametrize(("dtype", "is_folded"), [("int32", True), ("float32", False)])
def test_shapes_that_are_computed_come_along_and_numbers_are_a_part_of_their_own(dtype: str, is_folded: bool) -> None:
    graph = Graph()
    fed, stored = graph.tensor("fed", (4,), dtype), graph.constant("stored", np.ones(4, dtype))
    made = graph.node("NEG", [stored], graph.tensor("made", (4,), dtype), "NegOptions")
    total = graph.node("ADD", [fed, made], graph.tensor("total", (4,), dtype), "AddOptions")
    model = CuttableModel(graph.to_bytes([fed], [total]))
    assert model.folded == ({0} if is_folded else set())
    assert [model.name(tensor) for tensor in model.cut(1, 1, {}).inputs] == (["fed"] if is_folded else ["fed", "made"])


def test_constants_lie_at_multiples_of_16() -> None:
    model = CuttableModel(MODELS["net"])
    content = model.cut(0, 2, {}).content
    root = schema.Model.GetRootAs(content, 0)
    starts = []
    for index in range(root.BuffersLength()):
        if root.Buffers(index).DataLength():
            data = root.Buffers(index).DataAsNumpy()
            starts.append(data.__array_interface__["data"][0] - np.frombuffer(content, np.uint8).ctypes.data)
    assert len(starts) > 2
    assert [start % 16 for start in starts] == [0] * len(starts)


def test_sizes_that_the_file_leaves_open_are_those_of_the_run() -> None:
    graph = Graph()
    fed = graph.tensor("input", (1, 4), shape_signature=(-1, 4))
    negated = graph.node("NEG", [fed], graph.tensor("negated", (1, 4), shape_signature=(-1, 4)))
    given = graph.node("ABS", [negated], graph.tensor("given", (1, 4), shape_signature=(-1, 4)))
    model = CuttableModel(graph.to_bytes([fed], [given]))
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    cut = model.cut(1, 1, {negated: Form((3, 4), "float32"), given: Form((3, 4), "float32")})
    np.testing.assert_array_equal(run(cut.content, [-values])[0], values)


def test_a_state_is_no_input() -> None:
    model = CuttableModel(MODELS["svdf"])
    place = model.operators.index("SVDF")
    cut = model.cut(place, place, {})
    assert cut.stateful
    assert len(cut.inputs) == 1


def test_a_resource_cannot_be_fed() -> None:
    graph = Graph()
    handle = graph.node("VAR_HANDLE", [], graph.tensor("handle", (), "resource"), "VarHandleOptions")
    read = graph.node("READ_VARIABLE", [handle], graph.tensor("read", (1,)))
    given = graph.node("ABS", [read], graph.tensor("given", (1,)))
    model = CuttableModel(graph.to_bytes([], [given]))
    with pytest.raises(NotCuttable, match="'handle' is a resource"):
        model.cut(1, 1, {})
