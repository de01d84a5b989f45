"""What values measured in a row say: how many independent ones they are worth, and whether they jumped."""

from __future__ import annotations

import math
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Withheld = Literal["few", "jumped"]
"""Why there is no interval: too few values, or values that jumped or drifted while they were measured."""

FEWEST_INDEPENDENT: Final = 4.0
"""Values that are worth fewer independent ones say nothing of how far off their median may be."""
FEWEST_BY_NEIGHBOURS: Final = 8.0
"""By the correlation of neighbours alone: with fewer, of 50 pairs from 0.72 on, a slow change may look like none."""
_BATCHES: Final = (1, 3, 10, 30, 100, 300, 1000)
_FEWEST_BATCHES: Final = 8
_MOST_CORRELATION: Final = 0.999
_FAR_APART: Final = 5.0
"""Two speeds are distinguished from one that varies by so many standard deviations of each."""
_LEAST_STEP: Final = 0.02
"""Of a logarithm: a step of less than 2 % is none."""
_LEAST_SHARE: Final = 0.1
"""The rarer speed of two has more than this share of the values; a median withstands less."""
_BY_CHANCE: Final = 0.01
_SEED: Final = 5
_FURTHEST: Final = 3.0
"""Values count as no further from the median than so many times the distance of the outer tenths."""


def independent_values(values: Numbers) -> float:
    """How many independent values a series is worth for its mean, at most its length.

    Batches of 1, 3, 10, 30 ... neighbours each give the variance of the mean, ``s var(batch means) / n``, which is
    lengthened by the correlation ``r`` that neighbouring batches still have, ``(1 + r) / (1 - r)``. ``r`` is corrected
    for its bias, ``r + (1 + 3 r) / b``, and never below 0. The largest variance counts. Sources: method of batch means,
    Law and Kelton, "Simulation Modeling and Analysis", chapter 9; Kendall 1954 for the bias; Zwiers and von Storch 1995
    for the factor.

    >>> round(independent_values(np.array([1.0, -1.0] * 50))), round(independent_values(np.repeat([1.0, -1.0], 50)))
    (99, 0)
    """
    variance = float(values.var())
    if variance == 0:
        return float(len(values))
    worst = 1.0
    for size in _BATCHES:
        count = len(values) // size
        if count < _FEWEST_BATCHES and size > 1:
            break
        means = values[: count * size].reshape(count, size).mean(axis=1)
        correlation = _correlation(means)
        spread = float(means.var(ddof=1)) if count > 1 else 0.0
        worst = max(worst, size * spread / variance * (1 + correlation) / (1 - correlation))
    return len(values) / worst


def worth_by_neighbours(values: Numbers) -> float:
    """How many independent values a series is worth, by nothing but the correlation ``r`` of its neighbours.

    ``n (1 - r) / (1 + r)``, as if each value followed from the one before and chance.

    >>> round(worth_by_neighbours(np.array([1.0, -1.0] * 50))), round(worth_by_neighbours(np.arange(50.0)))
    (100, 0)
    """
    correlation = _correlation(values)
    return len(values) * (1 - correlation) / (1 + correlation)


def _correlation(values: Numbers) -> float:
    """Of neighbours; 0 where it is negative or nothing varies."""
    centred = values - values.mean()
    squares = float((centred * centred).sum())
    if squares == 0:
        return 0.0
    found = float((centred[1:] * centred[:-1]).sum()) / squares
    return min(max(0.0, found + (1 + 3 * found) / len(values)), _MOST_CORRELATION)


def ranks(values: Numbers) -> Numbers:
    """The place of each value among all, from 0; equal ones share theirs out by lot, the same one every time.

    So a clock's coarse steps look like no slow change.

    >>> ranks(np.array([5.0, 7.0, 6.0])).tolist(), sorted(ranks(np.array([5.0, 5.0])).tolist())
    ([0.0, 2.0, 1.0], [0.0, 1.0])
    """
    lot = np.random.default_rng(_SEED).permutation(len(values))
    found = np.empty(len(values), np.float64)
    found[np.lexsort((lot, values))] = np.arange(len(values))
    return found


def has_jumped(logarithms: Numbers) -> bool:
    """Whether the logarithms of times took two values in a few long stretches, as where a clock changed its step.

    The values are split in two where the variance within both is smallest. They jumped where the halves lie five of
    its roots apart, more than a tenth belongs to each, and changes from one to the other are so rare that chance
    explains them in less than 1 % (A. Wald and J. Wolfowitz 1940). Slow moments that come at random are no jump.

    >>> noise = np.random.default_rng(0).normal(0, 0.01, 50)
    >>> has_jumped(noise + np.repeat([0.0, 0.3], [20, 30])), has_jumped(noise + np.tile([0.0, 0.3], 25))
    (True, False)
    """
    if len(logarithms) < 2 * _FEWEST_BATCHES:
        return False
    outer, middle, upper = np.quantile(logarithms, [0.1, 0.5, 0.9])
    reach = _FURTHEST * float(upper - outer)
    kept = np.clip(logarithms, middle - reach, middle + reach) if reach > 0 else logarithms
    is_high, apart, spread = _split(kept)
    rarer = min(int(is_high.sum()), len(kept) - int(is_high.sum()))
    if apart <= max(_FAR_APART * spread, _LEAST_STEP) or rarer <= _LEAST_SHARE * len(kept):
        return False
    return _chance_of_so_few_stretches(is_high) < _BY_CHANCE


def _split(values: Numbers) -> tuple[npt.NDArray[np.bool_], float, float]:
    """Which values belong to the upper half, how far apart the means are, and the deviation within both."""
    ordered = np.sort(values)
    count = len(ordered)
    below = np.arange(1, count)
    sums, squares = np.cumsum(ordered), np.cumsum(ordered * ordered)
    within = squares[:-1] - sums[:-1] ** 2 / below
    within += squares[-1] - squares[:-1] - (sums[-1] - sums[:-1]) ** 2 / (count - below)
    place = int(np.argmin(within))
    apart = (sums[-1] - sums[place]) / (count - place - 1) - sums[place] / (place + 1)
    return values > ordered[place], float(apart), math.sqrt(max(0.0, float(within[place])) / max(1, count - 2))


def _chance_of_so_few_stretches(is_high: npt.NDArray[np.bool_]) -> float:
    """The probability of so few stretches of equal values, or fewer, in a random order of them."""
    high, low = int(is_high.sum()), int((~is_high).sum())
    stretches = 1 + int((is_high[1:] != is_high[:-1]).sum())
    parts = np.arange(2, stretches + 1)
    of_first, of_second = (parts + 1) // 2, parts // 2
    begun_high = _log_ways(high - 1, of_first - 1) + _log_ways(low - 1, of_second - 1)
    begun_low = _log_ways(low - 1, of_first - 1) + _log_ways(high - 1, of_second - 1)
    every = _log_ways(high + low, np.array([high]))
    return float((np.exp(begun_high - every) + np.exp(begun_low - every)).sum())


def _log_ways(count: int, chosen: npt.NDArray[np.int64]) -> Numbers:
    """The logarithm of the number of ways to choose so many of ``count``; -infinity where there are not so many."""
    from scipy import special

    possible = np.minimum(chosen, count)
    found = special.gammaln(count + 1) - special.gammaln(possible + 1) - special.gammaln(count - possible + 1)
    ways: Numbers = np.where(chosen <= count, found, -np.inf)
    return ways
