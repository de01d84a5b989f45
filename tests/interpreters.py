"""Runs models in the interpreters of both runtimes, without evaltools, for tests."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

RUNTIMES = ("tflite_runtime", "ai_edge_litert")
BUILTIN_KERNELS = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
Array = npt.NDArray[Any]


def runtime_module(runtime: str) -> Any:
    """The runtime's interpreter module; the test is skipped if it is not installed."""
    try:
        return importlib.import_module(f"{runtime}.interpreter")
    except ImportError as error:
        pytest.skip(f"{runtime} is not installed: {error}")


def load_delegate(runtime: str, library: Path, **options: Any) -> Any:
    """The external delegate in ``library`` as an object of the runtime."""
    return runtime_module(runtime).load_delegate(str(library), options)


def make_interpreter(runtime: str, model: bytes, delegate: Any = None, kernels: str = BUILTIN_KERNELS) -> Any:
    """An interpreter with its tensors allocated; the delegate gets its nodes first."""
    module = runtime_module(runtime)
    interpreter = module.Interpreter(
        model_content=model,
        experimental_op_resolver_type=getattr(module.OpResolverType, kernels),
        experimental_delegates=[delegate] if delegate else None,
        num_threads=1,
    )
    interpreter.allocate_tensors()
    return interpreter


def run(interpreter: Any, inputs: Sequence[Array]) -> Array:
    """Invoke with these inputs, in the order of the model; returns the first output."""
    for detail, values in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], values)
    interpreter.invoke()
    output: Array = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    return output


def random_inputs(interpreter: Any, seed: int = 0) -> list[Array]:
    """Numbers from -1 to 1, or over the whole range of an integer type, for every input."""
    rng = np.random.default_rng(seed)
    return [_random(rng, d["shape"], d["dtype"]) for d in interpreter.get_input_details()]


def _random(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> Array:
    if np.issubdtype(dtype, np.floating):
        return rng.uniform(-1, 1, shape).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)


def delegated_outputs(interpreter: Any) -> list[list[str]]:
    """For every DELEGATE node the names of its output tensors."""
    names = {d["index"]: d["name"] for d in interpreter.get_tensor_details()}
    return [
        [names[index] for index in op["outputs"]]
        for op in interpreter._get_ops_details()
        if op["op_name"] == "DELEGATE"
    ]
