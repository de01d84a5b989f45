"""Copies of a quantised model in which every operator rounds once more, as kernels that are right may do.

A bias is moved by up to half a step of the operator's output, per channel and at random: what then comes out is off by
as much as one rounding to the output's scale. Operators without a bias, such as MUL of two activations, pooling and
concatenation, round as before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.model.contents import Graph, GraphTensor, Operation, read_graphs

_BIAS: Final[Mapping[str, int]] = {"CONV_2D": 2, "DEPTHWISE_CONV_2D": 2, "FULLY_CONNECTED": 2, "TRANSPOSE_CONV": 3}
"""The position of the bias among the inputs."""
_ADDED: Final = ("ADD", "SUB")
"""Operators whose constant operand serves as a bias."""


def dithered(content: bytes, seed: int) -> tuple[bytes, int]:
    """A copy of a model with moved biases, and how many values were moved; the same seed gives the same copy."""
    copy = bytearray(content)
    random = np.random.default_rng(seed)
    moved: set[int] = set()
    count = 0
    for graph in read_graphs(memoryview(copy)):
        for node in graph.nodes:
            bias, step = _bias_of(graph, node), _step_of_output(graph, node)
            if bias is None or bias.constant is None or not step or id(bias.constant) in moved:
                continue
            moved.add(id(bias.constant))
            count += _move(bias, step, random)
    return bytes(copy), count


def _bias_of(graph: Graph, node: Operation) -> GraphTensor | None:
    """The constant that is added to what an operator gives, in whole numbers that stand for real ones."""
    places = (0, 1) if node.operator in _ADDED else (_BIAS.get(node.operator, -1),)
    tensors = [graph.tensor(node.inputs[place]) for place in places if 0 <= place < len(node.inputs)]
    return next(
        (each for each in tensors if each is not None and each.constant is not None and each.is_quantized), None
    )


def _step_of_output(graph: Graph, node: Operation) -> float:
    given = graph.tensor(node.outputs[0]) if node.outputs else None
    return 0.0 if given is None else given.step


def _move(bias: GraphTensor, step: float, random: np.random.Generator) -> int:
    """Move each value of a constant by up to half a ``step`` of real numbers, and return how many there are."""
    values: npt.NDArray[np.signedinteger[npt.NBitBase]] = bias.values(bias.dtype)  # type: ignore[assignment]
    scales = np.array(bias.scales)
    if bias.dtype == "int4" or not values.size or not scales.all() or len(scales) not in (1, values.size):
        return 0
    moves = random.uniform(-0.5, 0.5, values.size) * step / scales
    limits = np.iinfo(values.dtype)
    rounded = np.floor(moves + random.random(values.size))
    values[...] = np.clip(values + rounded, limits.min, limits.max).astype(values.dtype)
    return int(values.size)
