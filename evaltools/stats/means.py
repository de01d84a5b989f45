"""Means, how well they and what is pooled over examples are known, and the change of a mean on the same examples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from evaltools.stats.interval import Interval, confidence_of_each
from evaltools.stats.power import chance_of_mean, examples_needed
from evaltools.stats.proportions import share_bound, wilson_interval

FEWEST_DIFFERING: Final = 10
"""With fewer examples that differ, those that were not seen may decide."""
Rows = Sequence[npt.NDArray[np.generic]]
MOST_ALONE: Final = 2000
"""With more examples than these, whole groups are left out: time would grow with the square of their number."""
GROUPS: Final = 200
_SEED: Final = 20


class MeanChange(Struct, frozen=True):
    """How a score changed from one configuration to another over the same ``count`` examples.

    ``change`` is the mean of the differences and ``deviation`` their standard deviation; ``differing`` of them are not
    zero. ``span`` is the distance from the smallest to the largest score of both, zero included; 1 where
    all are 0, as in a share.
    """

    count: int
    change: float
    deviation: float
    differing: int
    span: float

    def bound(self, confidence: float, upper: bool) -> float:
        """One-sided bound of the change: the true one is not above (``upper``), or not below, it. NaN below 2 examples.

        Student's t: ``change +- t(confidence, n - 1) deviation / sqrt(n)`` (W. S. Gosset 1908, the paired test). Where
        fewer than 10 examples differ, the differences say little about examples like those that were not seen. The
        bound is then at least as far off as the exact one puts it for ``n`` examples of which none changed, each of
        which could have changed by ``span``.

        >>> change = MeanChange(count=25, change=-0.02, deviation=0.05, differing=25, span=1.0)
        >>> round(change.bound(0.95, upper=False), 4)
        -0.0371
        >>> round(MeanChange(100, 0.0, 0.0, 0, 1.0).bound(0.95, upper=True), 4)
        0.0295
        """
        if self.count < 2:
            return math.nan
        reach = _t_quantile(confidence, self.count - 1) * self.deviation / math.sqrt(self.count)
        found = self.change + reach if upper else self.change - reach
        if self.differing >= FEWEST_DIFFERING:
            return found
        unseen = self.span * share_bound(0, self.count, confidence, upper=True)
        return max(found, unseen) if upper else min(found, -unseen)

    def interval(self, confidence: float = 0.95) -> Interval | None:
        """Two-sided, with half of the error on each side; None for fewer than 2 examples.

        >>> interval = MeanChange(25, -0.02, 0.05, 25, 1.0).interval()
        >>> round(interval.low, 4), round(interval.high, 4)
        (-0.0406, 0.0006)
        """
        one_sided = (1 + confidence) / 2
        if self.count < 2:
            return None
        return Interval(self.bound(one_sided, upper=False), self.bound(one_sided, upper=True), confidence)

    def reversed(self) -> MeanChange:
        """The change of the scores with the other sign."""
        return replace(self, change=-self.change)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples like these tell whether the mean dropped by at most ``limit``, in 80 % of cases.

        None where none does, or where too many are needed. A larger drop is one of so many ``tests``.
        """
        distance = abs(self.change + limit)
        is_dropped = self.change < -limit
        needed = confidence_of_each(confidence, tests) if is_dropped else confidence
        if distance == 0 or self.count < 2:
            return None

        def chance(count: int) -> float:
            many = replace(self, count=count, differing=round(self.differing * count / self.count))
            reach = abs(self.change - many.bound(needed, upper=is_dropped))
            return chance_of_mean(distance, reach, self.deviation / math.sqrt(count))

        return examples_needed(lambda count: chance(count) if count > 1 else 0.0, self.count)


def mean_change(before: npt.ArrayLike, after: npt.ArrayLike) -> MeanChange:
    """The change of scores on the same examples, in the same order.

    >>> mean_change([0.5, 0.75], [0.5, 0.25])
    MeanChange(count=2, change=-0.25, deviation=0.3535533905932738, differing=1, span=0.75)
    """
    first, second = np.asarray(before, np.float64), np.asarray(after, np.float64)
    differences = second - first
    count = differences.size
    if not count:
        return MeanChange(0, 0.0, 0.0, 0, 0.0)
    both = np.concatenate([first, second, [0.0]])
    return MeanChange(
        count=count,
        change=math.fsum(differences) / count,
        deviation=float(differences.std(ddof=1)) if count > 1 else 0.0,
        differing=int(np.count_nonzero(differences)),
        span=float(both.max() - both.min()) or 1.0,
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
    reach = _reach_of_mean(deviation, count, (1 + confidence) / 2)
    return None if reach is None else Interval(mean - reach, mean + reach, confidence)


def mean_bound(mean: float, deviation: float, count: int, confidence: float, upper: bool) -> float | None:
    """One-sided bound of a mean: that of :func:`mean_interval`, but the exact one for scores of 0 and 1.

    >>> round(mean_bound(1.0, 0.0, 200, 0.95, upper=False), 4)
    0.9851
    """
    successes = successes_of(mean, deviation, count)
    if successes is not None:
        return share_bound(successes, count, confidence, upper)
    reach = _reach_of_mean(deviation, count, confidence)
    return None if reach is None else mean + reach if upper else mean - reach


def _reach_of_mean(deviation: float, count: int, confidence: float) -> float | None:
    if count < 2 or deviation == 0:
        return None
    return _t_quantile(confidence, count - 1) * deviation / math.sqrt(count)


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
    """The number of the group of each of ``count`` examples, (count,): each alone, or 200 groups of nearly one size.

    >>> groups_of(4).tolist(), np.unique(np.bincount(groups_of(5100))).tolist()
    ([0, 1, 2, 3], [25, 26])
    """
    if count <= MOST_ALONE:
        return np.arange(count)
    return np.random.default_rng(_SEED).permutation(count) % GROUPS
