"""The example external delegate computes what its README says, in both runtimes."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests import tiny_models
from tests.example_delegate import SOURCE_DIR
from tests.interpreters import (
    RUNTIMES,
    Array,
    delegated_outputs,
    load_delegate,
    make_interpreter,
    random_inputs,
    run,
)
from tests.tiny_models import Window

Floats = npt.NDArray[np.float32]
Rounding = Callable[[Floats], Floats]

both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)

WINDOWS = [
    Window(),
    Window(padding="VALID"),
    Window(kernel=(1, 1)),
    Window(kernel=(2, 5), stride=(2, 3)),
    Window(kernel=(5, 2), stride=(3, 1), padding="VALID"),
    Window(dilation=(2, 3)),
    Window(dilation=(2, 1), padding="VALID"),
    Window(activation="RELU"),
    Window(activation="RELU6"),
    Window(activation="RELU_N1_TO_1"),
]


def to_fp16(values: Floats) -> Floats:
    """Round to IEEE binary16 as NumPy does."""
    with np.errstate(over="ignore"):
        return values.astype(np.float16).astype(np.float32)


def to_bf16(values: Floats) -> Floats:
    """Round finite numbers to 8 significant bits, ties to even, by float64 arithmetic."""
    exact = values.astype(np.float64)
    _, exponent = np.frexp(exact)
    step = np.ldexp(1.0, np.maximum(exponent, -125) - 8)
    with np.errstate(over="ignore"):
        rounded: Floats = (np.rint(exact / step) * step).astype(np.float32)
    return rounded


ROUNDINGS = [("fp16", to_fp16), ("bf16", to_bf16)]
with_rounding = pytest.mark.parametrize(("precision", "rounding"), ROUNDINGS)


def both_outputs(
    runtime: str, model: bytes, delegate: Any, kernels: str = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
) -> tuple[Array, Array]:
    """The outputs of the CPU and of the delegate, which must have taken a node."""
    cpu = make_interpreter(runtime, model, kernels=kernels)
    inputs = random_inputs(cpu)
    delegated = make_interpreter(runtime, model, delegate, kernels)
    assert delegated_outputs(delegated)
    return run(cpu, inputs), run(delegated, inputs)


@both_runtimes
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_exact_conv_equals_the_builtin_kernel(runtime: str, rounding_delegate: Path, window: Window) -> None:
    model = tiny_models.conv((2, 9, 12, 3), 5, window)
    expected, actual = both_outputs(runtime, model, load_delegate(runtime, rounding_delegate, precision="fp32"))
    np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@both_runtimes
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 4, 5, 3), (1, 4, 5, 3)),
        ((1, 4, 5, 3), (3,)),
        ((1,), (1, 4, 5, 3)),
        ((2, 4, 5, 3), (1, 4, 1, 3)),
        ((2, 1, 5, 1), (1, 4, 1, 3)),
        ((5, 3), (4, 1, 1)),
        ((7,), (7,)),
    ],
    ids=str,
)
def test_exact_add_broadcasts_like_numpy(
    runtime: str, rounding_delegate: Path, left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    interpreter = make_interpreter(
        runtime,
        tiny_models.two_inputs(left, right),
        load_delegate(runtime, rounding_delegate, precision="fp32"),
    )
    a, b = random_inputs(interpreter)
    assert delegated_outputs(interpreter) == [["sum"]]
    np.testing.assert_array_equal(run(interpreter, [a, b]), a + b)


def numbers_to_round() -> Floats:
    """Every kind of float32: halves, their neighbours and midpoints, random bits, extremes."""
    halves: Floats = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = (halves[:-1] + halves[1:]) / 2
    special = np.array([0, 65504, 65519.996, 65520, 1e-45, 3.4e38, np.inf], np.float32)
    positive: Floats = np.concatenate([halves, middles, special])
    near: list[Floats] = [np.nextafter(positive, np.float32(limit)) for limit in (0, np.inf)]
    bits = np.random.default_rng(0).integers(0, 2**32, 100_000, dtype=np.uint32)
    bits_of_ties = (bits & np.uint32(0xFFFF0000)) | np.uint32(0x8000)
    random = [bits.view(np.float32), bits_of_ties.view(np.float32)]
    numbers: Floats = np.concatenate([positive, *near, *random])
    return np.concatenate([numbers, np.negative(numbers)])


@both_runtimes
@with_rounding
def test_rounds_every_kind_of_number(runtime: str, rounding_delegate: Path, precision: str, rounding: Rounding) -> None:
    numbers = numbers_to_round()
    if precision == "bf16":
        numbers = numbers[np.isfinite(numbers)]
    model = tiny_models.two_inputs((len(numbers),), (1,))
    interpreter = make_interpreter(runtime, model, load_delegate(runtime, rounding_delegate, precision=precision))
    actual = run(interpreter, [numbers, np.zeros(1, np.float32)])
    np.testing.assert_array_equal(actual, rounding(numbers))


def pointwise_conv(image: Floats, weights: Floats, bias: Floats) -> Floats:
    """A 1x1 convolution, summed in float64."""
    exact = image.astype(np.float64) @ weights[:, 0, 0, :].T + bias
    return exact.astype(np.float32)


@both_runtimes
@with_rounding
def test_conv_rounds_operands_and_result(
    runtime: str, rounding_delegate: Path, precision: str, rounding: Rounding
) -> None:
    model = tiny_models.conv((1, 8, 8, 16), 8, Window(kernel=(1, 1)))
    cpu = make_interpreter(runtime, model)
    index = {d["name"]: d["index"] for d in cpu.get_tensor_details()}
    (image,) = random_inputs(cpu)
    weights, bias = cpu.get_tensor(index["weights"]), cpu.get_tensor(index["bias"])
    delegated = make_interpreter(runtime, model, load_delegate(runtime, rounding_delegate, precision=precision))
    actual = run(delegated, [image])
    expected = rounding(pointwise_conv(rounding(image), rounding(weights), rounding(bias)))
    assert np.mean(actual == expected) > 0.99
    np.testing.assert_allclose(actual, expected, rtol=2.0**-7, atol=1e-6)


@both_runtimes
def test_whole_model(runtime: str, rounding_delegate: Path) -> None:
    model = tiny_models.classifier()
    exact, same = both_outputs(runtime, model, load_delegate(runtime, rounding_delegate, precision="fp32"))
    _, rounded = both_outputs(runtime, model, load_delegate(runtime, rounding_delegate, precision="fp16"))
    np.testing.assert_allclose(same, exact, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(rounded, exact, rtol=1e-2)
    assert not np.array_equal(rounded, exact)


@both_runtimes
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(tiny_models.add_chain(dtype="int32"), id="int32"),
        pytest.param(tiny_models.add_chain(dtype="int8"), id="int8"),
        pytest.param(tiny_models.conv((1, 8, 8, 4), groups=2), id="grouped convolution"),
        pytest.param(tiny_models.two_inputs(activation="TANH"), id="other activation"),
        pytest.param(tiny_models.two_inputs((1, 2, 2, 2, 2), (2,)), id="five dimensions"),
        pytest.param(tiny_models.vector_input(), id="no supported op"),
    ],
)
def test_nodes_left_to_the_cpu(runtime: str, rounding_delegate: Path, model: bytes) -> None:
    cpu = make_interpreter(runtime, model)
    delegated = make_interpreter(runtime, model, load_delegate(runtime, rounding_delegate))
    inputs = random_inputs(cpu)
    assert delegated_outputs(delegated) == []
    np.testing.assert_array_equal(run(delegated, inputs), run(cpu, inputs))


def test_builds_with_make(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    copy = tmp_path / "external_delegate"
    shutil.copytree(SOURCE_DIR, copy, ignore=shutil.ignore_patterns("*.so"))
    subprocess.run(["make", "-C", str(copy)], check=True, capture_output=True)
    assert (copy / "rounding_delegate.so").is_file()
    subprocess.run(["make", "-C", str(copy), "clean"], check=True, capture_output=True)
    assert not (copy / "rounding_delegate.so").exists()
