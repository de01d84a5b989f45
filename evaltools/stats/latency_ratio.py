"""How many times as long a configuration takes as another on the same examples, and whether the machine drifted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.stats.interval import Interval
from evaltools.stats.series import FEWEST_PROCESSES, clock_step, processes_bounds, series_bounds

CLEAR_TREND: Final = 0.001
"""The p-value below which a trend is no chance."""
MUCH_DRIFT: Final = 0.1
"""The change, up or down, above which a trend matters."""
_MOST_LOGARITHM: Final = 700.0
"""Of a number that a float can hold."""
_FEWEST_FOR_TREND: Final = 10
_MOST_FOR_TREND: Final = 5000


class LatencyRatio(Struct, frozen=True):
    """How many times as long as the first the second takes: the median of the ratios of ``pairs`` examples.

    Below 1 the second is faster. ``interval`` is null where there are fewer than four pairs, and where neighbouring
    times resemble each other so much that all of them say no more than one or two would. With several ``processes`` of
    each it allows for what such processes differ by; with one it is about the two that ran.
    """

    pairs: int
    ratio: float
    interval: Interval | None
    processes: int = 1


class Drift(Struct, frozen=True):
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


def at_confidence(ratio: float, interval: Interval, one_sided: float) -> Interval:
    """The interval with more confidence at each end, by the normal distribution of the ratio's logarithm.

    Never a narrower one than is given.

    >>> found = at_confidence(0.5, Interval(0.45, 0.55), 0.995)
    >>> round(found.low, 3), round(found.high, 3)
    (0.435, 0.567)
    """
    wider = max(1.0, NormalDist().inv_cdf(one_sided) / NormalDist().inv_cdf(0.5 + interval.confidence / 2))
    low, high = ratio * (interval.low / ratio) ** wider, ratio * (interval.high / ratio) ** wider
    return Interval(low, high, max(interval.confidence, 2 * one_sided - 1))


def latency_ratio(
    first_us: Sequence[float],
    second_us: Sequence[float],
    processes: Sequence[tuple[int, int]] = (),
    confidence: float = 0.95,
) -> LatencyRatio | None:
    """The median ratio and its interval; ``first_us[i]`` and ``second_us[i]`` are of one example, in their order.

    Both feel the same slow moments of the machine, which the ratio of a pair does not show. The interval is that of the
    logarithms of the ratios as a series (see :func:`~evaltools.stats.series.series_bounds`), and at least as wide as
    half a step of the clock is of both medians. It is about these two processes on this machine, not about other
    processes, whose speeds differ. Where ``processes`` tells of three or more of each, every pair of them counts as one
    value, and the interval is about such processes. Times of 0 count as half a step; None without a pair.

    >>> found = latency_ratio([100] * 5, [200] * 5)
    >>> found.ratio, round(found.interval.low, 3), round(found.interval.high, 3)
    (2.0, 1.985, 2.015)
    """
    times = np.asarray([first_us, second_us], np.float64)
    if not times.size:
        return None
    half_a_step = clock_step(times) / 2
    first, second = np.maximum(times, half_a_step)
    logarithms = np.log(second / first)
    ratio = float(np.median(second / first))
    count = min(len({pair[side] for pair in processes}) for side in (0, 1))
    if count < FEWEST_PROCESSES:
        count, bounds = 1, series_bounds(logarithms, confidence)
    else:
        places = [[place for place, each in enumerate(processes) if each == pair] for pair in set(processes)]
        bounds = processes_bounds(np.array([np.median(logarithms[own]) for own in places]), confidence)
    if bounds is None:
        return LatencyRatio(len(first), ratio, None)
    resolution = half_a_step / float(np.median(first)) + half_a_step / float(np.median(second))
    low, high = min(bounds[0], math.log(ratio)) - resolution, max(bounds[1], math.log(ratio)) + resolution
    interval = Interval(math.exp(low), math.exp(min(high, _MOST_LOGARITHM)), confidence)
    return LatencyRatio(len(first), ratio, interval, count)


def drift(times_us: Sequence[float]) -> Drift | None:
    """The trend of times in the order in which they were measured; None for fewer than 10.

    ``p_value`` is that of Kendall's tau against the order (Mann 1945), two-sided, by the normal distribution; of at
    most 5000 times, spread evenly.

    >>> found = drift(range(100, 160))
    >>> round(found.change, 2), found.p_value < 1e-9
    (0.37, True)
    """
    if len(times_us) < _FEWEST_FOR_TREND:
        return None
    times = np.asarray(times_us, np.float64)
    third = len(times) // 3
    early, late = np.median(times[:third]), np.median(times[-third:])
    chosen = times[np.linspace(0, len(times) - 1, min(len(times), _MOST_FOR_TREND)).astype(np.intp)]
    return Drift(float(late / early - 1) if early > 0 else 0.0, _trend_p(chosen))


def _trend_p(values: npt.NDArray[np.float64]) -> float:
    """The p-value of Kendall's tau of values (n,) against their order; 1 where all are equal."""
    count = len(values)
    rises = sum(int(np.sign(values[place + 1 :] - value).sum()) for place, value in enumerate(values))
    ties = np.unique(values, return_counts=True)[1].astype(np.float64)
    variance = (count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return math.erfc(abs(rises) / math.sqrt(2 * variance)) if variance > 0 else 1.0
