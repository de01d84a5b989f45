"""How well the middle of a series is known whose neighbours resemble each other, as times measured in a row do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

_FEWEST_VALUES: Final = 4
_MOST_BATCHES: Final = 40
_SMALLEST_BATCH: Final = 3
_FEWEST_INDEPENDENT: Final = 2.5
FEWEST_PROCESSES: Final = 3
"""With two, Student's t is 12.7 deviations wide."""
_MOST_CORRELATION: Final = 0.999
_NANOSECOND: Final = 0.001


def series_bounds(values: Sequence[float] | npt.NDArray[np.float64], confidence: float) -> tuple[float, float] | None:
    """Lower and upper bound of the middle of what the series was drawn from.

    Up to 40 batches of neighbours each give their median, so that a few outliers do not matter. With the correlation
    ``r`` of neighbouring medians, ``b`` of them are worth ``e = b (1 - r) / (1 + r)`` independent ones, and the bounds
    are ``mean -+ t((1 + confidence) / 2, e - 1) s / sqrt(e)``. ``r`` is corrected for its bias, ``r + (1 + 3 r) / b``,
    and never below 0. Sources: method of batch means, Law and Kelton, "Simulation Modeling and Analysis", chapter 9;
    Kendall 1954 for the bias; Zwiers and von Storch 1995 for ``e``.

    None for fewer than 4 values, and for a series that is worth fewer than 2.5 independent values.

    >>> low, high = series_bounds([1.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0, 2.0, 3.0, 1.0], 0.95)
    >>> round(low, 3), round(high, 3)
    (2.0, 2.0)
    """
    from scipy import special

    numbers = np.asarray(values, np.float64)
    if numbers.size < _FEWEST_VALUES:
        return None
    count = min(_MOST_BATCHES, max(_FEWEST_VALUES, numbers.size // _SMALLEST_BATCH))
    medians = np.array([np.median(batch) for batch in np.array_split(numbers, count)])
    middle, deviation = float(medians.mean()), float(medians.std(ddof=1))
    independent = _independent_values(medians)
    if deviation > 0 and independent < _FEWEST_INDEPENDENT:
        return None
    reach = float(special.stdtrit(independent - 1, 0.5 + confidence / 2)) * deviation / math.sqrt(independent)
    return (middle - reach, middle + reach) if deviation > 0 else (middle, middle)


def processes_bounds(values: npt.NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Bounds of the middle of what processes give, one value of each: Student's t.

    >>> low, high = processes_bounds(np.array([1.0, 2.0, 3.0]), 0.95)
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    from scipy import special

    quantile = float(special.stdtrit(len(values) - 1, 0.5 + confidence / 2))
    reach = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
    middle = float(values.mean())
    return middle - reach, middle + reach


def clock_step(times_us: npt.NDArray[np.float64]) -> float:
    """The step in which a clock shows times, as far as they tell: the smallest difference of two; 1 us at most.

    >>> clock_step(np.array([6.0, 8.0, 7.0])), round(clock_step(np.array([6.052, 6.104, 7.3])), 3)
    (1.0, 0.052)
    """
    steps = np.diff(np.unique(times_us))
    return float(np.clip(steps.min(initial=1.0), _NANOSECOND, 1.0))


def _independent_values(values: npt.NDArray[np.float64]) -> float:
    """How many independent values the neighbours are worth, by their correlation: ``b (1 - r) / (1 + r)``."""
    correlation = _correlation(values)
    return len(values) * (1 - correlation) / (1 + correlation)


def _correlation(values: npt.NDArray[np.float64]) -> float:
    """Of neighbours; 0 where it is negative or nothing varies."""
    centred = values - values.mean()
    squares = float((centred * centred).sum())
    if squares == 0:
        return 0.0
    found = float((centred[1:] * centred[:-1]).sum()) / squares
    return min(max(0.0, found + (1 + 3 * found) / len(values)), _MOST_CORRELATION)
