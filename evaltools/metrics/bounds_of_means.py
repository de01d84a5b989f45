"""Bounds of a mean: by how the values spread and lean, and such as hold for any values within known limits."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
_NO_LEAN: Final = 1e-9
"""Of the factor of a skewness: below it the transformation is the identity."""
_BETS: Final = np.array([0.9, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.008])
"""The shares of the money that are bet."""
_STEPS: Final = np.geomspace(1e-6, 1 - 1e-6, 2000)
"""The numbers below the mean that are tried, by their distance from it as a share of the largest."""


def shape_of(values: Numbers) -> tuple[float, float]:
    """The skewness of values (n,), and the share that the two furthest from the mean have of the sum of the squares.

    Both are 0 where all are equal.

    >>> [round(number, 3) for number in shape_of(np.array([0.0, 0.0, 0.0, 1.0]))]
    [1.155, 0.833]
    """
    centred = values - values.mean() if len(values) else values
    largest = float(np.abs(centred).max(initial=0.0))
    if largest == 0:
        return 0.0, 0.0
    squares = (centred / largest) ** 2
    whole = float(squares.sum())
    skewness = float(((centred / largest) ** 3).sum()) * math.sqrt(len(values)) / whole**1.5
    return skewness, float(np.sort(squares)[-2:].sum()) / whole


def t_quantile(share: float, degrees: int) -> float:
    """The quantile of Student's t.

    >>> round(t_quantile(0.975, 9), 4)
    2.2622
    """
    from scipy import special

    return float(special.stdtrit(degrees, share))


def skewed_t_bound(mean: float, deviation: float, skewness: float, count: int, confidence: float, upper: bool) -> float:
    """One-sided bound of a mean: the outer one of Student's t and the same corrected for skewness.

    ``mean +- t deviation / sqrt(n)`` (W. S. Gosset 1908), and, with P. Hall's transformation (1992), ``mean -
    g(-+t) deviation / sqrt(n)``, ``g(q) = ((1 + 3 a (q - b)) ** (1 / 3) - 1) / a``, ``a = skewness / (3 sqrt(n))``,
    ``b = skewness / (6 sqrt(n))``. It errs as often as the bootstrap-t interval and needs no draws, so that a result
    which keeps the three numbers has the bound for every confidence. ``python -m benchmarks intervals`` counts how
    often it is wrong.

    >>> round(skewed_t_bound(1.0, 1.0, 0.0, 25, 0.95, upper=True), 4)
    1.3422
    >>> [round(skewed_t_bound(1.0, 1.0, 2.0, 25, 0.95, upper), 4) for upper in (False, True)]
    [0.6578, 1.5083]
    """
    error = deviation / math.sqrt(count)
    quantile = t_quantile(confidence, count - 1)
    plain = quantile if upper else -quantile
    lean = skewness / (3 * math.sqrt(count))
    corrected = plain
    if abs(lean) > _NO_LEAN:
        corrected = (1 - float(np.cbrt(1 + 3 * lean * (-plain - lean / 2)))) / lean
    return mean + error * (max(plain, corrected) if upper else min(plain, corrected))


def guaranteed_bound(
    mean: float, deviation: float, limits: tuple[float, float], count: int, confidence: float, upper: bool
) -> float:
    """One-sided bound of the mean of independent values of which each lies within ``limits``.

    The lower one is the largest number ``m`` against which a gambler wins too much to be lucky: who bets a share ``l``
    of his money on each value has, of 1, ``product(1 + l y)``, ``y = (x - m) / (m - low)``, which is 1 on average if
    ``m`` is the mean, and more than ``1 / (1 - confidence)`` with no more probability than ``1 - confidence`` (I.
    Waudby-Smith and A. Ramdas 2023). The money is divided among eight shares ``l``. Mean and deviation are enough for
    the least that it can be (:func:`_least_money`). So the bound never errs more often than it says, whatever the
    values.

    >>> round(guaranteed_bound(0.0, 0.05, (-1.0, 1.0), 1000, 0.95, upper=True), 4)
    0.009
    """
    if upper:
        return -guaranteed_bound(-mean, deviation, (-limits[1], -limits[0]), count, confidence, upper=False)
    room = mean - limits[0]
    if room <= 0:
        return limits[0]
    below = room * _STEPS
    won = below / (room - below)
    spread = deviation / (room - below) * math.sqrt(count - 1)
    money = np.logaddexp.reduce(_least_money(won, spread, count), axis=0) - math.log(len(_BETS))
    return mean - float(below[money >= -math.log(1 - confidence)].min(initial=room))


def _least_money(won: Numbers, spread: Numbers, count: int) -> Numbers:
    """The logarithms of the least that each bet (b,) makes of 1 on ``count`` values: (b, n).

    ``won`` (n,) is the mean of the values ``y``, none of which is below -1, and ``spread`` the root of the sum of
    their squared distances from it. The product is least where all values but one are equal, and that one below them
    (V. Cirtoaje 2007), unless it would be below -1; it is never below ``exp(l sum(y) + (log(1 - l) + l) sum(y ** 2))``
    (X. Fan, I. Grama and Q. Liu 2015).
    """
    bets = _BETS[:, None]
    squares = spread**2 + count * won**2
    least: Numbers = bets * count * won + (np.log1p(-bets) + bets) * squares
    above = spread / math.sqrt(count * (count - 1))
    lowest = won - (count - 1) * above
    of_equal = (count - 1) * np.log1p(bets * (won + above)) + np.log1p(bets * np.maximum(lowest, -1.0))
    return np.where(lowest >= -1, np.maximum(least, of_equal), least)
