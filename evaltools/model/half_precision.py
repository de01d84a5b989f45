"""Constants that fp16 cannot hold, as a GPU that computes in fp16 meets them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.model.contents import Graph

LARGEST: Final = 65504.0
"""The largest finite number of IEEE 754 binary16; what is larger becomes infinite or is capped."""
SMALLEST_NORMAL: Final = 2.0**-14
"""Nonzero numbers below have fewer than 11 significant bits; hardware may take them for 0."""
SMALLEST: Final = 2.0**-24
"""The smallest number above 0; nonzero numbers below become 0 (or this one, where rounding goes up)."""


class HalfCount(Struct, frozen=True):
    """How many of ``values`` numbers fp16 cannot hold: each is counted once.

    ``too_large`` are finite ones above 65504, ``vanish`` nonzero ones below 2^-24, ``subnormal`` those from there to
    2^-14. ``largest`` and ``smallest`` are the extreme magnitudes, nonzero and finite, None where there is none.
    """

    values: int
    too_large: int
    vanish: int
    subnormal: int
    largest: float | None
    smallest: float | None

    @property
    def outside(self) -> int:
        """How many numbers become infinity, 0, or lose digits in fp16."""
        return self.too_large + self.vanish + self.subnormal


class OutsideHalf(Struct, frozen=True):
    """A constant of a graph that fp16 does not hold, the ``consumers`` that take it, and the counts."""

    graph: int
    tensor: str
    consumers: tuple[str, ...]
    count: HalfCount


def count_outside_half(values: npt.NDArray[np.floating[Any]]) -> HalfCount:
    """Count the numbers of an array of any shape, float32 or float64, that IEEE 754 binary16 does not hold.

    Infinite numbers and NaN are infinite and NaN in fp16, too, so they do not count. Source: IEEE 754-2019, binary16
    (11 significant bits, exponents -14 to 15).

    >>> count_outside_half(np.array([1.0, 0.0, 1e5, 1e-5, 1e-9], np.float32)).outside
    3
    """
    magnitudes = np.abs(values[np.isfinite(values)])
    magnitudes = magnitudes[magnitudes > 0]
    return HalfCount(
        values=int(values.size),
        too_large=int(np.count_nonzero(magnitudes > LARGEST)),
        vanish=int(np.count_nonzero(magnitudes < SMALLEST)),
        subnormal=int(np.count_nonzero((magnitudes >= SMALLEST) & (magnitudes < SMALLEST_NORMAL))),
        largest=float(magnitudes.max()) if magnitudes.size else None,
        smallest=float(magnitudes.min()) if magnitudes.size else None,
    )


def constants_outside_half(graphs: Sequence[Graph]) -> tuple[OutsideHalf, ...]:
    """The float32 constants with numbers that become infinity or 0 in fp16, in the file's order.

    Those that only have subnormal numbers are not among them: fp16 holds these with fewer digits, and nearly all
    weights have some.
    """
    found = []
    for number, graph in enumerate(graphs):
        for tensor in graph.tensors:
            if tensor.dtype != "float32" or tensor.constant is None:
                continue
            count = count_outside_half(tensor.values("float32").astype(np.float32))
            if count.too_large or count.vanish:
                consumers = (f"{node.operator} #{node.index}" for node in graph.nodes if tensor.index in node.inputs)
                found.append(OutsideHalf(number, tensor.name, tuple(consumers), count))
    return tuple(found)
