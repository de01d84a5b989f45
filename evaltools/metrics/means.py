"""Means, how well they and what is pooled over examples are known, and the change of a mean on the same examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import compress
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.metrics.interval import Interval, confidence_of_each
from evaltools.metrics.power import chance_of_mean, examples_needed
from evaltools.metrics.proportions import share_bound, wilson_interval

FEWEST_DIFFERING: Final = 10
"""With fewer examples that differ, their spread names no number of examples."""
FEWEST_UNEQUAL: Final = 20
"""With fewer unequal values, and no stated bounds, those that were not seen decide: there is no interval."""
_SMALLEST_DEVIATION: Final = 1e-12
ScoreBounds = tuple[float, float]
"""The smallest and the largest score that a metric can have."""
Rows = Sequence[npt.NDArray[np.generic]]
MOST_ALONE: Final = 2000
"""With more examples than these, whole groups are left out: time would grow with the square of their number."""
GROUPS: Final = 200
_SEED: Final = 20


class MeanChange(Struct, frozen=True):
    """How a score changed from one configuration to another over the same ``count`` examples.

    ``change`` is the mean of the differences and ``deviation`` their standard deviation; ``differing`` of them are not
    zero. ``span`` is how much an example can change: the distance of the metric's bounds where they are stated
    (``is_bounded``), or where every score is 0 or 1; else that from the smallest to the largest score of both, zero
    included, and 1 where all are 0.
    """

    count: int
    change: float
    deviation: float
    differing: int
    span: float
    is_bounded: bool = False

    @property
    def says_enough(self) -> bool:
        """Whether there are bounds of the change: what was not seen is bounded, or 20 examples differ."""
        return self.count >= 2 and (self.is_bounded or self.differing >= FEWEST_UNEQUAL)

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound of the change: the true one is not above (``upper``), or not below, it.

        ``change +- (t(confidence, n - 1) deviation / sqrt(n) + span p)``: Student's t (W. S. Gosset 1908, the paired
        test) for what was seen, and for what was not the exact bound ``p`` of a share of which none was seen in ``n``,
        ``1 - (1 - confidence) ** (1 / n)``. So it has the form of an empirical Bernstein bound (A. Maurer and M. Pontil
        2009): few examples that lose much make a mean and a deviation that are both too small, where only t is wrong
        in up to 39 % of cases. ``python -m benchmarks intervals`` counts how often this one is.

        NaN for fewer than 2 examples, and for fewer than 20 that differ where no bounds are stated.

        >>> change = MeanChange(count=25, change=-0.02, deviation=0.05, differing=25, span=0.1)
        >>> round(change.bound(0.95, upper=False), 4)
        -0.0484
        >>> round(MeanChange(100, 0.0, 0.0, 0, 1.0, is_bounded=True).bound(0.95, upper=True), 4)
        0.0295
        """
        if not self.says_enough:
            return math.nan
        seen = _t_quantile(confidence, self.count - 1) * self.deviation / math.sqrt(self.count)
        reach = seen + self.span * share_bound(0, self.count, confidence, upper=True)
        return self.change + reach if upper else self.change - reach

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Two-sided, with half of the error on each side; None where there are no bounds.

        >>> interval = MeanChange(25, -0.02, 0.05, 25, 0.1).interval()
        >>> round(interval.low, 4), round(interval.high, 4)
        (-0.0544, 0.0144)
        """
        one_sided = (1 + confidence) / 2
        if not self.says_enough:
            return None
        return Interval(self.bound(one_sided, upper=False), self.bound(one_sided, upper=True), confidence)

    def reversed(self) -> MeanChange:
        """The change of the scores with the other sign."""
        return replace(self, change=-self.change)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples like these decide whether the mean dropped by at most ``limit``, in 80 % of cases.

        None where none does, where too many are needed, and where fewer than 10 examples differ, whose deviation says
        nothing. A larger drop is one of so many ``tests``.
        """
        distance = abs(self.change + limit)
        is_dropped = self.change < -limit
        needed = confidence_of_each(confidence, tests) if is_dropped else confidence
        if distance == 0 or self.differing < FEWEST_DIFFERING or not self.says_enough:
            return None

        def chance(count: int) -> float:
            many = replace(self, count=count, is_bounded=True)
            reach = abs(self.change - many.bound(needed, upper=is_dropped))
            return chance_of_mean(distance, reach, self.deviation / math.sqrt(count))

        return examples_needed(lambda count: chance(count) if count > 1 else 0.0, self.count)

    def examples_to_judge(self, margin: float, confidence: float = 0.95) -> int | None:
        """How many examples like these give a verdict in 80 % of cases: equivalent within ``margin``, worse or better.

        None where too many are needed, and where fewer than 10 examples differ, whose deviation says nothing.
        """
        if self.differing < FEWEST_DIFFERING or not self.says_enough:
            return None

        def chance(count: int) -> float:
            many = replace(self, change=0.0, count=count, is_bounded=True)
            reach = many.bound((1 + confidence) / 2, upper=True)
            found = NormalDist(self.change, max(self.deviation, _SMALLEST_DEVIATION) / math.sqrt(count))
            equivalent = found.cdf(margin - reach) - found.cdf(reach - margin)
            return found.cdf(-reach) + 1 - found.cdf(reach) + max(0.0, equivalent)

        return examples_needed(lambda count: chance(count) if count > 1 else 0.0, self.count)


