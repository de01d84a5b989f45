"""Faults of GPUs: each is found where it is and not where a way round is taken; a GPU is asked, if there is one."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.model import ModelFile, read_model
from evaltools.model.contents import read_contents
from evaltools.model.gpu_faults import GPU_FAULTS, IN_SOFTWARE, gpu_traps
from evaltools.runtime import open_session
from evaltools.runtime.session import Array
from tests.tflite_writer import Graph, Quantization

QUANTA: Final = {"input": Quantization(1 / 32, 0), "weights": Quantization(1 / 64, 0), "given": Quantization(1 / 4, 0)}
BIAS: Final = Quantization(1 / 32 / 64, 0)
AT_ONCE: Final = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}


def quanta(dtype: str, tensor: str) -> Quantization | None:
    return QUANTA[tensor] if dtype == "int8" else None


def numbers(shape: Sequence[int], dtype: str, seed: int = 0) -> Array:
    random = np.random.default_rng(seed)
    values = random.normal(size=shape) if dtype == "float32" else random.integers(-99, 99, shape)
    return values.astype(dtype)


def weights(graph: Graph, shape: Sequence[int], outputs: int, dtype: str) -> list[int]:
    """Weights and biases of so many outputs."""
    kernel = graph.constant("weights", numbers(shape, dtype), quanta(dtype, "weights"))
    if dtype == "int8":
        return [kernel, graph.constant("bias", np.zeros(outputs, np.int32), BIAS)]
    return [kernel, graph.constant("bias", np.zeros(outputs, np.float32))]


def dense(shape: Sequence[int], dtype: str = "int8", columns: int = 0, reshaped: bool = False) -> bytes:
    """FULLY_CONNECTED whose weights have so many ``columns``, 0: all; ``reshaped`` has a RESHAPE before it."""
    graph = Graph()
    fed = tensor = graph.tensor("input", shape, dtype, quantization=quanta(dtype, "input"))
    columns = columns or int(np.prod(shape))
    rows = int(np.prod(shape)) // columns
    if reshaped:
        target = graph.constant("shape", np.array((rows, columns), np.int32))
        flat = graph.tensor("flat", (rows, columns), dtype, quantization=quanta(dtype, "input"))
        tensor = graph.node("RESHAPE", [fed, target], flat, "ReshapeOptions")
    output = graph.tensor("given", (rows, 8), dtype, quantization=quanta(dtype, "given"))
    operands = [tensor, *weights(graph, (8, columns), 8, dtype)]
    return graph.to_bytes([fed], [graph.node("FULLY_CONNECTED", operands, output, "FullyConnectedOptions")])


def convolution(
    dtype: str = "int8", kernel: int = 1, stride: int = 2, sliced: bool = False, size: int = 8, multiplier: int = 0
) -> bytes:
    """Of 4 channels, with a stride, or on the pixels that a STRIDED_SLICE takes; DEPTHWISE with a ``multiplier``."""
    graph = Graph()
    fed = tensor = graph.tensor("input", (1, size, size, 4), dtype, quantization=quanta(dtype, "input"))
    out = -(-size // stride)
    if sliced:
        bounds = {"begin": [0, 0, 0, 0], "end": [1, size, size, 4], "strides": [1, stride, stride, 1]}
        places = [graph.constant(name, np.array(values, np.int32)) for name, values in bounds.items()]
        taken = graph.tensor("taken", (1, out, out, 4), dtype, quantization=quanta(dtype, "input"))
        tensor = graph.node("STRIDED_SLICE", [fed, *places], taken, "StridedSliceOptions")
    channels = 4 * multiplier if multiplier else 8
    output = graph.tensor("given", (1, out, out, channels), dtype, quantization=quanta(dtype, "given"))
    fields: dict[str, Any] = {**AT_ONCE, "StrideH": 1 if sliced else stride, "StrideW": 1 if sliced else stride}
    if multiplier:
        operands = [tensor, *weights(graph, (1, kernel, kernel, channels), channels, dtype)]
        fields["DepthMultiplier"] = multiplier
        made = graph.node("DEPTHWISE_CONV_2D", operands, output, "DepthwiseConv2DOptions", **fields)
    else:
        operands = [tensor, *weights(graph, (channels, kernel, kernel, 4), channels, dtype)]
        made = graph.node("CONV_2D", operands, output, "Conv2DOptions", **fields)
    return graph.to_bytes([fed], [made])


def transposed(size: int = 7, kernel: int = 3, stride: int = 2, dtype: str = "float32", cut: bool = False) -> bytes:
    """TRANSPOSE_CONV to ``size * stride`` pixels: padded (SAME), or VALID with what is more ``cut`` off."""
    graph = Graph()
    fed = graph.tensor("input", (1, size, size, 4), dtype, quantization=quanta(dtype, "input"))
    out, whole = size * stride, (size - 1) * stride + kernel
    made = whole if cut else out
    shape = graph.constant("shape", np.array((1, made, made, 8), np.int32))
    kernels = graph.constant("weights", numbers((8, kernel, kernel, 4), dtype), quanta(dtype, "weights"))
    tensor = graph.tensor("made", (1, made, made, 8), dtype, quantization=quanta(dtype, "given"))
    fields = {"Padding": int(cut), "StrideH": stride, "StrideW": stride}
    tensor = graph.node("TRANSPOSE_CONV", [shape, kernels, fed], tensor, "TransposeConvOptions", **fields)
    if cut:
        first = (whole - out) // 2
        bounds = {"begin": [0, first, first, 0], "end": [1, first + out, first + out, 8], "strides": [1, 1, 1, 1]}
        places = [graph.constant(name, np.array(values, np.int32)) for name, values in bounds.items()]
        output = graph.tensor("given", (1, out, out, 8), dtype, quantization=quanta(dtype, "given"))
        tensor = graph.node("STRIDED_SLICE", [tensor, *places], output, "StridedSliceOptions")
    return graph.to_bytes([fed], [tensor])


def with_constant(
    operator: str, dtype: str, shape: Sequence[int], constant: Sequence[int], comes_first: bool = False
) -> bytes:
    graph = Graph()
    fed = graph.tensor("input", shape, dtype, quantization=quanta(dtype, "input"))
    other = graph.constant("constant", numbers(constant, dtype, 5), quanta(dtype, "input"))
    made = np.broadcast_shapes(tuple(shape), tuple(constant))
    output = graph.tensor("given", made, dtype, quantization=quanta(dtype, "given"))
    operands = [other, fed] if comes_first else [fed, other]
    return graph.to_bytes([fed], [graph.node(operator, operands, output, f"{operator.title()}Options")])


def padded(shape: Sequence[int], dtype: str = "float32", reshaped: bool = False) -> bytes:
    """PAD of the last dimension but one; ``reshaped`` has a dimension of 1 in front."""
    graph = Graph()
    fed = tensor = graph.tensor("input", shape, dtype, quantization=quanta(dtype, "input"))
    if reshaped:
        shape = (1, *shape)
        target = graph.constant("shape", np.array(shape, np.int32))
        more = graph.tensor("more", shape, dtype, quantization=quanta(dtype, "input"))
        tensor = graph.node("RESHAPE", [fed, target], more, "ReshapeOptions")
    edges = np.zeros((len(shape), 2), np.int32)
    edges[-2] = (1, 2)
    made = tuple(np.add(shape, edges.sum(axis=1)).tolist())
    output = graph.tensor("given", made, dtype, quantization=quanta(dtype, "input"))
    return graph.to_bytes([fed], [graph.node("PAD", [tensor, graph.constant("edges", edges)], output, "PadOptions")])


FAULTY: Final = {
    "flattens float32": dense((1, 4, 4, 8), "float32"),
    "flattens int8": dense((1, 4, 4, 8)),
    "flattens two pixels": dense((1, 1, 2, 8), "float32"),
    "flattens a sequence": dense((1, 4, 8), "float32"),
    "rows of int8": dense((1, 4, 8), columns=8),
    "strides": convolution(),
    "subtracts from a constant": with_constant("SUB", "int32", (1, 4, 4, 8), (1, 4, 4, 8), comes_first=True),
    "multiplies channels": convolution(stride=1, multiplier=2),
    "multiplies channels of float32": convolution("float32", stride=1, multiplier=2),
    "pads otherwise": transposed(),
    "pads otherwise in int8": transposed(dtype="int8"),
    "pads another stride otherwise": transposed(size=4, stride=3),
    "one dimension": with_constant("ADD", "float32", (5,), (5,)),
    "one dimension of int8": with_constant("MUL", "int8", (5,), (5,), comes_first=True),
    "rows of a constant": with_constant("ADD", "float32", (3, 4), (3, 4)),
    "batches of a constant": with_constant("ADD", "float32", (1, 3, 4, 5), (2, 3, 4, 5)),
    "moves rows": padded((4, 5, 3)),
    "moves rows of int8": padded((4, 5, 3), "int8"),
}
FAULTLESS: Final = {
    "pads a first size of 1": padded((1, 5, 3)),
    "pads four dimensions": padded((2, 4, 5, 3)),
    "pads with a dimension of 1 in front": padded((4, 5, 3), reshaped=True),
    "flat": dense((1, 8), "float32"),
    "one pixel": dense((1, 1, 1, 8)),
    "reshaped float32": dense((1, 4, 4, 8), "float32", reshaped=True),
    "reshaped int8": dense((1, 4, 4, 8), reshaped=True),
    "reshaped rows": dense((1, 4, 8), columns=8, reshaped=True),
    "rows of float32": dense((1, 4, 8), "float32", columns=8),
    "strides of float32": convolution("float32"),
    "strides of a larger window": convolution(kernel=3),
    "no strides": convolution(stride=1),
    "sliced before": convolution(sliced=True),
    "subtracts from a constant of float32": with_constant("SUB", "float32", (1, 4, 8), (1, 4, 8), comes_first=True),
    "subtracts from one number": with_constant("SUB", "int32", (1, 4, 4, 8), (1,), comes_first=True),
    "subtracts a constant": with_constant("SUB", "int32", (1, 4, 4, 8), (1, 4, 4, 8)),
    "multiplies channels in a larger window": convolution(stride=1, multiplier=2, kernel=3),
    "does not multiply channels": convolution(stride=1, multiplier=1),
    "cut off instead of padded": transposed(cut=True),
    "an even size": transposed(size=8),
    "an even window": transposed(kernel=4),
    "a dimension in front": with_constant("ADD", "float32", (1, 5), (1, 5)),
    "one number": with_constant("ADD", "float32", (5,), (1,)),
    "a constant of fewer dimensions": with_constant("ADD", "int8", (1, 3, 4), (3, 4)),
    "as many batches": with_constant("ADD", "float32", (2, 3, 4, 5), (2, 3, 4, 5)),
    "one dimension of int32": with_constant("ADD", "int32", (5,), (5,)),
}


def save(folder: Path, content: bytes) -> ModelFile:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return read_model(path)


def faults_in(model: ModelFile) -> list[str]:
    graph = read_contents(model).main
    return [fault.wrong for fault in GPU_FAULTS for node in graph.nodes if fault.is_in(graph, node)]


@pytest.mark.parametrize("name", FAULTY)
def test_a_fault_is_found_once(tmp_path: Path, name: str) -> None:
    assert len(faults_in(save(tmp_path, FAULTY[name]))) == 1


def test_strides_to_one_pixel_are_one(tmp_path: Path) -> None:
    """A GPU in software is right there, an NVIDIA H200 was not."""
    assert len(faults_in(save(tmp_path, convolution(size=3, stride=3)))) == 1


@pytest.mark.parametrize("name", FAULTLESS)
def test_none_is_found_where_there_is_none(tmp_path: Path, name: str) -> None:
    assert faults_in(save(tmp_path, FAULTLESS[name])) == []


def test_each_fault_is_in_one_of_the_models(tmp_path: Path) -> None:
    found = {fault for content in FAULTY.values() for fault in faults_in(save(tmp_path, content))}
    assert found == {fault.wrong for fault in GPU_FAULTS}


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
@pytest.mark.parametrize("name", [*FAULTY, *FAULTLESS])
def test_a_gpu_is_wrong_where_a_fault_is_found_and_nowhere_else(tmp_path: Path, name: str) -> None:
    """Wrong by more than a thousandth, or by more than 2 steps."""
    model = save(tmp_path, (FAULTY | FAULTLESS)[name])
    fed = [numbers(model.inputs[0].shape, model.inputs[0].dtype, 1)]
    outputs = []
    for flags in ("runtime=litert kernels=builtin", "use_gpu=true gpu_precision_loss_allowed=false"):
        session = open_session(model, Configuration.from_text("side", flags))
        outputs.append(session.run(fed).outputs[0].astype(np.float64))
        session.close()
    limit = 2 if fed[0].dtype == np.int8 else 1e-3
    assert (np.abs(outputs[0] - outputs[1]).max() > limit) == (name in FAULTY)


def test_operators_with_a_fault_are_counted_by_number(tmp_path: Path) -> None:
    graph = Graph()
    fed = made = graph.tensor("input", (5,))
    for number in range(5):
        constant = graph.constant(f"constant {number}", np.ones(5, np.float32))
        made = graph.node("ADD", [made, constant], graph.tensor(f"sum {number}", (5,)), "AddOptions")
    (trap,) = gpu_traps(read_contents(save(tmp_path, graph.to_bytes([fed], [made]))).main)
    assert (trap.found, trap.source) == ("ADD #0, ADD #1, ADD #2 and 2 more", IN_SOFTWARE)
