"""The binomial distribution, element by element: ``numbers`` of trials, each a success with the probability ``share``.

:mod:`scipy.stats` has it too, and takes longer to import than a short run takes; this needs only :mod:`scipy.special`,
and of that the incomplete beta function, which is exact also for millions of trials.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_SAME: Final = 1e-14
"""Sums that are not further apart, as a share of them, are one sum: rounding must not decide between two numbers."""


def at_most(most: npt.ArrayLike, numbers: npt.ArrayLike, share: float) -> Floats:
    """The probability of so few successes.

    >>> at_most([-1, 0, 1, 2], 2, 0.5)
    array([0.  , 0.25, 0.75, 1.  ])
    """
    from scipy import special

    most, numbers = np.broadcast_arrays(np.asarray(most), np.asarray(numbers))
    some = np.clip(most, 0, np.maximum(numbers - 1, 0))
    found = special.betainc(np.maximum(numbers - some, 1), some + 1, 1 - share)
    return np.where(most < 0, 0.0, np.where(most >= numbers, 1.0, found))


def more_than(most: npt.ArrayLike, numbers: npt.ArrayLike, share: float) -> Floats:
    """The probability of more successes, exact also where it is small.

    >>> more_than([-1, 0, 1, 2], 2, 0.5)
    array([1.  , 0.75, 0.25, 0.  ])
    """
    from scipy import special

    most, numbers = np.broadcast_arrays(np.asarray(most), np.asarray(numbers))
    some = np.clip(most, 0, np.maximum(numbers - 1, 0))
    found = special.betainc(some + 1, np.maximum(numbers - some, 1), share)
    return np.where(most < 0, 1.0, np.where(most >= numbers, 0.0, found))


def exactly(successes: npt.ArrayLike, numbers: npt.ArrayLike, share: float) -> Floats:
    """The probability of just so many successes.

    >>> exactly([0, 1, 2], 2, 0.5).round(12)
    array([0.25, 0.5 , 0.25])
    """
    from scipy import special

    hits = np.asarray(successes, float)
    misses = np.asarray(numbers, float) - hits
    ways = special.gammaln(hits + misses + 1) - special.gammaln(hits + 1) - special.gammaln(misses + 1)
    found: Floats = np.exp(ways + special.xlogy(hits, share) + special.xlog1py(misses, -share))
    return found


def fewest_with(probability: float, numbers: npt.ArrayLike, share: float) -> Ints:
    """The least number of successes that is not exceeded with this ``probability``, or a larger one.

    >>> fewest_with(0.5, [2, 3, 4], 0.5)
    array([1, 1, 2])
    """
    least = probability * (1 - _SAME)
    near = _near(NormalDist().inv_cdf(probability), numbers, share)
    return _first(numbers, near, lambda most: at_most(most, numbers, share) >= least)


def fewest_without(probability: float, numbers: npt.ArrayLike, share: float) -> Ints:
    """The least number of successes that is exceeded with this ``probability``, or a smaller one.

    >>> fewest_without(0.25, [2, 3, 4], 0.5)
    array([1, 2, 3])
    """
    largest = probability * (1 + _SAME)
    near = _near(-NormalDist().inv_cdf(probability), numbers, share)
    return _first(numbers, near, lambda most: more_than(most, numbers, share) <= largest)


def _first(numbers: npt.ArrayLike, near: Floats, holds: Callable[[Ints], npt.NDArray[np.bool_]]) -> Ints:
    """Of each of 0..number the first for which it holds, as it does for all that follow and for the last.

    It is sought ``near`` these places first, then further and further from them.
    """
    last = np.array(numbers, np.int64)
    low, high = (np.clip(np.floor(near) + side, -1, last).astype(np.int64) for side in (-2, 2))
    step = 4
    while (missed := (high < last) & ~_is_so(holds, high)).any():
        low, high = np.where(missed, high, low), np.where(missed, np.minimum(high + step, last), high)
        step *= 4
    while (missed := _is_so(holds, low)).any():
        low, high = np.where(missed, np.maximum(low - step, -1), low), np.where(missed, low, high)
        step *= 4
    while (is_open := high - low > 1).any():
        middle = (low + high) // 2
        is_so = _is_so(holds, middle)
        low, high = np.where(is_open & ~is_so, middle, low), np.where(is_open & is_so, middle, high)
    found: Ints = high
    return found


def _is_so(holds: Callable[[Ints], npt.NDArray[np.bool_]], places: Ints) -> npt.NDArray[np.bool_]:
    """Whether it holds; nothing does before 0."""
    return (places >= 0) & holds(np.maximum(places, 0))


def _near(quantile: float, numbers: npt.ArrayLike, share: float) -> Floats:
    """About the place of a quantile of the normal distribution, by E. A. Cornish and R. A. Fisher 1937."""
    mean = np.asarray(numbers) * share
    skew = (quantile * quantile - 1) * (1 - 2 * share) / 6
    found: Floats = mean + quantile * np.sqrt(mean * (1 - share)) + skew
    return found
