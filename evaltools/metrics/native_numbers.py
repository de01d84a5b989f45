"""Numbers as the native tools compute and print them: errors of a diff, percentiles, float32 in few digits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

_LARGEST: Final = float(np.finfo(np.float32).max)
_LARGEST_COUNTED: Final = 2.0**24
"""Up to here float32 has every whole number, so that none is written with fewer digits."""


class NativeError(Struct, frozen=True):
    """Over the runs, of the mean error of each run: average, population standard deviation, smallest and largest.

    ``std_dev`` is a spread between runs, not between elements. None where a figure is not a finite number.
    """

    avg_error: float | None
    std_dev: float | None
    min_error: float | None
    max_error: float | None


def mean_error(test: npt.NDArray[np.generic], reference: npt.NDArray[np.generic]) -> float:
    """``sum(|float32(test) - float32(reference)|) / float32(n)`` of raw values, summed in float32 from first to last.

    No element at all gives NaN.

    >>> mean_error(np.array([3, 250], np.uint8), np.array([5, 250], np.uint8))
    1.0
    """
    if test.size == 0:
        return math.nan
    with np.errstate(all="ignore"):
        errors = np.abs(test.astype(np.float32) - reference.astype(np.float32)).ravel()
        return float(np.cumsum(errors, dtype=np.float32)[-1] / np.float32(test.size))


def summarise_errors(errors: Sequence[float], native: bool = False) -> NativeError:
    """Summarise the mean errors of one or more runs (float32 values).

    ``avg = float64(float32 sum) / n``; ``std = sqrt(float32(float64 sum of squares / n - avg ** 2))``, which rounding
    can make the root of a negative number: 0 then, NaN with ``native``. Source: ``Stat<float>`` of tsl
    ``stats_calculator.h``.

    >>> summarise_errors([1.0, 3.0])
    NativeError(avg_error=2.0, std_dev=1.0, min_error=1.0, max_error=3.0)
    """
    values = np.array(errors, np.float32)
    with np.errstate(all="ignore"):
        average = float(np.cumsum(values, dtype=np.float32)[-1]) / len(values)
        squares = float(np.cumsum(values.astype(np.float64) ** 2)[-1])
        variance = np.float32(squares / len(values) - average * average)
        if values.min() == values.max() or (variance < 0 and not native):
            variance = np.float32(0)
        deviation = float(np.sqrt(variance))
    figures = (average, shortest(deviation), shortest(float(values.min())), shortest(float(values.max())))
    return NativeError(*(figure if math.isfinite(figure) else None for figure in figures))


def native_percentile(values: Sequence[float], percent: int) -> float:
    """The sample at index ``n * percent // 100`` of the sorted samples (tsl ``StatWithPercentiles::percentile``).

    ``values`` are n numbers in any order; no value gives 0, as there. Of an even number of samples the median is
    the upper of the two in the middle. 100 gives the largest sample; the native library would give the last one in time
    there, but no tool asks for it. Raises ``ValueError`` for a percentage outside 0..100.

    >>> native_percentile([40, 10, 20, 30], 50), native_percentile([], 50)
    (30.0, 0.0)
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is not a percentage; use 0 to 100")
    if not values:
        return 0.0
    index = min(len(values) * percent // 100, len(values) - 1)
    return float(np.partition(np.array(values, np.float64), index)[index])


def widened(value: float) -> float:
    """The float32 behind a shortest number, as a program that computes in float32 prints it.

    >>> widened(0.1) == float(np.float32(0.1))
    True
    """
    return float(np.float32(value))


def shortest(value: float) -> float:
    """The number with the fewest digits that is the same float32; what is not a float32 stays as it is.

    >>> shortest(float(np.float32(0.1))), shortest(0.1), shortest(float("nan"))
    (0.1, 0.1, nan)
    """
    if not abs(value) <= _LARGEST or (abs(value) <= _LARGEST_COUNTED and value.is_integer()):
        return value
    narrow = np.float32(value)
    return float(str(narrow)) if float(narrow) == value else value
