"""How many examples it takes to see a change."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.stats.proportions import PairedCounts, expected_bound

MOST_EXAMPLES: Final = 100_000_000
_NEGLIGIBLE: Final = 1e-13
_MOST_FLIPS_EXACT: Final = 20_000


def mcnemar_power(count: int, drop: float, flip_rate: float, alpha: float = 0.05) -> float:
    """Probability that the exact McNemar test of ``count`` examples gives p <= ``alpha`` if accuracy falls by ``drop``.

    ``flip_rate`` is the share of examples that one configuration has right and the other wrong, so ``drop <=
    flip_rate``. The number of flips is binomial of ``count`` and ``flip_rate``, the lost ones among them binomial with
    share ``(1 + drop / flip_rate) / 2``; the probability of rejection is summed over both, without approximation up to
    20000 flips, by the normal approximation of Connor 1987 above.

    >>> round(mcnemar_power(5000, 0.005, 0.01), 3)
    0.94
    """
    from scipy import stats

    share_lost = (1 + drop / flip_rate) / 2
    flips = stats.binom(count, flip_rate)
    if flips.ppf(1 - _NEGLIGIBLE) > _MOST_FLIPS_EXACT:
        return _normal_power(count, drop, flip_rate, alpha)
    possible = np.arange(int(flips.ppf(_NEGLIGIBLE)), int(flips.ppf(1 - _NEGLIGIBLE)) + 1)
    most_few = _rejected_up_to(possible, alpha)
    rejected = stats.binom.cdf(most_few, possible, share_lost) + stats.binom.cdf(most_few, possible, 1 - share_lost)
    return float(np.sum(flips.pmf(possible) * np.where(most_few >= 0, rejected, 0.0)))


def _rejected_up_to(flips: npt.NDArray[np.int64], alpha: float) -> npt.NDArray[np.int64]:
    """For each number of flips the most of the rarer kind that is still rejected, -1 where nothing is."""
    from scipy import stats

    edge = stats.binom.ppf(alpha / 2, flips, 0.5).astype(np.int64)
    too_likely = 2 * stats.binom.cdf(edge, flips, 0.5) > alpha
    most: npt.NDArray[np.int64] = np.where(too_likely, edge - 1, edge)
    return most


def _normal_power(count: int, drop: float, flip_rate: float, alpha: float) -> float:
    quantile = NormalDist().inv_cdf(1 - alpha / 2)
    distance = abs(drop) * math.sqrt(count)
    spread = math.sqrt(max(flip_rate - drop * drop, 1e-300))
    return NormalDist().cdf((distance - quantile * math.sqrt(flip_rate)) / spread)


def examples_to_see(drop: float, flip_rate: float, power: float = 0.8, alpha: float = 0.05) -> int | None:
    """The number of examples with which the exact McNemar test sees ``drop`` with probability ``power``.

    None for more than 100 million. Raises :class:`ValueError` for rates that cannot be. Power rises with the number in
    small saw teeth, so a few examples less may do as well.

    >>> examples_to_see(0.005, 0.01)
    3373
    """
    if not 0 < drop <= flip_rate <= 1:
        raise ValueError(f"a drop of {drop:g} with a flip rate of {flip_rate:g}: 0 < drop <= flip rate <= 1 is needed")
    return _fewest(lambda count: mcnemar_power(count, drop, flip_rate, alpha) >= power)


def examples_to_decide(counts: PairedCounts, limit: float, confidence: float = 0.95) -> int | None:
    """How many examples with the observed rates would decide whether the drop is at most ``limit``.

    The one-sided bound (see :func:`~evaltools.stats.proportions.change_bound`) of as many examples with the same shares
    of lost and gained ones then lies on one side of the limit. None where that is never so: the observed drop is the
    limit, or nothing was measured.

    >>> examples_to_decide(PairedCounts(200, 1, 0), limit=0.02)
    236
    """
    return _fewest_that_show(counts, confidence, lambda low, high: low >= -limit or high < -limit)


def examples_to_judge(counts: PairedCounts, margin: float, confidence: float = 0.975) -> int | None:
    """How many examples with the observed rates would show a change: within ``margin`` of none, or on one side of none.

    ``confidence`` is that of each end of the interval. None where none would, or nothing was measured.

    >>> examples_to_judge(PairedCounts(200, 1, 5), margin=0.005)
    289
    """
    return _fewest_that_show(
        counts, confidence, lambda low, high: (-margin <= low and high <= margin) or high < 0 or low > 0
    )


def _fewest_that_show(counts: PairedCounts, confidence: float, is_shown: Callable[[float, float], bool]) -> int | None:
    """How many examples with the observed rates have bounds of the change, low and high, that show something."""
    if counts.count == 0:
        return None
    lost, gained = counts.lost / counts.count, counts.gained / counts.count

    def is_enough(count: int) -> bool:
        low, high = (expected_bound(count, lost * count, gained * count, confidence, upper) for upper in (False, True))
        return is_shown(low, high)

    return _fewest(is_enough, start=counts.count)


def _fewest(is_enough: Callable[[int], bool], start: int = 1) -> int | None:
    """The smallest number from ``start`` on that is enough, found by doubling and halving; None above 100 million."""
    low, high = start - 1, start
    while not is_enough(high):
        low, high = high, 2 * high
        if high > MOST_EXAMPLES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
