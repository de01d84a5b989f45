"""The inputs of a benchmark: flags, random numbers as the native tool's, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from evaltools.benchmark.input_layers import InputLayer, read_layers
from evaltools.benchmark.inputs import make_inputs, with_input_shapes
from evaltools.errors import ConfigurationUnavailable, ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.runtime.registry import require_memory
from tests import tiny_models
from tests.interpreters import RUNTIMES, make_interpreter
from tests.tflite_writer import TENSOR_TYPES, Graph

SENTENCE = b"we're have some friends over saturday to hang out in the yard"
FIRST_FLOATS = [0.31472367, -0.364522994, 0.405791938, 0.335008562]
"""Recorded from the native tool."""


def tensor(name: str = "x", dtype: str = "float32", shape: tuple[int, ...] = (2,), index: int = 0) -> TensorInfo:
    return TensorInfo(index, name, dtype, shape, shape, None, None)


def model(*inputs: TensorInfo) -> ModelFile:
    return ModelFile(Path("m.tflite"), "", 0, inputs, (), 1, None)


def options(layers: str = "", shapes: str = "", ranges: str = "", files: str = "") -> tuple[InputLayer, ...]:
    return read_layers(layers, shapes, ranges, files)


def made(*inputs: TensorInfo, **flags: str) -> tuple[npt.NDArray[Any], ...]:
    arrays, warnings = make_inputs(model(*inputs), options(**flags))
    assert warnings == []
    assert [array.shape for array in arrays] == [info.shape for info in inputs]
    return arrays


def single(*numbers: float) -> list[float]:
    return np.array(numbers, np.float32).tolist()  # type: ignore[no-any-return]


def test_all_inputs_are_drawn_from_one_stream_in_their_order() -> None:
    """Recorded from a C++ program with one ``std::mt19937``, built with GCC 12."""
    types = ["float32", "int16", "int8", "bool", "int64", "uint8", "uint32", "complex64", "float64", "int32", "uint16"]
    shapes = [(2,), (1, 2), (3,), (2, 2), (2,), (2,), (2,), (2,), (2,), (2,), (1,)]
    inputs = [tensor(f"i{place}", *facts) for place, facts in enumerate(zip(types, shapes, strict=True))]
    arrays = made(*inputs, tensor("last"))
    assert [array.dtype.name for array in arrays] == [*types, "float32"]
    wanted: list[Any] = [
        [float.fromhex("0x1.4246ecp-2"), float.fromhex("-0x1.754584p-2")],
        [[0, 0]],
        [-95, 120, 105],
        [[False, True], [False, False]],
        [54, 27],
        [48, 139],
        [99, 95],
        [float.fromhex("0x1.dc0bbcp-2"), float.fromhex("-0x1.5e9aacp-2")],
        [float.fromhex("0x1.e1e312cee7426p-2"), float.fromhex("0x1.d42392abeca8p-2")],
        [10, 48],
        [0],
        [float.fromhex("0x1.337cb8p-2"), float.fromhex("-0x1.9faf08p-3")],
    ]
    assert [array.tolist() for array in arrays] == wanted


@pytest.mark.parametrize(
    ("dtype", "stored", "first"),
    [("float16", "float16", np.float16(FIRST_FLOATS[0])), ("bfloat16", "uint16", 0x3EA1)],
)
def test_short_floats_are_rounded(dtype: str, stored: str, first: float) -> None:
    """0.31472367 is 0x3ea123.. in float32, so that its upper half is 0x3ea1."""
    (values,) = made(tensor(dtype=dtype))
    assert (values.dtype, values[0]) == (np.dtype(stored), first)


def test_a_scalar_and_an_empty_tensor_are_made() -> None:
    scalar, empty = made(tensor(shape=()), tensor("y", shape=(0, 3)))
    assert (scalar.tolist(), empty.size) == (single(FIRST_FLOATS[0])[0], 0)


@pytest.mark.parametrize(
    ("dtype", "limits", "lowest", "highest"),
    [
        ("int16", "-3,3", -3, 3),
        ("uint16", "0,1", 0, 1),
        ("int32", "-2147483648,-2147483647", -(2**31), 1 - 2**31),
        ("int64", "5,5", 5, 5),
        ("uint8", " 250 ,255", 250, 255),
    ],
)
def test_whole_numbers_fill_the_range_asked_for(dtype: str, limits: str, lowest: int, highest: int) -> None:
    (values,) = made(tensor(dtype=dtype, shape=(500,)), layers="x", shapes="500", ranges=f"x,{limits}")
    assert (values.dtype.name, set(values.tolist())) == (dtype, set(range(lowest, highest + 1)))


def test_floats_fill_the_range_asked_for() -> None:
    (values,) = made(tensor(shape=(4,)), layers="x", shapes="4", ranges="x,-10,30")
    wanted = [np.float32(40) * np.float32(number + 0.5) - np.float32(10) for number in FIRST_FLOATS]
    np.testing.assert_allclose(values, wanted, rtol=1e-6)


@pytest.mark.parametrize("dtype", ["bool", "float16", "string"])
def test_a_range_that_has_no_effect_is_warned_about(dtype: str) -> None:
    given = options("x", "2", "x,5,9")
    arrays, warnings = make_inputs(model(tensor(dtype=dtype)), given)
    assert arrays[0].tolist() == made(tensor(dtype=dtype))[0].tolist()
    assert warnings == [
        "The input_layer_value_range of the input_name:x will be ignored. It is of type "
        f"{dtype}, for which there is none."
    ]


def test_where_a_file_and_a_range_are_given_the_file_is_used(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"\x07\x08")
    given = options("x,y", "2:2", "x,0,1:y,3,3", f"x:{tmp_path / 'x.bin'}")
    arrays, warnings = make_inputs(model(tensor(dtype="uint8"), tensor("y", "uint8")), given)
    assert [array.tolist() for array in arrays] == [[7, 8], [3, 3]]
    assert warnings == [
        "The input_name:x appears both in input_layer_value_files and input_layer_value_range. The "
        "input_layer_value_range of the input_name will be ignored."
    ]


def test_an_input_from_a_file_draws_nothing(tmp_path: Path) -> None:
    np.zeros(2, np.float32).tofile(tmp_path / "x.bin")
    arrays = made(tensor(), tensor("y"), layers="x,y", shapes="2:2", files=f"x:{tmp_path / 'x.bin'}")
    assert [array.tolist() for array in arrays] == [[0, 0], single(*FIRST_FLOATS[:2])]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
def test_texts_arrive_in_the_interpreters(runtime: str, shape: tuple[int, ...]) -> None:
    graph = Graph()
    texts = graph.tensor("x", shape, "string")
    interpreter = make_interpreter(runtime, graph.to_bytes([texts], [texts]))
    (values,) = made(tensor(dtype="string", shape=shape))
    interpreter.set_tensor(texts, values)
    found = interpreter.get_tensor(texts)
    assert np.array(found).ravel().tolist() == [SENTENCE] * int(np.prod(shape))


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("dtype", sorted(TENSOR_TYPES.keys() - {"string", "resource"}))
def test_numbers_arrive_in_the_interpreters(runtime: str, dtype: str) -> None:
    graph = Graph()
    numbers = graph.tensor("x", (2, 3), dtype)
    interpreter = make_interpreter(runtime, graph.to_bytes([numbers], [numbers]))
    (values,) = made(tensor(dtype=dtype, shape=(2, 3)))
    interpreter.set_tensor(numbers, values)
    assert interpreter.get_tensor(numbers).tolist() == values.tolist()


@pytest.mark.parametrize("dtype", ["uint64", "complex128"])
def test_types_that_the_native_tool_does_not_draw_must_come_from_a_file(tmp_path: Path, dtype: str) -> None:
    with pytest.raises(ModelError) as caught:
        made(tensor(dtype=dtype))
    assert str(caught.value).startswith(f"Don't know how to populate tensor x of type {dtype}; name all inputs")
    assert "--input_layer_value_files=NAME:FILE" in str(caught.value)
    np.ones(2, dtype).tofile(tmp_path / "x")
    (values,) = made(tensor(dtype=dtype), layers="x", shapes="2", files=f"x:{tmp_path / 'x'}")
    assert (values.dtype.name, values.tolist()) == (dtype, [1, 1])


@pytest.mark.parametrize("dtype", ["int4", "resource", "variant", "type 99"])
def test_types_that_nothing_can_be_made_for_are_refused(tmp_path: Path, dtype: str) -> None:
    (tmp_path / "x").write_bytes(b"\x12")
    for flags in ({}, {"layers": "x", "shapes": "2", "files": f"x:{tmp_path / 'x'}"}):
        with pytest.raises(ModelError, match=f"Don't know how to populate tensor x of type {dtype}; convert the model"):
            made(tensor(dtype=dtype), **flags)


@pytest.mark.parametrize("sizes", ["2147483647,2147483647,2147483647", "2147483647,536870911"])
def test_an_input_beyond_all_memory_is_refused(sizes: str) -> None:
    shaped, _ = with_input_shapes(model(tensor(shape=(1,) * (sizes.count(",") + 1))), options("x", sizes))
    with pytest.raises(ConfigurationUnavailable, match="state a smaller --input_shape"):
        require_memory(shaped)


@pytest.mark.parametrize(("dtype", "limits"), [("uint8", "-1,5"), ("int8", "0,255"), ("uint32", "-2,-1")])
def test_a_range_beyond_the_type_is_refused(dtype: str, limits: str) -> None:
    with pytest.raises(UsageError, match=f"the input x: {dtype}.2. cannot hold .*; use limits within "):
        made(tensor(dtype=dtype), layers="x", shapes="2", ranges=f"x,{limits}")


def test_shapes_are_replaced_even_where_the_model_fixes_them() -> None:
    before = model(tensor(shape=(1, 4)), tensor("y", "int8", (3,), 7))
    after, warnings = with_input_shapes(before, options("x,y", "2,4:5"))
    assert ([info.shape for info in after.inputs], warnings) == ([(2, 4), (5,)], [])
    arrays, _ = make_inputs(after, options("x,y", "2,4:5"))
    assert [array.shape for array in arrays] == [(2, 4), (5,)]


def test_a_shape_that_the_model_leaves_open_runs(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(tiny_models.two_signatures())
    given = options("y", "4,5")
    shaped, warnings = with_input_shapes(read_model(tmp_path / "m.tflite", "negate"), given)
    assert (warnings, shaped.signature) == ([], "negate")
    (values,), _ = make_inputs(shaped, given)
    interpreter = make_interpreter(RUNTIMES[1], shaped.read())
    interpreter.resize_tensor_input(shaped.inputs[0].index, shaped.inputs[0].shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(shaped.inputs[0].index, values)
    interpreter.invoke()
    np.testing.assert_array_equal(interpreter.get_tensor(shaped.outputs[0].index), np.negative(values))


def test_a_picture_whose_sizes_nobody_states_is_warned_about() -> None:
    free = model(replace(tensor("image", shape=(1, 1, 1, 3)), shape_signature=(1, -1, -1, 3)))
    _, (warning,) = with_input_shapes(free, options())
    assert warning.endswith("State them, as in --input_layer=image --input_layer_shape=1,224,224,3")
    assert with_input_shapes(free, options("image", "1,8,8,3"))[1] == []


def test_other_names_are_only_warned_about() -> None:
    inputs = (tensor("image", index=4), tensor("size", index=9))
    _, warnings = with_input_shapes(model(*inputs), options("image,shape", "2:3"))
    assert warnings == ["Tensor # 9 is named size but flags call it shape"]
    assert len(make_inputs(model(*inputs), options("a,b", "2:2", "b,1,1"))[0]) == 2


def test_texts_keep_their_shape() -> None:
    shaped, warnings = with_input_shapes(model(tensor(dtype="string", shape=(1, 3))), options("x", "9"))
    assert shaped.inputs[0].shape == (1, 3)
    assert warnings == ["Tensor # 0 holds texts and keeps its shape 1,3"]


@pytest.mark.parametrize(
    ("layers", "shapes", "words"),
    [
        ("x", "1,2", "Inputs mismatch: Model inputs #:1 expected: 2. --input_layer names all inputs or none"),
        ("x,y", "2:1", "Input tensor #5 should have 2 dimensions! --input_layer_shape gives 1 for y: int8[1,2]"),
        ("x,y", ":1,2", "Input tensor #0 should have 1 dimensions!"),
        ("x,y", "0:1,2", "--input_layer_shape gives 0 for x: float32[2]; write 1 or more for each size"),
    ],
)
def test_shapes_that_do_not_fit_the_model_are_refused(layers: str, shapes: str, words: str) -> None:
    inputs = (tensor(), tensor("y", "int8", (1, 2), 5))
    with pytest.raises(UsageError) as caught:
        with_input_shapes(model(*inputs), options(layers, shapes))
    assert str(caught.value).startswith(words)
