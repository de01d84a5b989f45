"""Means, how well they are known, and the change of a mean on the same examples."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics import power
from evaltools.metrics.bounds_of_means import guaranteed_bound, shape_of, skewed_t_bound, t_quantile
from evaltools.metrics.interval import Interval, confidence_of_each
from evaltools.metrics.proportions import (
    PairedCounts,
    change_bound,
    change_interval,
    mcnemar_p,
    share_bound,
    wilson_interval,
)

FEWEST_DIFFERING: Final = 10
"""With fewer examples that differ, their spread names no number of examples."""
FEWEST_UNEQUAL: Final = 20
"""With fewer unequal values those that were not seen decide: their spread gives no bounds."""
MOST_BY_TWO: Final = 0.5
"""Where two examples have more than this share of all squares, others like them decide."""
_TWO_OF_MANY: Final = 7.0
"""Of many examples two have at most this share by the square root of their number: where that share does not fall with
the number, the variance itself is unbounded (Pareto's losses), and no interval follows from the spread."""
_LEVEL: Final = 0.05
_SMALLEST_DEVIATION: Final = 1e-12
ScoreBounds = tuple[float, float]
"""The smallest and the largest score that a metric can have."""


class MeanChange(Struct, frozen=True):
    """How a score changed from one configuration to another over the same ``count`` examples.

    ``change`` is the mean of the differences, ``deviation`` their standard deviation, ``skewness`` their skewness and
    ``by_two`` the share of the squares that the two furthest from the mean have; ``differing`` of them are not zero.
    ``span`` is how much an example can change, the distance of the metric's stated bounds; None where none are stated.
    ``flips`` count the examples that changed sides where every score is 0 or 1. ``before`` is the mean that changed.
    """

    count: int
    change: float
    deviation: float
    differing: int
    skewness: float = 0.0
    by_two: float = 0.0
    span: float | None = None
    flips: PairedCounts | None = None
    before: float = 0.0

    @property
    def says_enough(self) -> bool:
        """Whether there are bounds of the change: 20 examples differ, or what was not seen is bounded."""
        is_known = self.flips is not None or self.span is not None or self.differing >= FEWEST_UNEQUAL
        return self.count >= 2 and is_known

    @property
    def is_by_spread(self) -> bool:
        """Whether the bounds follow from how the examples that were seen spread, and from nothing else."""
        return self.flips is None and self.differing >= FEWEST_UNEQUAL and self.count >= 2

    @property
    def rests_on_two(self) -> bool:
        """Whether the bounds follow from a spread of which two examples make too much."""
        return self.is_by_spread and self.by_two > most_by_two(self.differing)

    @property
    def furthest(self) -> float:
        """No example changed by more than this, as far as the share of the two furthest from the mean says it.

        >>> MeanChange(count=50, change=0.0, deviation=1e-6, differing=50, by_two=0.5).furthest < 1e-5
        True
        """
        return abs(self.change) + self.deviation * math.sqrt(self.by_two * max(0, self.count - 1))

    @property
    def is_significant(self) -> bool:
        """Whether McNemar's exact test finds a change, where there is one to make."""
        return self.flips is None or mcnemar_p(self.flips) <= _LEVEL

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound of the change: the true one is not above (``upper``), or not below, it.

        By the spread of the differences (:func:`~evaltools.metrics.bounds_of_means.skewed_t_bound`). Of scores that are
        0 or 1 it is the bound of a change of shares (:func:`~evaltools.metrics.proportions.change_bound`), and where
        fewer than 20 examples differ the one that the metric's stated bounds guarantee. NaN where there is none.

        >>> change = MeanChange(count=25, change=-0.02, deviation=0.05, differing=25)
        >>> round(change.bound(0.95, upper=False), 4)
        -0.0371
        """
        if not self.says_enough:
            return math.nan
        if self.flips is not None:
            return change_bound(self.flips, confidence, upper)
        if not self.is_by_spread:
            return self.guaranteed(confidence, upper)
        return skewed_t_bound(self.change, self.deviation, self.skewness, self.count, confidence, upper)

    def guaranteed(self, confidence: float, upper: bool) -> float:
        """One-sided bound that holds whatever the scores are, as far as they lie within the metric's stated bounds.

        The nearer one of two, each with half of the error: no more examples change than the exact bound of the share
        that does, and by no more than ``span``; and :func:`~evaltools.metrics.bounds_of_means.guaranteed_bound`. NaN
        where no bounds are stated.

        >>> round(MeanChange(800, 0.0, 0.0, 0, span=1.0).guaranteed(0.95, upper=True), 4)
        0.0046
        """
        if self.flips is not None:
            return change_bound(self.flips, confidence, upper)
        if self.span is None or self.count < 2:
            return math.nan
        half = (1 + confidence) / 2
        by_number = self.span * share_bound(self.differing, self.count, half, upper=True)
        by_size = guaranteed_bound(self.change, self.deviation, (-self.span, self.span), self.count, half, upper)
        return min(by_number, by_size) if upper else max(-by_number, by_size)

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Two-sided, with half of the error on each side; None where there are no bounds.

        >>> interval = MeanChange(25, -0.02, 0.05, 25).interval()
        >>> round(interval.low, 4), round(interval.high, 4)
        (-0.0406, 0.0006)
        """
        if not self.says_enough:
            return None
        if self.flips is not None:
            return change_interval(self.flips, confidence)
        one_sided = (1 + confidence) / 2
        return Interval(self.bound(one_sided, upper=False), self.bound(one_sided, upper=True), confidence)

    def guaranteed_interval(self, confidence: float = 0.95) -> Interval | None:
        """The same that the metric's stated bounds guarantee; None where none are stated, or the interval is it."""
        if self.span is None or not self.is_by_spread:
            return None
        one_sided = (1 + confidence) / 2
        return Interval(self.guaranteed(one_sided, upper=False), self.guaranteed(one_sided, upper=True), confidence)

    def reversed(self) -> MeanChange:
        """The change of the scores with the other sign."""
        flips = self.flips and PairedCounts(self.count, lost=self.flips.gained, gained=self.flips.lost)
        return replace(self, change=-self.change, skewness=-self.skewness, flips=flips, before=-self.before)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples like these decide whether the mean dropped by at most ``limit``, in 80 % of cases.

        None where none does, where too many are needed, and where fewer than 10 examples differ, whose deviation says
        nothing. A larger drop is one of so many ``tests``.
        """
        if self.flips is not None:
            return power.examples_to_decide(self.flips, limit, confidence, tests)
        distance = abs(self.change + limit)
        is_dropped = self.change < -limit
        needed = confidence_of_each(confidence, tests) if is_dropped else confidence
        if distance == 0 or not self._names_a_number:
            return None

        def chance(count: int) -> float:
            reach = abs(self.change - self._of_many(count).bound(needed, upper=is_dropped))
            return power.chance_of_mean(distance, reach, self.deviation / math.sqrt(count))

        return power.examples_needed(lambda count: chance(count) if count > 1 else 0.0, self.count)

    def examples_to_judge(self, margin: float, confidence: float = 0.95) -> int | None:
        """How many examples like these give a verdict in 80 % of cases: equivalent within ``margin``, worse or better.

        None where too many are needed, and where fewer than 10 examples differ, whose deviation says nothing.
        """
        if self.flips is not None:
            return power.examples_to_judge(self.flips, margin, (1 + confidence) / 2)
        if not self._names_a_number:
            return None

        def chance(count: int) -> float:
            many = replace(self._of_many(count), change=0.0)
            below, above = (abs(many.bound((1 + confidence) / 2, upper)) for upper in (False, True))
            found = NormalDist(self.change, max(self.deviation, _SMALLEST_DEVIATION) / math.sqrt(count))
            equivalent = found.cdf(margin - above) - found.cdf(below - margin)
            return found.cdf(-above) + 1 - found.cdf(below) + max(0.0, equivalent)

        return power.examples_needed(lambda count: chance(count) if count > 1 else 0.0, self.count)

    @property
    def _names_a_number(self) -> bool:
        return self.differing >= FEWEST_DIFFERING and self.says_enough and not self.rests_on_two

    def _of_many(self, count: int) -> MeanChange:
        """The same of so many examples, of which enough differ."""
        return replace(self, count=count, differing=max(self.differing, FEWEST_UNEQUAL))


def mean_change(before: npt.ArrayLike, after: npt.ArrayLike, bounds: ScoreBounds | None = None) -> MeanChange:
    """The change of scores on the same examples, in the same order; ``bounds`` are those of the metric, if stated.

    >>> found = mean_change([0.5, 0.75], [0.5, 0.25])
    >>> found.count, found.change, found.differing, found.before
    (2, -0.25, 1, 0.625)
    """
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    differences = second - first
    count = differences.size
    if not count:
        return MeanChange(0, 0.0, 0.0, 0)
    is_share = count > 1 and bool(np.isin(first, (0.0, 1.0)).all() and np.isin(second, (0.0, 1.0)).all())
    lost, gained = (int(np.count_nonzero(differences == way)) for way in (-1.0, 1.0))
    skewness, by_two = shape_of(differences)
    return MeanChange(
        count=count,
        change=math.fsum(differences) / count,
        deviation=float(differences.std(ddof=1)) if count > 1 else 0.0,
        differing=int(np.count_nonzero(differences)),
        skewness=skewness,
        by_two=by_two,
        span=None if bounds is None else bounds[1] - bounds[0],
        flips=PairedCounts(count, lost, gained) if is_share else None,
        before=math.fsum(first) / count,
    )


class MeanOfScores(Struct, frozen=True):
    """The mean of ``count`` scores with their standard deviation, and what bounds of it follow from.

    ``unequal`` of them are not the most frequent one. ``skewness`` and ``by_two`` are as those of :class:`MeanChange`,
    and ``bounds`` those of the metric; None where none are stated.
    """

    mean: float
    deviation: float
    count: int
    unequal: int
    skewness: float = 0.0
    by_two: float = 0.0
    bounds: ScoreBounds | None = None

    @property
    def says_enough(self) -> bool:
        """Whether there are bounds of the mean."""
        return self.count >= 2 and (self._successes is not None or self.bounds is not None or self._is_spread)

    @property
    def rests_on_two(self) -> bool:
        """Whether the bounds follow from a spread of which two examples make too much."""
        return self._successes is None and self._is_spread and self.by_two > most_by_two(self.unequal)

    @property
    def _is_spread(self) -> bool:
        return self.unequal >= FEWEST_UNEQUAL

    @property
    def _successes(self) -> int | None:
        return successes_of(self.mean, self.deviation, self.count)

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound of the mean, as :meth:`MeanChange.bound`, never beyond the metric's stated bounds.

        Scores that are 0 or 1 each are counts of a share, whose bound is exact. NaN where there is none.

        >>> round(MeanOfScores(1.0, 0.0, 200, 0).bound(0.95, upper=False), 4)
        0.9851
        """
        if not self.says_enough:
            return math.nan
        if self._successes is not None:
            return share_bound(self._successes, self.count, confidence, upper)
        if not self._is_spread:
            return self.guaranteed(confidence, upper)
        found = skewed_t_bound(self.mean, self.deviation, self.skewness, self.count, confidence, upper)
        low, high = self.bounds or (-math.inf, math.inf)
        return min(max(found, low), high)

    def guaranteed(self, confidence: float, upper: bool) -> float:
        """One-sided bound that holds whatever the scores are, as far as they lie within the metric's stated bounds.

        By :func:`~evaltools.metrics.bounds_of_means.guaranteed_bound`; exact for scores that are 0 or 1 each. NaN where
        no bounds are stated.

        >>> round(MeanOfScores(0.5, 0.1, 200, 200, bounds=(0.0, 1.0)).guaranteed(0.95, upper=False), 4)
        0.4681
        """
        if self._successes is not None:
            return share_bound(self._successes, self.count, confidence, upper)
        if self.bounds is None or self.count < 2:
            return math.nan
        return guaranteed_bound(self.mean, self.deviation, self.bounds, self.count, confidence, upper)

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Two-sided, with half of the error on each side, Wilson's for a share; None where there is none.

        >>> round(MeanOfScores(0.0, 0.0, 16, 0).interval().high, 4)
        0.1936
        """
        if not self.says_enough:
            return None
        if self._successes is not None:
            return wilson_interval(self._successes, self.count, confidence)
        one_sided = (1 + confidence) / 2
        return Interval(self.bound(one_sided, upper=False), self.bound(one_sided, upper=True), confidence)


def mean_of_scores(mean: float, scores: npt.ArrayLike, bounds: ScoreBounds | None = None) -> MeanOfScores:
    """The ``mean`` of at least one score, with what its bounds follow from.

    >>> mean_of_scores(0.5, [0.25, 0.25, 1.0], (0.0, 1.0)).unequal
    1
    """
    values = np.asarray(scores, np.float64)
    skewness, by_two = shape_of(values)
    return MeanOfScores(
        mean=mean,
        deviation=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        count=len(values),
        unequal=len(values) - int(np.unique(values, return_counts=True)[1].max()),
        skewness=skewness,
        by_two=by_two,
        bounds=bounds,
    )


def most_by_two(count: int) -> float:
    """The largest share of all squares that two of ``count`` differences may have for an interval by their spread.

    >>> [round(most_by_two(count), 3) for count in (50, 196, 800)]
    [0.5, 0.5, 0.247]
    """
    return min(MOST_BY_TWO, _TWO_OF_MANY / math.sqrt(count))


def seen_share(count: int) -> int:
    """One in how many examples a loss hits at least, if none of ``count`` has it, with 95 % confidence: a third.

    >>> seen_share(50), seen_share(1000)
    (17, 334)
    """
    return round(1 / share_bound(0, count, 1 - _LEVEL, upper=True))


def mean_interval(mean: float, deviation: float, count: int, confidence: float = 0.95) -> Interval | None:
    """Student's t interval of a mean, ``mean +- t((1 + confidence) / 2, n - 1) deviation / sqrt(n)``.

    Scores that are 0 or 1 each are counts of a share: their interval is Wilson's. None for fewer than 2 examples, and
    for other scores that are all equal, which say nothing about those that were not seen.

    >>> interval = mean_interval(0.5, 0.1, 16)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.4467, 0.5533)
    >>> round(mean_interval(0.0, 0.0, 16).high, 4)
    0.1936
    """
    successes = successes_of(mean, deviation, count)
    if successes is not None:
        return wilson_interval(successes, count, confidence)
    if count < 2 or deviation == 0:
        return None
    reach = t_quantile((1 + confidence) / 2, count - 1) * deviation / math.sqrt(count)
    return Interval(mean - reach, mean + reach, confidence)


def successes_of(mean: float, deviation: float, count: int) -> int | None:
    """How many scores are 1, where each is 0 or 1; None where they are other numbers, or fewer than 2.

    >>> successes_of(0.5, 0.5163977794943222, 16), successes_of(0.5, 0.1, 16)
    (8, None)
    """
    return round(mean * count) if count > 1 and _is_share(mean, deviation, count) else None


def _is_share(mean: float, deviation: float, count: int) -> bool:
    """Whether each score is 0 or 1: no other scores from 0 to 1 with this mean vary as much."""
    most = mean * (1 - mean) * count / (count - 1)
    return 0 <= mean <= 1 and math.isclose(deviation**2, most, rel_tol=1e-9, abs_tol=1e-15)
