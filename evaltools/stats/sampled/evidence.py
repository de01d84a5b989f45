"""Evidence against a sum over all examples, from some that were drawn with known chances; one may look at any time.

Source: S. Shekhar, Z. Xu, Z. Lipton, P. Liang, A. Ramdas, Risk-limiting financial audits via weighted sampling without
replacement, 2023; betting after I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting,
2023. Whoever claims that the sum over all examples is at least ``T`` offers a fair bet on each draw: with ``S`` the sum
of the values drawn so far, ``q`` the chance of the next example and ``x`` its value, ``x / q`` has the mean ``T - S``.
Stakes on less multiply a wealth by ``1 + stake (T - S - x / q)``, which never falls below 0. If the claim is true, the
wealth ever reaches ``1 / error`` with at most that chance (J. Ville 1939), however often one looks, and whatever
chances and stakes were chosen by what was seen before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.stats.sampled.drawing import Block
from evaltools.stats.sampled.strata import Ints, Numbers, Rates, Strata

_BOLDNESS: Final = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97])
"""Stakes, as shares of the largest one with which the wealth cannot be lost."""
_SURE: Final = 1e-9
_NONE: Final = 1e-300


class Look(Struct, frozen=True):
    """A block with the values ``(n,)`` that its examples turned out to have, and the rates expected before it."""

    block: Block
    values: Numbers
    rates: Rates

    def mirrored(self) -> Look:
        """The same for values of the opposite sign."""
        return Look(self.block, -self.values, self.rates.mirrored())


def growth(
    strata: Strata, left: Ints, weights: Numbers, rates: Rates, missing: npt.ArrayLike
) -> tuple[Numbers, Numbers]:
    """The best stakes against sums that leave ``missing`` ``(G,)`` to the ``left`` examples, and what they promise.

    Returns shares of the largest stake, ``(G,)``, and the expected logarithm of the factor of one draw, ``(G,)``.
    """
    sums = weights * left
    chances = weights / sums.sum()
    some = left > 0
    absent = np.asarray(missing, np.float64)
    stakes = _BOLDNESS[:, None] / np.maximum(_largest(strata, chances, some) - absent, _SURE)
    of_group = np.where(some, sums / sums.sum(), 0.0)
    up, down = (
        _expected_values(rates.up, rates.size, strata.high),
        _expected_values(rates.down, rates.size, -strata.low),
    )
    shares = np.concatenate((of_group * rates.up / up, of_group * rates.down / down, [0.0]))
    shares[-1] = max(0.0, 1 - shares.sum())
    drawn = np.concatenate((up / chances, -down / chances, [0.0]))
    factors = 1 + stakes[:, None, :] * (absent - drawn[:, None])
    promised = np.einsum("bog,o->bg", np.log(np.maximum(factors, _NONE)), shares)
    best = promised.argmax(axis=0)
    return _BOLDNESS[best], promised[best, np.arange(len(best))]


def _expected_values(rates: Numbers, size: float, most: Numbers) -> Numbers:
    """The value of each group that is not 0, ``(K,)``: of the expected size, as far as that can be."""
    values: Numbers = np.minimum(np.maximum(rates, size), np.where(most > 0, most, size))
    return values


def _largest(strata: Strata, chances: Numbers, some: npt.NDArray[np.bool_]) -> float:
    """The largest value that a draw can have."""
    return float(np.max(np.where(some, np.maximum(strata.high, 0.0) / chances, 0.0)))


class Wealth:
    """The wealth of bets against the claims that the sum of all values is at least each of ``totals`` ``(G,)``.

    >>> strata = Strata(np.zeros(100, np.int64), np.zeros(1), np.ones(1), np.zeros(1, np.int64))
    >>> wealth = Wealth(strata, [30.0])
    >>> chances = 1 / np.arange(100, 80, -1.0)
    >>> wealth.add(Look(Block(np.arange(20), chances, np.ones(1)), np.zeros(20), Rates(np.array([0.01]), np.zeros(1))))
    >>> bool(wealth.most[0] > np.log(20))
    True
    """

    def __init__(self, strata: Strata, totals: npt.ArrayLike) -> None:
        self._strata = strata
        self._totals = np.asarray(totals, np.float64)
        self._sum = 0.0
        self._left = strata.sizes
        self.log = np.zeros(len(self._totals))
        """The logarithm of the wealth now, ``(G,)``."""
        self.most = np.zeros(len(self._totals))
        """The logarithm of the largest wealth so far, ``(G,)``."""

    def add(self, look: Look) -> None:
        """Settle the bets on a block, whose stakes depend on what was known before it alone."""
        strata, weights = self._strata, look.block.weights
        bold, _ = growth(strata, self._left, weights, look.rates, self._totals - self._sum)
        groups = strata.of_example[look.block.examples]
        before = np.concatenate(([0.0], np.cumsum(look.values)[:-1])) + self._sum
        gone = np.zeros((len(groups), len(weights)), np.int64)
        gone[np.arange(len(groups)), groups] = 1
        left = self._left - np.concatenate((np.zeros((1, len(weights)), np.int64), np.cumsum(gone, axis=0)[:-1]))
        chances = weights / (left @ weights)[:, None]
        largest = np.max(np.where(left > 0, np.maximum(strata.high, 0.0) / chances, 0.0), axis=1)
        missing = self._totals[:, None] - before
        room = largest - missing
        stakes = bold[:, None] / np.maximum(room, _SURE)
        factors = 1 + stakes * (missing - look.values / look.block.chances)
        grown = np.where(room < -_SURE, np.inf, np.log(np.maximum(factors, _NONE)))
        path = self.log[:, None] + np.cumsum(grown, axis=1)
        self.most = np.maximum(self.most, path.max(axis=1))
        self.log = path[:, -1]
        self._sum += float(look.values.sum())
        self._left = self._left - gone.sum(axis=0)


def estimated_total(population: int, looks: Sequence[Look]) -> float:
    """The sum of all values of a ``population`` as the draws suggest it.

    It has no bias after a number of draws that is fixed beforehand; it has one where the values themselves end the
    draws, and it may lie below the sum of the values that were drawn.
    The mean of ``S + x / q`` over the draws, with ``S`` the sum of the values drawn before. A draw from ``r`` examples
    counts ``1 / (r - 1) - 1 / r``, the inverse of its variance where all chances are alike; so after the last one it is
    the sum itself.

    >>> rates = Rates(np.zeros(1), np.zeros(1))
    >>> block = Block(np.arange(2), np.array([1 / 4, 1 / 3]), np.ones(1))
    >>> round(estimated_total(4, [Look(block, np.array([1.0, 0.0]), rates)]), 6)
    2.0
    """
    values = np.concatenate([look.values for look in looks])
    if len(values) == population:
        return float(values.sum())
    chances = np.concatenate([look.block.chances for look in looks])
    before = np.concatenate(([0.0], np.cumsum(values)[:-1]))
    left = population - np.arange(len(values))
    return float(np.average(before + values / chances, weights=1 / (left - 1) - 1 / left))