def mean_change(before: npt.ArrayLike, after: npt.ArrayLike, bounds: ScoreBounds | None = None) -> MeanChange:
    """The change of scores on the same examples, in the same order; ``bounds`` are those of the metric, if stated.

    >>> mean_change([0.5, 0.75], [0.5, 0.25])
    MeanChange(count=2, change=-0.25, deviation=0.3535533905932738, differing=1, span=0.75, is_bounded=False)
    """
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    differences = second - first
    count = differences.size
    if not count:
        return MeanChange(0, 0.0, 0.0, 0, 0.0)
    both = np.concatenate([first, second])
    low, high, is_bounded = _bounds_of(both, bounds)
    return MeanChange(
        count=count,
        change=math.fsum(differences) / count,
        deviation=float(differences.std(ddof=1)) if count > 1 else 0.0,
        differing=int(np.count_nonzero(differences)),
        span=high - low or 1.0,
        is_bounded=is_bounded,
    )


def _bounds_of(scores: npt.NDArray[np.float64], stated: ScoreBounds | None) -> tuple[float, float, bool]:
    """The bounds of scores, and whether they are known: stated, or 0 and 1 where all scores are; else as seen."""
    if stated is not None:
        return (*stated, True)
    if bool(np.isin(scores, (0.0, 1.0)).all()):
        return 0.0, 1.0, True
    return min(0.0, float(scores.min())), max(0.0, float(scores.max())), False


class MeanOfScores(Struct, frozen=True):
    """The mean of ``count`` scores with their standard deviation, and what bounds of it follow from.

    ``unequal`` of them are not the most frequent one. ``low`` and ``high`` are the metric's bounds where they are
    stated (``is_bounded``), or where every score is 0 or 1; else the smallest and the largest score, zero included.
    """

    mean: float
    deviation: float
    count: int
    unequal: int
    low: float
    high: float
    is_bounded: bool = False

    @property
    def says_enough(self) -> bool:
        """Whether there are bounds of the mean."""
        return self.count >= 2 and (self.is_bounded or self.unequal >= FEWEST_UNEQUAL)

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound of the mean, as :meth:`MeanChange.bound`: a score that was not seen is ``low`` or ``high``.

        Scores that are 0 or 1 each are counts of a share, whose bound is exact. NaN where there is none.

        >>> round(MeanOfScores(1.0, 0.0, 200, 0, 0.0, 1.0, is_bounded=True).bound(0.95, upper=False), 4)
        0.9851
        """
        if not self.says_enough:
            return math.nan
        successes = successes_of(self.mean, self.deviation, self.count)
        if successes is not None:
            return share_bound(successes, self.count, confidence, upper)
        seen = _t_quantile(confidence, self.count - 1) * self.deviation / math.sqrt(self.count)
        unseen = share_bound(0, self.count, confidence, upper=True)
        furthest = self.high - self.mean if upper else self.mean - self.low
        reach = seen + max(0.0, furthest) * unseen
        found = self.mean + reach if upper else self.mean - reach
        return min(max(found, self.low), self.high) if self.is_bounded else found

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Two-sided, with half of the error on each side, Wilson's for a share; None where there is none.

        >>> round(MeanOfScores(0.0, 0.0, 16, 0, 0.0, 1.0, is_bounded=True).interval().high, 4)
        0.1936
        """
        if not self.says_enough:
            return None
        successes = successes_of(self.mean, self.deviation, self.count)
        if successes is not None:
            return wilson_interval(successes, self.count, confidence)
        one_sided = (1 + confidence) / 2
        return Interval(self.bound(one_sided, upper=False), self.bound(one_sided, upper=True), confidence)


