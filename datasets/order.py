"""Which examples are evaluated, and in which order."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, TypeVar

Order = Literal["native", "random"]
Item = TypeVar("Item")


def places(there: int, count: int = 0, order: Order = "native", seed: int = 1) -> Sequence[int]:
    """The places, in the order in which they are run, of ``count`` of so many examples; 0: of all.

    A random order is that of the SHA-256 of ``SEED:PLACE``, so that it is the same with every version of Python and
    NumPy, on every machine. So the first ``count`` are a fair sample of all, and of a larger sample with that seed.

    >>> places(6, 3), places(6, 3, "random", seed=3), places(6, 3, "random", seed=4)
    (range(0, 3), [5, 4, 1], [3, 0, 5])
    """
    native = range(there)
    chosen = native if order == "native" else sorted(native, key=lambda place: _drawn(seed, place))
    return chosen[:count] if count > 0 else chosen


def chosen(items: Sequence[Item], count: int = 0, order: Order = "native", seed: int = 1) -> list[Item]:
    """The items at the :func:`places`."""
    return [items[place] for place in places(len(items), count, order, seed)]


def _drawn(seed: int, place: int) -> bytes:
    return hashlib.sha256(f"{seed}:{place}".encode()).digest()
