"""Shares and how well they are known, and the change of a share on the same examples."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.interval import Interval

FEW_FLIPS: Final = 30
"""With fewer the normal distribution is not near enough to that of Tango's score: limits would be broken too often."""
_PRECISION: Final = 1e-13
"""Of a bound that is found by halving, and of one by exact probabilities a share of its distance."""
_EXACT_PRECISION: Final = 1e-6
_SAME_SCORE: Final = 1e-9
Numbers = np.ndarray[Any, np.dtype[np.float64]]


def wilson_interval(successes: int, count: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a share, 0..1.

    ``(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`` with ``p = successes / count``. Source: E. B. Wilson
    1927; recommended by Brown, Cai and DasGupta 2001 for any ``count``. Raises :class:`ValueError` for no examples.

    >>> interval = wilson_interval(7, 10)
    >>> round(interval.low, 4), round(interval.high, 4)
    (0.3968, 0.8922)
    """
    if not 0 <= successes <= count or count == 0:
        raise ValueError(f"{successes} of {count} is not a share")
    share = successes / count
    square = NormalDist().inv_cdf(0.5 + confidence / 2) ** 2
    middle = share + square / (2 * count)
    half = math.sqrt(square * (share * (1 - share) / count + square / (4 * count * count)))
    scale = 1 + square / count
    low = 0.0 if successes == 0 else (middle - half) / scale
    high = 1.0 if successes == count else (middle + half) / scale
    return Interval(low, high, confidence)


def share_bound(successes: int, count: int, confidence: float, upper: bool) -> float:
    """One-sided exact bound of a share, 0..1: with this confidence the true one is not above, or not below, it.

    The share at which as many successes or fewer (``upper``), or as many or more, have a probability of
    ``1 - confidence``. Source: C. J. Clopper and E. S. Pearson 1934. It never errs more often than it says, whatever
    the share. Raises :class:`ValueError` for no examples.

    >>> round(share_bound(200, 200, 0.95, upper=False), 4)
    0.9851
    """
    from scipy import special

    if not 0 <= successes <= count or count == 0:
        raise ValueError(f"{successes} of {count} is not a share")
    if upper:
        return 1.0 if successes == count else float(special.betaincinv(successes + 1, count - successes, confidence))
    return 0.0 if successes == 0 else float(special.betaincinv(successes, count - successes + 1, 1 - confidence))


class PairedCounts(Struct, frozen=True):
    """Two configurations on the same ``count`` examples.

    ``lost``: the first is right and the second wrong; ``gained`` the other way round. The others do not separate the
    two.
    """

    count: int
    lost: int
    gained: int

    def __post_init__(self) -> None:
        if min(self.lost, self.gained) < 0 or self.lost + self.gained > self.count:
            raise ValueError(f"{self.lost} lost and {self.gained} gained of {self.count} examples cannot be")

    @property
    def change(self) -> float:
        """Share of the second minus share of the first, -1..1; 0 without examples."""
        return (self.gained - self.lost) / self.count if self.count else 0.0


def mcnemar_p(counts: PairedCounts) -> float:
    """Two-sided p of McNemar's test, exact: as many lost as gained are expected where nothing changed.

    ``min(1, 2 P(X <= min(lost, gained)))`` with ``X`` binomial of ``lost + gained`` and 1/2. Source: Q. McNemar 1947;
    the exact form in Fagerland, Lydersen and Laake 2013. Without a flip it is 1.

    >>> round(mcnemar_p(PairedCounts(100, 8, 1)), 4)
    0.0391
    """
    from scipy import special

    flips = counts.lost + counts.gained
    return min(1.0, 2 * float(special.bdtr(min(counts.lost, counts.gained), flips, 0.5)))


def change_z(counts: PairedCounts, change: float) -> float:
    """Tango's score: how many standard errors the observed change lies above ``change``, -1 < change < 1.

    ``(gained - lost - n d) / sqrt(n (2 q + d (1 - d)))``, where ``q`` is the most likely share of lost examples if the
    true change is ``d``: the larger root of ``2n q^2 - (gained + lost - (2n - gained + lost) d) q - lost d (1 - d)``,
    as Tango writes it. Source: T. Tango 1998, Statistics in Medicine 17, 891-908.

    >>> round(change_z(PairedCounts(44, 1, 0), 0.0), 4)
    -1.0
    """
    variance = float(_variance(counts.count, counts.lost, counts.gained, change))
    distance = counts.gained - counts.lost - counts.count * change
    if variance > 0:
        return distance / math.sqrt(variance)
    return math.copysign(math.inf, distance) if distance else 0.0


def change_scores(count: int, lost: npt.ArrayLike, gained: npt.ArrayLike, change: float) -> Numbers:
    """The score of :func:`change_z` for each of several numbers of flips, which need not be whole."""
    losses, gains = np.asarray(lost, np.float64), np.asarray(gained, np.float64)
    variance = _variance(count, losses, gains, change)
    distance = gains - losses - count * change
    has_spread = variance > 0
    no_spread = np.where(distance == 0, 0.0, np.copysign(math.inf, distance))
    scores: Numbers = np.where(has_spread, distance / np.sqrt(np.where(has_spread, variance, 1.0)), no_spread)
    return scores


def _variance(count: int, lost: Numbers | int, gained: Numbers | int, change: float) -> Numbers:
    variance: Numbers = count * (2 * _likeliest_share_lost(count, lost, gained, change) + change * (1 - change))
    return variance


def _likeliest_share_lost(count: int, lost: Numbers | int, gained: Numbers | int, change: float) -> Numbers:
    """The ``q`` of :func:`change_z`."""
    second = -gained - lost + (2 * count - gained + lost) * change
    third = -lost * change * (1 - change)
    share: Numbers = (np.sqrt(np.maximum(0.0, second * second - 8 * count * third)) - second) / (4 * count)
    return share


def change_p(count: int, lost: npt.ArrayLike, gained: npt.ArrayLike, change: float, above: bool) -> Numbers:
    """For each of several numbers of flips, how probable scores are that are so high (``above``) or so low, or more so.

    Exact for a true ``change`` and the share of lost examples that is the most likely one then (B. E. Storer and C. Kim
    1990): the sum of the probabilities of all such numbers of flips.

    >>> change_p(200, [0, 5], [0, 0], -0.015, above=True).round(4)
    array([0.0487, 0.9176])
    """
    from scipy import special

    losses, gains = np.atleast_1d(np.asarray(lost, np.float64)), np.atleast_1d(np.asarray(gained, np.float64))
    share_lost = np.maximum(_likeliest_share_lost(count, losses, gains, change), max(0.0, -change))[:, None]
    share_gained = share_lost + change
    flips = count * float((share_lost + share_gained).max())
    most = min(count, math.ceil(flips + 8 * math.sqrt(flips) + 12))
    numbers = np.arange(most + 1)
    other_losses, other_gains = np.nonzero(np.add.outer(numbers, numbers) <= most)
    others, rest = other_losses + other_gains, count - numbers
    each, of_rest = special.gammaln(numbers + 1), special.gammaln(rest + 1)
    ways = special.gammaln(count + 1) - (each[other_losses] + each[other_gains] + of_rest[others])
    share_kept = np.maximum(0.0, 1 - share_lost - share_gained)
    probabilities = np.exp(
        ways
        + special.xlogy(numbers, share_lost)[:, other_losses]
        + special.xlogy(numbers, share_gained)[:, other_gains]
        + special.xlogy(rest, share_kept)[:, others]
    )
    own = change_scores(count, losses, gains, change)[:, None]
    scores = change_scores(count, other_losses, other_gains, change)
    beyond = scores >= own - _SAME_SCORE if above else scores <= own + _SAME_SCORE
    found: Numbers = (probabilities * beyond).sum(axis=1)
    return found


@lru_cache(maxsize=1024)
def change_bound(counts: PairedCounts, confidence: float, upper: bool) -> float:
    """One-sided bound of the change: with this confidence the true change is not above (``upper``), or not below, it.

    Where Tango's score leaves the quantile of the normal distribution, and for fewer than 30 flips where its exact
    probability is that of an error (:func:`change_p`); -1 or 1 without examples.

    >>> round(change_bound(PairedCounts(5000, 41, 32), 0.95, upper=False), 5)
    -0.00469
    >>> round(change_bound(PairedCounts(5000, 0, 0), 0.95, upper=False), 5)
    -0.0006
    """
    by_score = _score_bound(counts, confidence, upper)
    edge = 1.0 if upper else -1.0
    if counts.lost + counts.gained >= FEW_FLIPS or by_score == edge:
        return by_score

    def is_excluded(change: float) -> bool:
        return float(change_p(counts.count, counts.lost, counts.gained, change, not upper)[0]) <= 1 - confidence

    inner, outer = counts.change, by_score
    while abs(outer) < 1 and not is_excluded(outer):
        inner, outer = outer, max(-1.0, min(1.0, counts.change + 1.25 * (outer - counts.change)))
    while abs(outer - inner) > _EXACT_PRECISION * abs(outer - counts.change):
        middle = (inner + outer) / 2
        inner, outer = (inner, middle) if is_excluded(middle) else (middle, outer)
    return outer


@lru_cache(maxsize=1024)
def _score_bound(counts: PairedCounts, confidence: float, upper: bool) -> float:
    """Where Tango's score leaves the quantile of the normal distribution."""
    edge = 1.0 if upper else -1.0
    if counts.count == 0:
        return edge
    quantile = NormalDist().inv_cdf(confidence)
    target = -quantile if upper else quantile

    def excess(change: float) -> float:
        return change_z(counts, change) - target

    inner, outer = counts.change, edge * (1 - 1e-12)
    is_above = excess(inner) > 0
    if (inner - edge) * edge >= 0 or (excess(outer) > 0) == is_above:
        return edge
    while abs(outer - inner) > _PRECISION:
        middle = (inner + outer) / 2
        if (excess(middle) > 0) == is_above:
            inner = middle
        else:
            outer = middle
    return (inner + outer) / 2


def change_interval(counts: PairedCounts, confidence: float = 0.95) -> Interval:
    """Two-sided interval of the change by Tango's score (see :func:`change_z`), with half of the error on each side.

    Unlike Wald's it has a width where nothing flipped.

    >>> interval = change_interval(PairedCounts(44, 1, 0))
    >>> round(interval.low, 3), round(interval.high, 3)
    (-0.118, 0.059)
    """
    one_sided = (1 + confidence) / 2
    return Interval(_score_bound(counts, one_sided, False), _score_bound(counts, one_sided, True), confidence)
