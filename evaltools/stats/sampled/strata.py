"""Examples in groups of like lead, the values that they can have, and what is expected of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

Numbers = np.ndarray[Any, np.dtype[np.float64]]
Ints = npt.NDArray[np.int64]
_UP_TO: Final = (0.025, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
"""Groups end at these shares of the examples in ascending order of their leads: the smallest ones are told apart."""
_MOST_LADDERS: Final = 4
_LEAST_REACH: Final = 0.01
_PRIOR_RATE: Final = 0.005
_PRIOR_EXAMPLES: Final = 20.0
_SMOOTHING_EXAMPLES: Final = 30.0


class Strata(Struct, frozen=True):
    """``N`` examples in ``K`` groups.

    ``of_example`` ``(N,)`` has the number of each example's group. A value of an example of group ``k`` lies from
    ``low[k]`` to ``high[k]``, each ``(K,)``, -1..1 where all examples count alike. ``ladder`` ``(K,)`` numbers what a
    group is part of: the groups of one ladder stand together, those of smaller leads first.
    """

    of_example: Ints
    low: Numbers
    high: Numbers
    ladder: Ints

    @property
    def population(self) -> int:
        """The number of examples."""
        return len(self.of_example)

    @property
    def reach(self) -> Numbers:
        """The largest distance of a value of each group from 0, ``(K,)``, as a share of the largest one, above 0."""
        reach = np.maximum(self.high, -self.low)
        largest = float(reach.max())
        shares: Numbers = np.maximum(reach / largest, _LEAST_REACH) if largest else np.ones(len(reach))
        return shares

    @property
    def sizes(self) -> Ints:
        """The number of examples of each group, ``(K,)``."""
        return self.count(np.arange(self.population))

    def count(self, examples: Ints) -> Ints:
        """How many of some examples each group has, ``(K,)``."""
        return np.bincount(self.of_example[examples], minlength=len(self.low))

    def mirrored(self) -> Strata:
        """The same for values of the opposite sign."""
        return replace(self, low=-self.high, high=-self.low)

    def with_bounds(self, low: npt.ArrayLike, high: npt.ArrayLike) -> Strata:
        """The same groups for other values, whose bounds are those of each example, ``(N,)``."""
        lows, highs = np.full(len(self.low), np.inf), np.full(len(self.low), -np.inf)
        np.minimum.at(lows, self.of_example, np.asarray(low, np.float64))
        np.maximum.at(highs, self.of_example, np.asarray(high, np.float64))
        return replace(self, low=lows, high=highs)


def strata_of(leads: npt.ArrayLike, low: npt.ArrayLike, high: npt.ArrayLike) -> Strata:
    """Groups of examples, a ladder of those that have the same bounds, cut by their leads; all ``(N,)``.

    A lead says how sure the reference is: of any unit, only their order counts. Where more than 4 pairs of bounds
    differ, as with scores that are any numbers, ladders are of examples with bounds of like width, each half as wide as
    the one before it, at most 4; a group has the widest bounds in it.

    >>> strata = strata_of([0.9, 0.1, 0.5, 0.4], [0, 0, 0, -1], [1, 1, 1, 0])
    >>> strata.of_example.tolist(), strata.low.tolist(), strata.ladder.tolist()
    ([3, 1, 2, 0], [-1.0, 0.0, 0.0, 0.0], [0, 1, 1, 1])
    """
    all_leads, lows, highs = (np.asarray(values, np.float64) for values in (leads, low, high))
    of_example = np.zeros(len(all_leads), np.int64)
    ladder: list[int] = []
    pairs, of_pair = np.unique(np.stack([lows, highs]), axis=1, return_inverse=True)
    of_pair = of_pair.ravel() if pairs.shape[1] <= _MOST_LADDERS else _halvings(highs - lows)
    for number in range(int(of_pair.max()) + 1):
        members = np.flatnonzero(of_pair == number)
        members = members[np.argsort(all_leads[members], kind="stable")]
        ends = sorted({int(np.ceil(share * len(members))) for share in _UP_TO} - {0})
        for start, end in zip([0, *ends], ends, strict=False):
            of_example[members[start:end]] = len(ladder)
            ladder.append(number)
    groups = np.array(ladder, np.int64)
    bounds = np.zeros(len(groups))
    return Strata(of_example, bounds, bounds, groups).with_bounds(lows, highs)


def _halvings(widths: Numbers) -> Ints:
    """How often the largest width is to be halved to be next to each of them, 0..3."""
    shares = np.maximum(widths / widths.max(), 0.5**_MOST_LADDERS)
    halvings: Ints = np.minimum(np.rint(-np.log2(shares)), _MOST_LADDERS - 1).astype(np.int64)
    return halvings


class Rates(Struct, frozen=True):
    """What is expected of each group, ``(K,)``: the mean ``up`` and ``down``, of values above and below 0.

    ``size`` is that of a value that is not 0: of values of 1 and -1 it is 1, and ``up`` and ``down`` are their shares.
    """

    up: Numbers
    down: Numbers
    size: float = 1.0

    @property
    def mean(self) -> Numbers:
        """The expected value."""
        return self.up - self.down

    def mirrored(self) -> Rates:
        """The same for values of the opposite sign."""
        return Rates(self.down, self.up, self.size)


def expected_rates(strata: Strata, drawn: Ints, values: Numbers) -> Rates:
    """The rates that ``drawn`` examples with their ``values`` suggest; before the first there is a guess.

    Groups of few draws are drawn towards the rate of their ladder, and a group of larger leads is expected to have
    no higher rate than one before it (isotonic regression, R. E. Barlow and others 1972). So leads
    that tell nothing, or mislead, make all rates alike. The size is the mean of the values, each weighted with itself.
    They steer where is looked, and no conclusion rests on them.

    >>> strata = strata_of(range(100), [0] * 100, [1] * 100)
    >>> rates = expected_rates(strata, np.arange(30), np.array([1.0] * 3 + [0.0] * 27))
    >>> bool(rates.up[0] > rates.up[-1]), bool((rates.down == 0).all())
    (True, True)
    """
    groups, count, sizes = strata.of_example[drawn], strata.count(drawn).astype(np.float64), strata.sizes
    sides = []
    for sign, most in ((1.0, strata.high), (-1.0, -strata.low)):
        seen: Numbers = np.bincount(groups, np.maximum(sign * values, 0.0), minlength=len(count)).astype(np.float64)
        rates = np.zeros(len(count))
        for ladder in np.unique(strata.ladder):
            members = np.flatnonzero((strata.ladder == ladder) & (most > 0))
            if len(members):
                guess = _PRIOR_RATE * float(most[members].max())
                rates[members] = _smoothed(seen[members], count[members], sizes[members], guess)
        sides.append(rates)
    guess, seen_in_all = _PRIOR_EXAMPLES * _PRIOR_RATE, float(np.abs(values).sum())
    return Rates(sides[0], sides[1], (guess + float((values**2).sum())) / (guess + seen_in_all))


def _smoothed(seen: Numbers, count: Numbers, sizes: Ints, guess: float) -> Numbers:
    from scipy.optimize import isotonic_regression

    prior = _PRIOR_EXAMPLES * sizes / sizes.sum()
    of_all = float(((seen + prior * guess) / (count + prior) * sizes).sum() / sizes.sum())
    weights = count + _SMOOTHING_EXAMPLES * sizes / sizes.sum()
    rates = (seen + (weights - count) * of_all) / weights
    smoothed: Numbers = isotonic_regression(rates, weights=weights, increasing=False).x
    return smoothed
