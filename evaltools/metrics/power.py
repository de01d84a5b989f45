"""How many examples it takes to decide a question: one planner, :func:`examples_needed`, and its questions.

A question is given as the chance that so many examples decide it, if the rates are those that were found.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics import binomial
from evaltools.metrics.interval import Interval, confidence_of_each
from evaltools.metrics.proportions import FEW_FLIPS, PairedCounts, change_bound, change_p, change_scores

POWER: Final = 0.8
"""The chance with which a number of examples decides, wherever one is named."""
MOST_EXAMPLES: Final = 100_000_000
_NEGLIGIBLE: Final = 1e-13
_MOST_NUMBERS_OF_FLIPS: Final = 4001
"""More are taken at even distances."""

Ints = npt.NDArray[np.int64]


def examples_needed(chance: Callable[[int], float], measured: int = 0, power: float = POWER) -> int | None:
    """The number of examples that decide a question with probability ``power``; more than the ``measured`` ones.

    ``chance`` says how probably a number of examples decides it. That rises in small saw teeth, so a few less may do as
    well. None for more than 100 million.

    >>> examples_needed(lambda count: 1 - 0.9**count)
    16
    """
    low, high = 0, 1
    while chance(high) < power:
        low, high = high, 2 * high
        if high > MOST_EXAMPLES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= power else (middle, high)
    return max(high, measured + 1)


def chance_to_decide(
    count: int, lost: float, gained: float, limit: float, confidence: float = 0.95, tests: int = 1
) -> float:
    """The probability that ``count`` examples, of which such shares flip, decide whether the drop is at most ``limit``.

    Decided: one of the one-sided bounds (see :func:`~evaltools.metrics.proportions.change_bound`) lies on its side of
    the limit; that of a larger drop with the confidence that each of so many ``tests`` needs.

    >>> round(chance_to_decide(2708, 0.005, 0.005, 0.005), 2)
    0.8
    """
    flips = _Flips(count, lost, gained)
    kept = flips.most_lost_within(-limit, confidence, above=True)
    not_broken = flips.most_lost_within(-limit, confidence_of_each(confidence, tests), above=False)
    return flips.mean(flips.lost_at_most(kept) + flips.lost_more_than(not_broken))


def examples_to_keep(limit: float, flip_rate: float, power: float = POWER, confidence: float = 0.95) -> int | None:
    """How many examples decide ``drop <= limit`` for a configuration that is as accurate as the reference.

    ``flip_rate`` is the share of examples that one of both has right and the other wrong: half lost, half gained. None
    for more than 100 million.

    >>> examples_to_keep(0.005, 0.01), examples_to_keep(0.005, 0.0)
    (2708, 598)
    """
    return examples_needed(
        lambda count: chance_to_decide(count, flip_rate / 2, flip_rate / 2, limit, confidence), power=power
    )


def examples_to_decide(counts: PairedCounts, limit: float, confidence: float = 0.95, tests: int = 1) -> int | None:
    """How many examples with the observed rates decide whether the drop is at most ``limit``, in 80 % of cases.

    See :func:`chance_to_decide`. None where no number does it: the observed drop is the limit, or nothing was measured.

    >>> examples_to_decide(PairedCounts(200, 1, 0), limit=0.02)
    386
    """
    if counts.count == 0 or counts.change == -limit:
        return None
    rates = counts.lost / counts.count, counts.gained / counts.count
    return examples_needed(lambda count: chance_to_decide(count, *rates, limit, confidence, tests), counts.count)


@lru_cache(maxsize=64)  # most configurations of a run change as many answers: none
def examples_to_judge(
    counts: PairedCounts, margin: float, confidence: float = 0.975, alpha: float = 0.05
) -> int | None:
    """How many examples with the observed rates give a verdict, in 80 % of cases: equivalent, worse or better.

    Equivalent: the interval, with ``confidence`` at each end, lies within ``margin`` of no change. Worse or better: the
    exact McNemar test gives p <= ``alpha``. None where no number does it, or nothing was measured.

    >>> examples_to_judge(PairedCounts(200, 1, 5), margin=0.005)
    615
    """
    if counts.count == 0:
        return None
    quantile = NormalDist().inv_cdf(confidence)

    def chance(count: int) -> float:
        flips = _Flips(count, counts.lost / counts.count, counts.gained / counts.count)
        few = _rejected_up_to(flips.numbers, alpha)
        many = flips.numbers - few - 1
        equivalent = flips.most_lost(-margin, quantile)
        fewest = flips.numbers - equivalent
        between = flips.lost_at_most(many) - flips.lost_at_most(few)
        below = flips.lost_at_most(np.minimum(fewest - 1, many)) - flips.lost_at_most(few)
        above = flips.lost_at_most(many) - flips.lost_at_most(np.maximum(equivalent, few))
        undecided = np.where(equivalent >= fewest, np.maximum(below, 0) + np.maximum(above, 0), between)
        return 1 - flips.mean(np.maximum(undecided, 0))

    return examples_needed(chance, counts.count)


def examples_to_judge_figure(
    change: float, interval: Interval, margin: float, count: int, alpha: float = 0.05
) -> int | None:
    """As :func:`examples_to_judge`, of any figure whose interval narrows with the square root of the examples.

    ``interval`` is the 95 % one of ``count`` examples. Worse or better: an interval with the error ``alpha`` lies on
    one side of no change. None where no number does it.

    >>> examples_to_judge_figure(0.01, Interval(-0.005, 0.025), 0.005, 300)
    1380
    """
    normal = NormalDist()
    deviation = (interval.high - interval.low) / 2 / normal.inv_cdf(0.5 + interval.confidence / 2)
    wider = normal.inv_cdf(1 - alpha / 2) / normal.inv_cdf(0.5 + interval.confidence / 2)
    below, above = change - interval.low, interval.high - change
    if not deviation > 0:
        return None

    def chance(examples: int) -> float:
        scale = math.sqrt(count / examples)
        found = NormalDist(change, deviation * scale)
        worst, best = -wider * above * scale, wider * below * scale
        least, most = max(worst, below * scale - margin), min(best, margin - above * scale)
        equivalent = max(0.0, found.cdf(most) - found.cdf(least))
        return found.cdf(worst) + 1 - found.cdf(best) + equivalent

    return examples_needed(chance, count)


def examples_to_place(
    successes: int, count: int, limit: float, confidence: float, tests: tuple[int, int] = (1, 1)
) -> int | None:
    """How many examples with the observed share decide on which side of ``limit`` it lies, in 80 % of cases.

    By the exact bounds, see :func:`~evaltools.metrics.proportions.share_bound`. That it lies below, or above, has to be
    shown beside so many ``tests``. None where no number does it.

    >>> examples_to_place(180, 200, 0.85, 0.95)
    289
    """
    if count == 0 or successes == limit * count:
        return None
    below, above = (confidence_of_each(confidence, number) for number in tests)

    def chance(examples: int) -> float:
        too_few_by_chance = binomial.fewest_with(1 - below, examples, limit) - 1
        too_many_by_chance = binomial.fewest_without(1 - above, examples, limit)
        found = examples, successes / count
        return float(binomial.more_than(too_many_by_chance, *found) + binomial.at_most(too_few_by_chance, *found))

    return examples_needed(chance, count)


def chance_of_mean(distance: float, reach: float, deviation: float) -> float:
    """The chance that a bound lies beyond a limit that is ``distance`` off, if it reaches ``reach`` from the mean.

    ``deviation`` is that of the mean, which is normal.

    >>> round(chance_of_mean(2.48, 1.64, 1.0), 2)
    0.8
    """
    if deviation == 0:
        return float(distance > reach)
    return NormalDist().cdf((distance - reach) / deviation)


class _Flips:
    """Flips among ``count`` examples, where the shares ``lost`` and ``gained`` of all such examples flip.

    ``numbers`` of flips that are probable enough, each with its weight; of each the lost ones are binomial.
    """

    def __init__(self, count: int, lost: float, gained: float) -> None:
        flips = count, min(1.0, lost + gained)
        first, last = int(binomial.fewest_with(_NEGLIGIBLE, *flips)), int(binomial.fewest_without(_NEGLIGIBLE, *flips))
        steps = min(last - first + 1, _MOST_NUMBERS_OF_FLIPS)
        self.numbers: Ints = np.linspace(first, last, steps).round().astype(np.int64)
        weights = binomial.exactly(self.numbers, *flips)
        self._weights = weights / weights.sum()
        self._count = count
        self._share_lost = lost / (lost + gained) if lost + gained else 0.5

    def mean(self, probabilities: npt.NDArray[np.float64]) -> float:
        """Over the numbers of flips."""
        return float(np.sum(self._weights * probabilities))

    def lost_at_most(self, most: Ints) -> npt.NDArray[np.float64]:
        """The probability of so few lost ones, for each number of flips; -1 for never."""
        return binomial.at_most(most, self.numbers, self._share_lost)

    def lost_more_than(self, most: Ints) -> npt.NDArray[np.float64]:
        """The probability of more lost ones, for each number of flips."""
        return 1 - self.lost_at_most(most)

    def most_lost_within(self, change: float, confidence: float, above: bool) -> Ints:
        """For each number of flips the most lost ones whose lower (``above``) or upper bound is not below ``change``.

        -1 for none; the bounds are those of :func:`~evaltools.metrics.proportions.change_bound`.
        """
        quantile = NormalDist().inv_cdf(confidence)

        def is_within(lost: Ints, gained: Ints) -> npt.NDArray[np.bool_]:
            found = change_scores(self._count, lost, gained, change) >= (quantile if above else -quantile)
            few = lost + gained < FEW_FLIPS
            if few.any():
                found[few] = (change_p(self._count, lost[few], gained[few], change, above) <= 1 - confidence) == above
            return found

        return self._most_lost(is_within)

    def most_lost(self, change: float, quantile: float) -> Ints:
        """For each number of flips the most lost ones that score ``quantile`` or more at ``change``, -1 for none."""
        return self._most_lost(lambda lost, gained: change_scores(self._count, lost, gained, change) >= quantile)

    def _most_lost(self, holds: Callable[[Ints, Ints], npt.NDArray[np.bool_]]) -> Ints:
        """For each number of flips the most lost ones for which it holds, as it does for fewer; -1 for none."""
        low, high = np.full_like(self.numbers, -1), self.numbers + 1
        while len(open_ones := np.flatnonzero(high - low > 1)):
            middle = (low[open_ones] + high[open_ones]) // 2
            is_so = holds(middle, self.numbers[open_ones] - middle)
            low[open_ones[is_so]], high[open_ones[~is_so]] = middle[is_so], middle[~is_so]
        return low


def _rejected_up_to(flips: Ints, alpha: float) -> Ints:
    """For each number of flips the most of the rarer kind that is still rejected, -1 where nothing is."""
    edge = binomial.fewest_with(alpha / 2, flips, 0.5)
    too_likely = 2 * binomial.at_most(edge, flips, 0.5) > alpha
    most: Ints = np.where(too_likely, edge - 1, edge)
    return most


class Change(Protocol):
    """The change of a figure from the reference to another configuration."""

    @property
    def change(self) -> float:
        """The figure minus the reference's."""

    def bound(self, confidence: float, upper: bool) -> float:
        """A one-sided bound: with this confidence the true change is not above (``upper``), or not below, it."""

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples decide whether the drop is at most ``limit`` in 80 % of cases, None where none is known.

        That it is larger has to be shown beside so many ``tests``.
        """


class CountedChange(Struct, frozen=True):
    """The change of a share of examples, from the number of examples that changed sides."""

    counts: PairedCounts

    @property
    def change(self) -> float:
        """The share minus the reference's."""
        return self.counts.change

    def bound(self, confidence: float, upper: bool) -> float:
        """By the flips, see :func:`~evaltools.metrics.proportions.change_bound`."""
        return change_bound(self.counts, confidence, upper)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples with the same rates decide whether the drop is at most ``limit``."""
        return examples_to_decide(self.counts, limit, confidence, tests)


class Share(Struct, frozen=True):
    """``successes`` of ``count`` examples."""

    successes: int
    count: int