def mean_of_scores(mean: float, scores: npt.ArrayLike, bounds: ScoreBounds | None = None) -> MeanOfScores:
    """The ``mean`` of at least one score, with what its bounds follow from.

    >>> mean_of_scores(0.5, [0.25, 0.25, 1.0], (0.0, 1.0)).unequal
    1
    """
    values = np.asarray(scores, np.float64)
    low, high, is_bounded = _bounds_of(values, bounds)
    return MeanOfScores(
        mean=mean,
        deviation=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        count=len(values),
        unequal=len(values) - int(np.unique(values, return_counts=True)[1].max()),
        low=low,
        high=high,
        is_bounded=is_bounded,
    )


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
    reach = _t_quantile((1 + confidence) / 2, count - 1) * deviation / math.sqrt(count)
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


def _t_quantile(share: float, degrees: int) -> float:
    from scipy import special

    return float(special.stdtrit(degrees, share))


def contributions(figure: Callable[[Rows], float], rows: Rows) -> npt.NDArray[np.float64]:
    """What each of ``n`` examples adds to ``figure(rows)``: numbers with that mean, (n,) float64.

    Their standard deviation by ``sqrt(n)`` is the figure's standard error, and for a mean of up to 2000 they are the
    examples' own values. A figure that there is not (NaN) without some examples counts as 0 without them.

    Up to 2000 examples they are the jackknife's pseudo-values ``n f - (n - 1) f(without it)`` (J. W. Tukey 1958), moved
    so that their mean is the figure itself. Of more examples, 200 random groups are left out instead, the same ones
    for every figure of so many examples: the delete-a-group jackknife (P. S. Kott 2001), whose variance is
    ``(G - 1) / G * sum((f(without group g) - their mean) ** 2)`` for ``G`` groups. Then the examples of a group have
    one number in common.

    >>> contributions(lambda rows: float(np.mean(rows)), [np.array([value]) for value in (1.0, 2.0, 6.0)]).round(9)
    array([1., 2., 6.])
    """
    count = len(rows)
    whole = figure(rows)
    if count < 2:
        return np.full(count, whole)
    groups = groups_of(count)
    number = int(groups.max()) + 1
    figures = [figure(list(compress(rows, (groups != group).tolist()))) for group in range(number)]
    without = np.nan_to_num(figures, nan=0.0)[groups]
    found: npt.NDArray[np.float64] = whole + np.sqrt((number - 1) * (count - 1)) * (without.mean() - without)
    return found


def groups_of(count: int) -> npt.NDArray[np.int64]:
    """The number of the group of each of ``count`` examples, (count,): each its own, or 200 of nearly one size.

    >>> groups_of(4).tolist(), np.unique(np.bincount(groups_of(5100))).tolist()
    ([0, 1, 2, 3], [25, 26])
    """
    if count <= MOST_ALONE:
        return np.arange(count)
    return np.random.default_rng(_SEED).permutation(count) % GROUPS
