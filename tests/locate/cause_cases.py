"""Cases for signatures: a real model of one operator, its outputs on the CPU, and a fault made on these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evaltools.configuration import Configuration
from evaltools.locate.part import Case
from evaltools.model import read_model
from evaltools.runtime.registry import open_session
from tests.tflite_writer import Graph, Quantization

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
CPU = Configuration("CPU", kernels="builtin")


def random(shape: Sequence[int], seed: int = 0, scale: float = 1.0) -> Floats:
    """Normal numbers, the same each time."""
    return (scale * np.random.default_rng(seed).standard_normal(tuple(shape))).astype(np.float32)


def whole(shape: Sequence[int], seed: int = 0, low: int = -128, high: int = 127) -> Array:
    """Bytes, the same each time."""
    return np.random.default_rng(seed).integers(low, high + 1, tuple(shape)).astype(np.int8)


def run(path: Path, inputs: Sequence[Array], configuration: Configuration = CPU) -> Array:
    """The first output."""
    session = open_session(read_model(path), configuration)
    try:
        return session.run(list(inputs)).outputs[0]
    finally:
        session.close()


def model(
    operator: str,
    inputs: Sequence[Array],
    output: Sequence[int],
    constants: Sequence[Array] = (),
    options: str = "",
    quantizations: Sequence[Quantization | None] = (),
    constants_first: bool = False,
    dtype: str = "",
    **fields: Any,
) -> bytes:
    """A model of one operator: its inputs, then its constants; quantisations are theirs and the output's, in order."""
    graph = Graph()
    rest = iter([*quantizations, *[None] * (len(inputs) + len(constants) + 1 - len(quantizations))])
    fed = [graph.tensor(f"x{place}", each.shape, each.dtype.name, next(rest)) for place, each in enumerate(inputs)]
    fixed = [graph.constant(f"c{place}", each, next(rest)) for place, each in enumerate(constants)]
    made = graph.tensor("y", output, dtype or inputs[0].dtype.name, next(rest))
    graph.node(operator, [*fixed, *fed] if constants_first else [*fed, *fixed], made, options, **fields)
    return graph.to_bytes(fed, [made])


def case(
    folder: Path,
    operator: str,
    content: bytes,
    inputs: Sequence[Array],
    fault: Callable[[Array], Array],
    tolerance: float | None = None,
    before: Sequence[Array] | None = None,
) -> Case:
    """A case whose ``given`` is what the fault makes of the CPU's output."""
    path = folder / "part.tflite"
    path.write_bytes(content)
    expected = run(path, inputs)
    earlier = run(path, before or [np.roll(each, 7) for each in inputs])
    fed: dict[str, Any] = {f"input_{10 + place}": each for place, each in enumerate(inputs)}
    given = fault(expected)
    assert given.dtype == expected.dtype
    np.savez(folder / "part.npz", **fed, expected=expected, given=given, before=earlier, output=0)
    steps = expected.dtype in (np.int8, np.uint8, np.int16)
    limit = 1e-5 * float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    return Case(
        index=3,
        operator=operator,
        tensor="y",
        unit="steps" if steps else "absolute",
        tolerance=tolerance if tolerance is not None else 1.0 if steps else limit,
        model=path,
        arrays=folder / "part.npz",
        configuration=CPU,
    )
