"""What a FULLY_CONNECTED gives that flattens its input itself, and reads little of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from evaltools.locate.causes.view import View, quantization
from evaltools.result.locate import Cause
from evaltools.runtime.session import Array

RESHAPE_FIRST: Final = "put a RESHAPE before a FULLY_CONNECTED that flattens its input itself"
SLICE: Final = 4
"""Channels that GPUs keep together."""
_WEIGHTS: Final = 1
_TOGETHER: Final = (8, 4)
"""How many outputs GPUs compute together."""


def part_read(view: View) -> Cause | None:
    """``given`` is what a FULLY_CONNECTED gives for the first values of the first column, as if all others were 0.

    So does the WebGPU accelerator of ai-edge-litert 2.3.0 where the operator flattens [1,H,W,C] itself: it takes C for
    the length of a row of weights, so that those of later outputs are taken from the rows of the first ones, too.
    """
    if view.operator != "FULLY_CONNECTED" or view.node is None or not view.wrong.any():
        return None
    place, tensor = view.fed_to(0), view.operand_tensors[0]
    if place is None or tensor is None or view.case.inputs[place].ndim not in (3, 4) or not view.repeats:
        return None
    values, zero = view.case.inputs[place], quantization(tensor)[1]
    rest = view.case.inputs
    for told, constants in _weights(view, values.shape[-1]):
        words = view.nearest_that_explains(
            (
                (f"{count} of the {values.size}", [some if index == place else each for index, each in enumerate(rest)])
                for count, some in first_values(values, zero)
            ),
            constants,
        )
        if words:
            return Cause(
                "most of the input was not read",
                f"all {view.given.size} values are what the CPU gives for {words} values of {tensor.name!r}, the first "
                f"ones of its first column, {told}",
                RESHAPE_FIRST,
            )
    return None


def first_values(values: Array, zero: float) -> Iterator[tuple[int, Array]]:
    """The first values of the first column of [N,H,W,C] or [N,W,C], in front of nothing but zeros, and how many.

    >>> [(count, some.ravel().tolist()) for count, some in first_values(np.arange(1, 7).reshape(1, 3, 1, 2), 0)]
    [(2, [1, 2, 0, 0, 0, 0]), (4, [1, 2, 3, 4, 0, 0])]
    """
    column = (values[:, :, 0] if values.ndim == 4 else values[:, :1]).reshape(-1)
    counts = {values.shape[-1] * 2**power for power in range(8)} | {SLICE * 2**power for power in range(8)}
    for count in sorted(counts):
        if values.shape[-1] <= count <= column.size and count < values.size:
            some = np.full(values.size, zero, values.dtype)
            some[:count] = column[:count]
            yield count, some.reshape(values.shape)


def _weights(view: View, channels: int) -> Iterator[tuple[str, dict[int, bytes]]]:
    """Which weights may have been used, in words, and what the constant then holds; nothing where it is as it was."""
    yield "with the first weights", {}
    tensor, weights = view.operand_tensors[_WEIGHTS], view.operands[_WEIGHTS]
    if tensor is None or weights is None or tensor.constant is None or weights.ndim != 2:
        return
    for together in _TOGETHER:
        if together < len(weights):
            told = f"with the weights of the first {together} outputs for the others as well"
            yield told, {tensor.index: taken_for_rows_of(channels, weights, together).tobytes()}


def taken_for_rows_of(channels: int, weights: Array, together: int) -> Array:
    """Weights as they are found where a row is taken to be as long as the channels, padded to whole slices of four.

    Outputs are computed ``together``: row ``u`` comes from row ``u % together``, one such row further for each round.

    >>> taken_for_rows_of(2, np.arange(12).reshape(2, 6), 1).tolist()
    [[0, 1, 2, 3, 4, 5], [4, 5, 0, 0, 0, 0]]
    """
    taken = np.zeros_like(weights)
    for row in range(len(weights)):
        first = row // together * -(-channels // SLICE) * SLICE
        found = weights[row % together, first:]
        taken[row, : found.size] = found
    return taken
