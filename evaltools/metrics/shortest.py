"""Numbers of float32 without the digits that float64 shows behind them."""

from __future__ import annotations

from typing import Final

import numpy as np

_LARGEST: Final = float(np.finfo(np.float32).max)
_LARGEST_COUNTED: Final = 2.0**24
"""Up to here float32 has every whole number, so that none is written with fewer digits."""


def widened(value: float) -> float:
    """The float32 behind a shortest number, as a program that computes in float32 prints it.

    >>> widened(0.1) == float(np.float32(0.1))
    True
    """
    return float(np.float32(value))


def shortest(value: float) -> float:
    """The number with the fewest digits that is the same float32; what is no float32 stays as it is.

    >>> shortest(float(np.float32(0.1))), shortest(0.1), shortest(float("nan"))
    (0.1, 0.1, nan)
    """
    if not abs(value) <= _LARGEST or (abs(value) <= _LARGEST_COUNTED and value.is_integer()):
        return value
    narrow = np.float32(value)
    return float(str(narrow)) if float(narrow) == value else value
