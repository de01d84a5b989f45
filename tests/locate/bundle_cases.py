"""Cases and results for tests of bundles, made from small models that really run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.operators.answer import Answer
from evaltools.operators.part import Case
from evaltools.result.facts import Environment, Model, RuntimeUsed
from evaltools.result.result import Result, Row
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array
from tests.locate import found
from tests.tflite_writer import Graph

EVIDENCE = (found.evidence("single", "0", 4, 4), found.evidence("taps", "0-1", 3, 3))
CPU = "runtime=litert kernels=builtin"


class SmallModel(Struct, frozen=True):
    """A model with one operator that matters, and what it is fed."""

    content: bytes
    inputs: tuple[Array, ...]
    operator: str
    tensor: str


def addition(name: str = "sum", shape: Sequence[int] = (2, 4), dtype: str = "float32") -> SmallModel:
    """x + y, with inputs that differ in shape-sized order, so that their order matters less than their values."""
    graph = Graph()
    left, right = graph.tensor("left", shape, dtype), graph.tensor("right", shape, dtype)
    graph.node("ADD", [left, right], graph.tensor(name, shape, dtype), "AddOptions")
    values = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    return SmallModel(graph.to_bytes([left, right], [2]), (values, values + 100), "ADD", name)


def large_sum() -> SmallModel:
    """The sum of more than fp16 holds: about 126 500, where 65 504 is the largest number."""
    graph = Graph()
    image = graph.tensor("image", (1, 112, 112, 1))
    axes = graph.constant("axes", np.array([1, 2], np.int32))
    total = graph.tensor("total", (1, 1, 1, 1))
    graph.node("SUM", [image, axes], total, "ReducerOptions", KeepDims=True)
    values = np.random.default_rng(1).uniform(0, 20, (1, 112, 112, 1)).astype(np.float32)
    return SmallModel(graph.to_bytes([image], [total]), (values,), "SUM", "total")


def case_of(
    model: SmallModel, flags: str, folder: Path, tolerance: float = 1e-5, unit: str = "absolute", runs: int = 1
) -> Case:
    """The case of the worst of several runs with a configuration, kept as ``locate`` keeps it."""
    path = folder / "part.tflite"
    path.write_bytes(model.content)
    configuration = Configuration.from_text("tested", flags)
    expected = outputs_of(path, CPU, model.inputs, 1)[0]
    given = outputs_of(path, flags, model.inputs, runs)
    off = [
        np.nan_to_num(np.abs(each.astype(np.float64) - expected.astype(np.float64)), nan=np.inf).max() for each in given
    ]
    arrays: dict[str, Any] = {f"input_{place + 7}": values for place, values in enumerate(model.inputs)}
    arrays |= {"expected": expected, "given": given[int(np.argmax(off))], "before": expected, "output": np.array(0)}
    np.savez(folder / "part.npz", **arrays)
    return Case(0, model.operator, model.tensor, unit, tolerance, path, folder / "part.npz", configuration)


def outputs_of(path: Path, flags: str, inputs: Sequence[Array], runs: int) -> list[Array]:
    session = open_session(read_model(path), Configuration.from_text("run", flags))
    try:
        return [session.run(inputs).outputs[0] for _ in range(runs)]
    finally:
        session.close()


def result_of(case: Case | None, parts: Sequence[Row] = EVIDENCE) -> Result:
    """A result with one suspect, that of the case."""
    name, tensor = (case.operator, case.tensor) if case else ("ADD", "sum")
    first = found.operator(0, name, tensor, "wrong", (2.0, 0.5), size=0.5, tolerance=0.1)
    first = found.suspected(first, ["single, operator 0: 4 of 4 runs beyond the tolerance"], *parts) if case else first
    other = found.operator(1, "MUL", "product", "not tried")
    flags = case.configuration.to_flags() if case else []
    used = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")
    environment = Environment("0.1.0", "3.11", "Linux", "x86_64", "a processor", 2, {"numpy": "1"}, "now", 1.0, [])
    at_fault = Answer(found.AT_FAULT, f"{found.AT_FAULT}: #0 {name}", "bad", (0,))
    model = Model("model.tflite", "0" * 64, 1000, 2, [], [])
    return found.search(Row("tested", flags=flags, runtime=used), model, environment, [first, other], at_fault)
