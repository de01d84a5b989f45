"""The delegate written in Python is a real one, in both runtimes."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tests import tiny_models
from tests.example_delegate import PythonDelegate
from tests.interpreters import RUNTIMES, delegated_outputs, make_interpreter, random_inputs, run

both_runtimes = pytest.mark.parametrize("runtime", RUNTIMES)


@both_runtimes
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_chain_within_one_partition(runtime: str, dtype: type[np.floating[Any]]) -> None:
    delegate = PythonDelegate(dtype)
    interpreter = make_interpreter(runtime, tiny_models.add_chain(length=4), delegate)
    gc.collect()
    for seed in range(2):
        (image,) = random_inputs(interpreter, seed)
        total = image.astype(dtype)
        for _ in range(4):
            total += image.astype(dtype)
        np.testing.assert_array_equal(run(interpreter, [image]), total.astype(np.float32))
    assert (delegate.selected, delegate.partitions, delegate.invocations) == (4, 1, 2)


@both_runtimes
def test_several_partitions(runtime: str) -> None:
    delegate = PythonDelegate(np.float32)
    interpreter = make_interpreter(runtime, tiny_models.add_and_negate(pairs=20), delegate)
    (image,) = random_inputs(interpreter)
    np.testing.assert_array_equal(run(interpreter, [image]), image)
    assert (delegate.selected, delegate.partitions, delegate.invocations) == (20, 20, 20)
    assert len(delegated_outputs(interpreter)) == 20


@both_runtimes
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(tiny_models.vector_input(), id="no ADD"),
        pytest.param(tiny_models.add_chain(dtype="int32"), id="int32"),
        pytest.param(tiny_models.two_inputs((1, 4), (1,)), id="broadcast"),
        pytest.param(tiny_models.two_inputs(activation="RELU"), id="activation"),
    ],
)
def test_takes_no_node(runtime: str, model: bytes) -> None:
    delegate = PythonDelegate()
    cpu, delegated = make_interpreter(runtime, model), make_interpreter(runtime, model, delegate)
    inputs = random_inputs(cpu)
    np.testing.assert_array_equal(run(delegated, inputs), run(cpu, inputs))
    assert (delegate.selected, delegate.partitions, delegate.invocations) == (0, 0, 0)
    assert delegated_outputs(delegated) == []


@both_runtimes
def test_counts_after_an_input_was_resized(runtime: str) -> None:
    delegate = PythonDelegate(np.float32)
    interpreter = make_interpreter(runtime, tiny_models.add_chain(length=3), delegate)
    interpreter.resize_tensor_input(0, (2, 4, 4, 3))
    interpreter.allocate_tensors()
    (image,) = random_inputs(interpreter)
    np.testing.assert_allclose(run(interpreter, [image]), 4 * image, rtol=1e-6)
    assert (delegate.selected, delegate.partitions, delegate.invocations) == (3, 1, 1)


@both_runtimes
def test_failing_prepare(runtime: str) -> None:
    with pytest.raises(RuntimeError, match="PythonDelegate: prepare fails, as asked"):
        make_interpreter(runtime, tiny_models.add_chain(), PythonDelegate(fail="prepare"))


@both_runtimes
def test_failing_invoke(runtime: str) -> None:
    delegate = PythonDelegate(fail="invoke")
    interpreter = make_interpreter(runtime, tiny_models.add_chain(), delegate)
    with pytest.raises(RuntimeError, match="PythonDelegate: invoke fails, as asked"):
        interpreter.invoke()
    assert delegate.invocations == 0
