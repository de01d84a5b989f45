"""Traps of GPUs: each is found in a graph that has it and in no other, and the measured one is measured again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.model.gpu_traps import MEASURED, GpuTrap, gpu_traps
from evaltools.runtime import open_session
from evaltools.runtime.session import Array
from tests.tflite_writer import Graph, Quantization


def save(folder: Path, content: bytes) -> ModelFile:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_model(path)


def traps_of(folder: Path, content: bytes) -> tuple[GpuTrap, ...]:
    return gpu_traps(read_contents(save(folder, content)).main)


QUANTA = {"input": Quantization(1 / 32, 0), "weights": Quantization(1 / 64, 0), "given": Quantization(1 / 4, 0)}


def dense(shape: tuple[int, ...], reshaped: bool = False, dtype: str = "float32") -> bytes:
    """FULLY_CONNECTED on an input of that shape, which it flattens itself unless it is ``reshaped`` first."""
    graph = Graph()
    quanta = QUANTA if dtype == "int8" else dict.fromkeys(QUANTA, None)
    fed = tensor = graph.tensor("input", shape, dtype, quantization=quanta["input"])
    count = int(np.prod(shape))
    if reshaped:
        target = graph.constant("shape", np.array((1, count), np.int32))
        flat = graph.tensor("flat", (1, count), dtype, quantization=quanta["input"])
        tensor = graph.node("RESHAPE", [fed, target], flat, "ReshapeOptions")
    random = np.random.default_rng(0)
    if dtype == "int8":
        weights = graph.constant("weights", random.integers(-127, 128, (8, count), np.int8), quanta["weights"])
        bias = graph.constant("bias", np.zeros(8, np.int32), Quantization(1 / 32 / 64, 0))
    else:
        weights = graph.constant("weights", random.normal(size=(8, count)).astype(np.float32))
        bias = graph.constant("bias", np.zeros(8, np.float32))
    output = graph.tensor("given", (1, 8), dtype, quantization=quanta["given"])
    given = graph.node("FULLY_CONNECTED", [tensor, weights, bias], output, "FullyConnectedOptions")
    return graph.to_bytes([fed], [given])


def convolution(dtype: str = "int8", kernel: int = 1, stride: int = 2, size: int = 8, sliced: bool = False) -> bytes:
    """CONV_2D of 4 channels, with a stride, or on the pixels that a STRIDED_SLICE before it takes."""
    graph = Graph()
    fed = tensor = graph.tensor("input", (1, size, size, 4), dtype, quantization=_of(dtype, "input"))
    out = -(-size // stride)
    if sliced:
        places = [graph.constant(*entry) for entry in _slice(size, stride)]
        taken = graph.tensor("taken", (1, out, out, 4), dtype, quantization=_of(dtype, "input"))
        tensor = graph.node("STRIDED_SLICE", [fed, *places], taken, "StridedSliceOptions")
    random = np.random.default_rng(0)
    values = random.integers(-127, 128, (8, kernel, kernel, 4), np.int8)
    weights = graph.constant("weights", values.astype(dtype), _of(dtype, "weights"))
    if dtype == "int8":
        bias = graph.constant("bias", np.zeros(8, np.int32), Quantization(1 / 32 / 64, 0))
    else:
        bias = graph.constant("bias", np.zeros(8, np.float32))
    output = graph.tensor("given", (1, out, out, 8), dtype, quantization=_of(dtype, "given"))
    strides = {"StrideH": 1 if sliced else stride, "StrideW": 1 if sliced else stride}
    dilations = {"DilationHFactor": 1, "DilationWFactor": 1}
    given = graph.node("CONV_2D", [tensor, weights, bias], output, "Conv2DOptions", **strides, **dilations)
    return graph.to_bytes([fed], [given])


def _of(dtype: str, tensor: str) -> Quantization | None:
    return QUANTA[tensor] if dtype == "int8" else None


def _slice(size: int, stride: int) -> list[tuple[str, Array]]:
    bounds = {"begin": [0, 0, 0, 0], "end": [1, size, size, 4], "strides": [1, stride, stride, 1]}
    return [(name, np.array(values, np.int32)) for name, values in bounds.items()]


def subtraction(dtype: str = "int32", shape: tuple[int, ...] = (1, 4, 4, 8), from_constant: bool = True) -> bytes:
    graph = Graph()
    fed = graph.tensor("input", (1, 4, 4, 8), dtype)
    constant = graph.constant("constant", np.arange(1, 1 + np.prod(shape)).reshape(shape).astype(dtype))
    operands = [constant, fed] if from_constant else [fed, constant]
    return graph.to_bytes(
        [fed], [graph.node("SUB", operands, graph.tensor("given", (1, 4, 4, 8), dtype), "SubOptions")]
    )


def chain(*operators: str, shape: tuple[int, ...] = (1, 8, 8, 4), signature: tuple[int, ...] = ()) -> bytes:
    graph = Graph()
    fed = tensor = graph.tensor("input", shape, shape_signature=signature)
    for operator in operators:
        tensor = graph.node(operator, [tensor], graph.tensor(operator, shape))
    return graph.to_bytes([fed], [tensor])


def test_a_graph_without_them_has_none(tmp_path: Path) -> None:
    assert traps_of(tmp_path, chain("NEG", "RESHAPE", "RESHAPE", "RESHAPE")) == ()
    assert traps_of(tmp_path, dense((1, 1, 1, 8))) == ()


@pytest.mark.parametrize("operator", ["BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH"])
def test_operators_that_only_move_data_are_named(tmp_path: Path, operator: str) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", operator, operator))
    assert trap.found == f"{operator} x2"
    assert "GPU delegates" in trap.source


def test_many_reshapes_are_counted(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", *["RESHAPE"] * 4))
    assert trap.found == "RESHAPE x4, 80 % of the nodes"


def test_channels_that_are_no_multiple_of_4_are_found_with_what_they_cost(tmp_path: Path) -> None:
    """5 channels are kept as 8: two tensors of 8 instead of 5."""
    (trap,) = traps_of(tmp_path, chain("NEG", shape=(1, 2, 2, 5)))
    assert trap.found.startswith("2 of 2 tensors of 4 dimensions, such as 'input' [1,2,2,5]")
    assert trap.found.endswith("1.60 times the memory")


def test_batches_are_found(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", shape=(3, 8, 8, 4)))
    assert trap.found == "'input' [3,8,8,4]"


def test_free_sizes_are_found(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, chain("NEG", signature=(-1, 8, 8, 4)))
    assert trap.found == "'input' [-1,8,8,4]"


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("shape", [(1, 4, 4, 8), (1, 1, 2, 8), (1, 4, 8)])
def test_a_fully_connected_that_flattens_is_found(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    (trap,) = traps_of(tmp_path, dense(shape, dtype=dtype))
    assert (trap.found, trap.source) == ("FULLY_CONNECTED #0", MEASURED)
    assert traps_of(tmp_path, dense(shape, reshaped=True, dtype=dtype)) == ()


def test_strides_of_a_window_of_one_pixel_are_found(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, convolution())
    assert (trap.found, trap.source) == ("CONV_2D #0", MEASURED)
    assert "STRIDED_SLICE" in trap.trap


@pytest.mark.parametrize(
    "content",
    [
        convolution("float32"),
        convolution(kernel=3),
        convolution(stride=1),
        convolution(sliced=True),
    ],
    ids=["float32", "a larger window", "no stride", "sliced before"],
)
def test_strides_that_a_gpu_takes_are_no_trap(tmp_path: Path, content: bytes) -> None:
    assert traps_of(tmp_path, content) == ()


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
@pytest.mark.parametrize(
    ("content", "is_wrong"),
    [(convolution(), True), (convolution(kernel=3), False), (convolution(sliced=True), False)],
    ids=["strides", "a larger window", "sliced before"],
)
def test_a_gpu_ignores_the_strides_of_a_window_of_one_pixel(tmp_path: Path, content: bytes, is_wrong: bool) -> None:
    model = save(tmp_path, content)
    fed = [np.random.default_rng(1).integers(-127, 128, model.inputs[0].shape, np.int8)]
    assert (_largest_difference(model, fed) > 4) == is_wrong


def test_a_subtraction_from_a_constant_is_found(tmp_path: Path) -> None:
    (trap,) = traps_of(tmp_path, subtraction())
    assert (trap.found, trap.source) == ("SUB #0", MEASURED)
    for content in (subtraction("float32"), subtraction(shape=(1,)), subtraction(from_constant=False)):
        assert traps_of(tmp_path, content) == ()


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
@pytest.mark.parametrize(
    ("content", "is_wrong"),
    [
        (subtraction(), True),
        (subtraction("float32"), False),
        (subtraction(shape=(1,)), False),
        (subtraction(from_constant=False), False),
    ],
    ids=["from a constant", "float32", "one number", "a constant from it"],
)
def test_a_gpu_subtracts_a_constant_of_int32_that_comes_first(tmp_path: Path, content: bytes, is_wrong: bool) -> None:
    model = save(tmp_path, content)
    fed = [np.arange(128, 256).reshape(1, 4, 4, 8).astype(model.inputs[0].dtype)]
    assert (_largest_difference(model, fed) > 1) == is_wrong


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize(("reshaped", "is_wrong"), [(False, True), (True, False)])
def test_a_gpu_gives_wrong_values_where_fully_connected_flattens(
    tmp_path: Path, reshaped: bool, is_wrong: bool, dtype: str
) -> None:
    """Wrong by more than 1, or by more than 4 quanta."""
    model = save(tmp_path, dense((1, 4, 4, 8), reshaped, dtype))
    random = np.random.default_rng(1)
    floats = random.normal(size=(1, 4, 4, 8)).astype(np.float32)
    fed = [floats if dtype == "float32" else random.integers(-127, 128, floats.shape, np.int8)]
    assert (_largest_difference(model, fed) > (1 if dtype == "float32" else 4)) == is_wrong


def _largest_difference(model: ModelFile, fed: Sequence[Array]) -> float:
    """Between builtin kernels and the GPU in fp32."""
    outputs = []
    for flags in ("runtime=litert kernels=builtin", "use_gpu=true gpu_precision_loss_allowed=false"):
        session = open_session(model, Configuration.from_text("side", flags))
        outputs.append(session.run(fed).outputs[0].astype(np.float64))
        session.close()
    return float(np.abs(outputs[0] - outputs[1]).max())
