"""How many times as long a configuration takes as another on the same examples, and whether the machine drifted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaltools.stats.interval import Interval

CLEAR_TREND: Final = 0.001
"""The p-value below which a trend is no chance."""
MUCH_DRIFT: Final = 0.1
"""The change, up or down, above which a trend matters."""
_RESAMPLES: Final = 1000
_VALUES_PER_BLOCK: Final = 1_000_000
_FEWEST_FOR_TREND: Final = 10
_MOST_FOR_TREND: Final = 5000


@dataclass(frozen=True)
class LatencyRatio:
    """How many times as long as the first the second takes: the median of the ratios of ``pairs`` examples.

    Below 1 the second is faster. ``interval`` is null where there are fewer than two pairs.
    """

    pairs: int
    ratio: float
    interval: Interval | None


@dataclass(frozen=True)
class Drift:
    """Whether times rose or fell while they were measured.

    ``change`` is the median of the last third divided by that of the first third, minus 1; ``p_value`` that of a trend.
    """

    change: float
    p_value: float


def is_clear(drift: Drift | None) -> bool:
    """Whether times rose or fell by more than 10 %, and not by chance; never where the drift is not known.

    >>> is_clear(Drift(-0.12, 0.0004)), is_clear(Drift(0.12, 0.004)), is_clear(Drift(0.08, 0.0004))
    (True, False, False)
    """
    return drift is not None and abs(drift.change) > MUCH_DRIFT and drift.p_value < CLEAR_TREND


def latency_ratio(
    first_us: Sequence[int], second_us: Sequence[int], confidence: float = 0.95, seed: int = 0
) -> LatencyRatio | None:
    """The median ratio with a paired bootstrap interval; ``first_us[i]`` and ``second_us[i]`` are of one example.

    Both feel the same slow moments of the machine, which the ratio of a pair does not show. Pairs are drawn with
    replacement 1000 times, and the interval has the percentiles of the medians of their ratios. Source: Efron and
    Tibshirani 1993, chapters 8 and 13. Times of 0 us count as 1; None without a pair.

    >>> found = latency_ratio([10, 12, 11, 10], [20, 24, 22, 20])
    >>> found.ratio, found.interval.low, found.interval.high
    (2.0, 2.0, 2.0)
    """
    first, second = (np.maximum(np.asarray(times, np.float64), 1.0) for times in (first_us, second_us))
    ratios = second / first
    count = len(ratios)
    if count == 0:
        return None
    if count == 1:
        return LatencyRatio(count, float(ratios[0]), None)
    generator = np.random.default_rng(seed)
    medians: list[float] = []
    while len(medians) < _RESAMPLES:
        rows = min(_RESAMPLES - len(medians), max(1, _VALUES_PER_BLOCK // count))
        medians += np.median(ratios[generator.integers(0, count, (rows, count))], axis=1).tolist()
    tail = (1 - confidence) / 2
    low, high = np.percentile(medians, [100 * tail, 100 * (1 - tail)])
    return LatencyRatio(count, float(np.median(ratios)), Interval(float(low), float(high), confidence))


def drift(times_us: Sequence[int]) -> Drift | None:
    """The trend of times in the order in which they were measured; None for fewer than 10.

    ``p_value`` is that of Kendall's tau against the order (Mann 1945), two-sided; of at most 5000 times, spread evenly.

    >>> found = drift(range(100, 160))
    >>> round(found.change, 2), found.p_value < 1e-9
    (0.37, True)
    """
    if len(times_us) < _FEWEST_FOR_TREND:
        return None
    from scipy import stats

    times = np.asarray(times_us, np.float64)
    third = len(times) // 3
    early, late = np.median(times[:third]), np.median(times[-third:])
    chosen = times[np.linspace(0, len(times) - 1, min(len(times), _MOST_FOR_TREND)).astype(np.intp)]
    found = stats.kendalltau(np.arange(len(chosen)), chosen)
    p_value = 1.0 if np.isnan(found.pvalue) else float(found.pvalue)
    return Drift(float(late / early - 1) if early > 0 else 0.0, p_value)
