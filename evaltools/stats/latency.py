"""How sure medians of latencies and their ratios are: times measured in a row resemble their neighbours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.stats.interval import Interval

_FEWEST_VALUES: Final = 4
_MOST_BATCHES: Final = 40
_SMALLEST_BATCH: Final = 3
_FEWEST_INDEPENDENT: Final = 2.5
FEWEST_PROCESSES: Final = 3
"""With two, Student's t is 12.7 deviations wide."""
_MOST_CORRELATION: Final = 0.999
_NANOSECOND: Final = 0.001
CLEAR_TREND: Final = 0.001
"""The p-value below which a trend is no chance."""
MUCH_DRIFT: Final = 0.1
"""The change, up or down, above which a trend matters."""
_MOST_LOGARITHM: Final = 700.0
"""Of a number that a float can hold."""
_FEWEST_FOR_TREND: Final = 10
_MOST_FOR_TREND: Final = 5000
_FEWEST_TIMES: Final = 20
_SHORTEST_US: Final = 0.5


def series_bounds(values: Sequence[float] | npt.NDArray[np.float64], confidence: float) -> tuple[float, float] | None:
    """Lower and upper bound of the middle of what the series was drawn from.

    Up to 40 batches of neighbours each give their median, so that a few outliers do not matter. With the correlation
    ``r`` of neighbouring medians, ``b`` of them are worth ``e = b (1 - r) / (1 + r)`` independent ones, and the bounds
    are ``mean -+ t((1 + confidence) / 2, e - 1) s / sqrt(e)``. ``r`` is corrected for its bias, ``r + (1 + 3 r) / b``,
    and never below 0. Sources: method of batch means, Law and Kelton, "Simulation Modeling and Analysis", chapter 9;
    Kendall 1954 for the bias; Zwiers and von Storch 1995 for ``e``.

    None for fewer than 4 values, and for a series that is worth fewer than 2.5 independent values.

    >>> low, high = series_bounds([1.0, 3.0, 2.0, 1.0, 3.0, 2.0, 2.0, 2.0, 3.0, 1.0], 0.95)
    >>> round(low, 3), round(high, 3)
    (2.0, 2.0)
    """
    from scipy import special

    numbers = np.asarray(values, np.float64)
    if numbers.size < _FEWEST_VALUES:
        return None
    count = min(_MOST_BATCHES, max(_FEWEST_VALUES, numbers.size // _SMALLEST_BATCH))
    medians = np.array([np.median(batch) for batch in np.array_split(numbers, count)])
    middle, deviation = float(medians.mean()), float(medians.std(ddof=1))
    independent = _independent_values(medians)
    if deviation > 0 and independent < _FEWEST_INDEPENDENT:
        return None
    reach = float(special.stdtrit(independent - 1, 0.5 + confidence / 2)) * deviation / math.sqrt(independent)
    return (middle - reach, middle + reach) if deviation > 0 else (middle, middle)


def processes_bounds(values: npt.NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Bounds of the middle of what processes give, one value of each: Student's t.

    >>> low, high = processes_bounds(np.array([1.0, 2.0, 3.0]), 0.95)
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    from scipy import special

    quantile = float(special.stdtrit(len(values) - 1, 0.5 + confidence / 2))
    reach = quantile * float(values.std(ddof=1)) / math.sqrt(len(values))
    middle = float(values.mean())
    return middle - reach, middle + reach


def clock_step(times_us: npt.NDArray[np.float64]) -> float:
    """The step in which a clock shows times, as far as they tell: the smallest difference of two; 1 us at most.

    >>> clock_step(np.array([6.0, 8.0, 7.0])), round(clock_step(np.array([6.052, 6.104, 7.3])), 3)
    (1.0, 0.052)
    """
    steps = np.diff(np.unique(times_us))
    return float(np.clip(steps.min(initial=1.0), _NANOSECOND, 1.0))


def _independent_values(values: npt.NDArray[np.float64]) -> float:
    """How many independent values the neighbours are worth, by their correlation: ``b (1 - r) / (1 + r)``."""
    correlation = _correlation(values)
    return len(values) * (1 - correlation) / (1 + correlation)


def _correlation(values: npt.NDArray[np.float64]) -> float:
    """Of neighbours; 0 where it is negative or nothing varies."""
    centred = values - values.mean()
    squares = float((centred * centred).sum())
    if squares == 0:
        return 0.0
    found = float((centred[1:] * centred[:-1]).sum()) / squares
    return min(max(0.0, found + (1 + 3 * found) / len(values)), _MOST_CORRELATION)


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
    logarithms of the ratios as a series (see :func:`series_bounds`), and at least as wide as
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


def median_interval(series: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval | None:
    """The interval of the median of times in microseconds; each series is of one process, in the order measured.

    One series: neighbouring times resemble each other, so their logarithms are taken for as few independent ones as
    they are worth (see :func:`series_bounds`), **for this process**. Several series: each
    process has a speed of its own, so that one counts as one value, however many runs it made: Student's t on the
    logarithms of the medians.

    None for one series of fewer than 20 times, or of times that resemble their neighbours so much that all of them are
    worth too few; and for two series, whose interval would say nothing.

    >>> found = median_interval([[5] * 20])
    >>> round(found.low, 3), round(found.high, 3)
    (4.5, 5.5)
    """
    arrays = [np.asarray(values, np.float64) for values in series if len(values)]
    bounds: tuple[float, float] | None = None
    if len(arrays) == 1 and len(arrays[0]) >= _FEWEST_TIMES:
        bounds = series_bounds(np.log(np.maximum(arrays[0], _SHORTEST_US)), confidence)
    elif len(arrays) >= FEWEST_PROCESSES:
        bounds = processes_bounds(np.log([_median(values) for values in arrays]), confidence)
    if bounds is None:
        return None
    low, high = math.exp(bounds[0]), math.exp(min(bounds[1], _MOST_LOGARITHM))
    if len(arrays) == 1:
        low, high = min(low, _median(arrays[0])), max(high, _median(arrays[0]))
    half_a_step = clock_step(np.concatenate(arrays)) / 2
    return Interval(max(0.0, low - half_a_step), high + half_a_step, confidence)


def rounds_ratio(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], confidence: float = 0.95
) -> LatencyRatio | None:
    """How many times as long the second takes, from the medians of rounds in which both took a turn.

    Student's t on the logarithms of the ratios of a round's medians; no interval for fewer than three
    rounds. None without a round.

    >>> found = rounds_ratio([[10, 10], [20, 20]], [[30], [60]])
    >>> found.pairs, round(found.ratio, 9)
    (2, 3.0)
    """
    rounds = [(one, other) for one, other in zip(first, second, strict=False) if len(one) and len(other)]
    if not rounds:
        return None
    logarithms = np.array([math.log(_median(other) / _median(one)) for one, other in rounds])
    ratio = math.exp(float(logarithms.mean()))
    if len(rounds) < FEWEST_PROCESSES:
        return LatencyRatio(len(rounds), ratio, None)
    low, high = processes_bounds(logarithms, confidence)
    interval = Interval(math.exp(low), math.exp(min(high, _MOST_LOGARITHM)), confidence)
    return LatencyRatio(len(rounds), ratio, interval, len(rounds))


def _median(times: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """At least half a microsecond, which is what 0 stands for in whole ones; no invocation takes less."""
    return max(_SHORTEST_US, float(np.median(np.asarray(times, np.float64))))
