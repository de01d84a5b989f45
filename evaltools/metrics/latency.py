"""Latencies: the native tools' figures of raw times, and how sure medians and their ratios are.

Times measured in a row resemble their neighbours, so that a series is worth fewer independent values than it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from evaltools.metrics.interval import Interval
from evaltools.metrics.series import (
    FEWEST_BY_NEIGHBOURS,
    FEWEST_INDEPENDENT,
    Withheld,
    has_jumped,
    independent_values,
    ranks,
    worth_by_neighbours,
)

FEWEST_PROCESSES: Final = 3
"""With two, Student's t is 12.7 deviations wide."""
_NANOSECOND: Final = 0.001
CLEAR_TREND: Final = 0.001
"""The p-value below which a trend is no chance."""
MUCH_DRIFT: Final = 0.1
"""The change, up or down, above which a trend matters."""
_MOST_LOGARITHM: Final = 700.0
"""Of a number that a float can hold."""
_FEWEST_FOR_TREND: Final = 10
_MOST_FOR_TREND: Final = 5000
FEWEST_TIMES: Final = 20
"""Of one process, for the interval of their median."""
_MOST_ROUNDS: Final = 1000
_SHORTEST_US: Final = 0.5
_DRAWS: Final = 1000
_MOST_DRAWN: Final = 2000
"""Of more values so many are drawn, and the bounds come closer by the root of what is left out."""
_SEED: Final = 17


class NativeTimes(Struct, frozen=True):
    """One series as the native tools sum it up, in microseconds: of times rounded to whole ones.

    Their ``std_us`` is truncated twice. With no time at all everything is 0. Where a native tool measured, which gives
    no single times, ``first_us`` is None, and the ``std_us`` of preprocessing is always 0.
    """

    count: int
    first_us: int | None
    last_us: int
    min_us: int
    max_us: int
    sum_us: int
    avg_us: float
    std_us: int


class Latency(NativeTimes, frozen=True):
    """The same with percentiles of the times as they were measured, to the nanosecond.

    They are 0 with no time at all, and None where a native tool measured.
    """

    p50_us: float | None
    p90_us: float | None
    p99_us: float | None = None

    @property
    def native(self) -> NativeTimes:
        """What the native tools say of it."""
        return NativeTimes(*(getattr(self, name) for name in NativeTimes.__struct_fields__))


def whole_us(microseconds: float) -> int:
    """The nearest whole microsecond; cutting off would make every time half a microsecond too short on average.

    >>> whole_us(1.499), whole_us(1.5)
    (1, 2)
    """
    return math.floor(microseconds + 0.5)


def summarise_latency(values_us: Sequence[float]) -> Latency:
    """Summarise times in the order in which they were measured.

    ``avg = sum / count``; ``std = int(sqrt(int(population variance)))`` (tsl ``stats_calculator``, ``int64``).

    >>> found = summarise_latency([1.25, 1.75, 6])
    >>> found.avg_us, found.std_us, found.p50_us
    (3.0, 2, 1.75)
    """
    if not values_us:
        return Latency(0, 0, 0, 0, 0, 0, 0.0, 0, 0.0, 0.0)
    whole = [whole_us(value) for value in values_us]
    count, total = len(whole), sum(whole)
    average = total / count
    variance = sum(value * value for value in whole) / count - average * average
    p50, p90, p99 = np.percentile(np.array(values_us, np.float64), [50, 90, 99])
    return Latency(
        count=count,
        first_us=whole[0],
        last_us=whole[-1],
        min_us=min(whole),
        max_us=max(whole),
        sum_us=total,
        avg_us=average,
        std_us=0 if min(whole) == max(whole) else math.isqrt(max(0, int(variance))),
        p50_us=float(p50),
        p90_us=float(p90),
        p99_us=float(p99),
    )


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
    """The step in which a clock shows times, as far as they show it: the smallest difference of two; 1 us at most.

    >>> clock_step(np.array([6.0, 8.0, 7.0])), round(clock_step(np.array([6.052, 6.104, 7.3])), 3)
    (1.0, 0.052)
    """
    steps = np.diff(np.unique(times_us))
    return float(np.clip(steps.min(initial=1.0), _NANOSECOND, 1.0))


class LatencyRatio(Struct, frozen=True):
    """How many times as long as the first the second takes: its median divided by that of the first.

    Below 1 the second is faster. Of several rounds, the geometric mean of the ratios of the ``pairs`` of rounds; else
    both medians are of the same ``pairs`` of examples. ``interval`` is null for the reason ``withheld``: ``few`` pairs,
    or times that ``jumped`` or drifted while they were measured, so that all of them say no more than a few would. With
    several ``processes`` of each it allows for what such processes differ by; with one it is about the two that ran, in
    the time in which they did.
    """

    pairs: int
    ratio: float
    interval: Interval | None
    processes: int = 1
    withheld: Withheld | None = None


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


def rounds_to_decide(found: LatencyRatio, limit: float, one_sided: float, power: float) -> int | None:
    """How many rounds as uneven as these decide on which side of a limit the ratio is, with a probability of ``power``.

    None where more than 1000 would be needed, and where the ratio has no interval of rounds.

    >>> rounds = LatencyRatio(5, 1.0, Interval(0.88, 1.136, 0.95), 5)
    >>> rounds_to_decide(rounds, 1.1, 0.95, 0.8), rounds_to_decide(rounds, 1.0, 0.95, 0.8)
    (9, None)
    """
    from scipy import special

    if found.interval is None or found.processes < FEWEST_PROCESSES or not (found.ratio > 0 and limit > 0):
        return None
    low, high = found.interval.low, found.interval.high
    quantile = float(special.stdtrit(found.processes - 1, 0.5 + found.interval.confidence / 2))
    deviation = (math.log(high) - math.log(low)) / 2 * math.sqrt(found.processes) / quantile
    distance = abs(math.log(limit / found.ratio))
    reach = NormalDist().inv_cdf(power)
    for rounds in range(FEWEST_PROCESSES, _MOST_ROUNDS + 1):
        if (float(special.stdtrit(rounds - 1, one_sided)) + reach) * deviation <= distance * math.sqrt(rounds):
            return rounds
    return None


def latency_ratio(
    first_us: Sequence[float],
    second_us: Sequence[float],
    processes: Sequence[tuple[int, int]] = (),
    confidence: float = 0.95,
) -> LatencyRatio | None:
    """The ratio of the medians and its interval; ``first_us[i]`` and ``second_us[i]`` are of one example, in order.

    As many pairs are drawn, a thousand times, as they are worth independent ones, and the ratio of the medians of each
    draw is taken: the interval are the quantiles of these (B. Efron 1979; of fewer than all, P. J. Bickel and others
    1997), and holds the ratio itself. So it follows the order statistics, whatever part of the runs is slower, and slow
    moments that both feel show in neither. What the pairs are worth is the least of what they are for the runs above
    the medians, and for the ranks of their own ratios (:func:`~evaltools.metrics.series.independent_values`); fewer are
    drawn by what Student's t for so many is wider than the normal distribution. It is at least as wide as half a step
    of the clock is of both medians.

    Withheld for pairs that are worth fewer than 4, or fewer than 8 by the correlation of neighbours alone, and where
    their ratios jumped (:func:`~evaltools.metrics.series.has_jumped`). It is about these two processes on this machine
    while they were measured, not about other processes, whose speeds differ, nor about another time, in which a clock
    may have another step. Where ``processes`` says three or more of each, every pair of them counts as one value, and
    the interval is about such processes. Times of 0 count as half a step; None without a pair.

    >>> found = latency_ratio([100] * 20, [200] * 20)
    >>> found.ratio, round(found.interval.low, 3), round(found.interval.high, 3)
    (2.0, 1.985, 2.015)
    """
    times = np.asarray([first_us, second_us], np.float64)
    if not times.size:
        return None
    half_a_step = clock_step(times) / 2
    times = np.maximum(times, half_a_step)
    pairs = times.shape[1]
    ratio = _ratio_of_medians(times)
    count = min(len({pair[side] for pair in processes}) for side in (0, 1))
    if count < FEWEST_PROCESSES:
        count = 1
        bounds = _ratio_bounds(times, confidence)
    else:
        places = [[place for place, each in enumerate(processes) if each == pair] for pair in set(processes)]
        ratios = np.array([_ratio_of_medians(times[:, own]) for own in places])
        bounds = processes_bounds(np.log(ratios), confidence)
    if isinstance(bounds, str):
        return LatencyRatio(pairs, ratio, None, withheld=bounds)
    medians = np.median(times, axis=1)
    resolution = half_a_step / float(medians[0]) + half_a_step / float(medians[1])
    low, high = min(bounds[0], math.log(ratio)) - resolution, max(bounds[1], math.log(ratio)) + resolution
    interval = Interval(math.exp(low), math.exp(min(high, _MOST_LOGARITHM)), confidence)
    return LatencyRatio(pairs, ratio, interval, count)


def _ratio_of_medians(times_us: npt.NDArray[np.float64]) -> float:
    first, second = np.median(times_us, axis=1)
    return float(second / first)


def _ratio_bounds(times_us: npt.NDArray[np.float64], confidence: float) -> tuple[float, float] | Withheld:
    """Bounds of the logarithm of the ratio of the medians (2, n), or why there are none."""
    logarithms = np.log(times_us[1] / times_us[0])
    if len(logarithms) < FEWEST_INDEPENDENT:
        return "few"
    first_above, second_above = (_above_the_median(ranks(times)) for times in times_us)
    series = (second_above - first_above, ranks(logarithms))
    worth = min(map(independent_values, series))
    is_correlated = min(map(worth_by_neighbours, series)) < FEWEST_BY_NEIGHBOURS
    if worth < FEWEST_INDEPENDENT or is_correlated or has_jumped(logarithms):
        return "jumped" if len(logarithms) >= FEWEST_TIMES else "few"
    first, second = _drawn_medians(times_us, worth, confidence)
    return _bounds_of_draws(second - first, math.log(_ratio_of_medians(times_us)), worth, confidence)


def _median_bounds(times_us: npt.NDArray[np.float64], confidence: float) -> tuple[float, float] | None:
    """Bounds of the logarithm of the median (n,), as those of a ratio of medians; None where there are none."""
    places = ranks(times_us)
    worth = min(independent_values(_above_the_median(places)), independent_values(places))
    if worth < FEWEST_INDEPENDENT or has_jumped(np.log(times_us)):
        return None
    (drawn,) = _drawn_medians(times_us[None], worth, confidence)
    return _bounds_of_draws(drawn, math.log(float(np.median(times_us))), worth, confidence)


def _above_the_median(places: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """1 for the upper half of the ranks, -1 for the lower one."""
    found: npt.NDArray[np.float64] = np.sign(places - (len(places) - 1) / 2)
    return found


def _number_drawn(worth: float, confidence: float) -> int:
    """As many as the values are worth, fewer by what Student's t is wider than the normal distribution."""
    from scipy import special

    wider = float(special.stdtrit(worth - 1, 0.5 + confidence / 2)) / NormalDist().inv_cdf(0.5 + confidence / 2)
    return max(3, round(worth / wider**2))


def _drawn_medians(times_us: npt.NDArray[np.float64], worth: float, confidence: float) -> npt.NDArray[np.float64]:
    """The logarithms of the medians of draws of the columns of (k, n) times: (k, draws), the same for every row."""
    chance = np.random.default_rng(_SEED)
    number = min(_number_drawn(worth, confidence), _MOST_DRAWN)
    places = chance.integers(0, times_us.shape[1], (_DRAWS, number))
    found: npt.NDArray[np.float64] = np.log([np.median(row[places], axis=1) for row in times_us])
    return found


def _bounds_of_draws(
    draws: npt.NDArray[np.float64], middle: float, worth: float, confidence: float
) -> tuple[float, float]:
    """Their quantiles, on both sides of the value itself."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    closer = math.sqrt(min(1.0, _MOST_DRAWN / _number_drawn(worth, confidence)))
    return middle + closer * min(0.0, float(low) - middle), middle + closer * max(0.0, float(high) - middle)


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

    One series: neighbouring times resemble each other, so as many are drawn as they are worth independent ones, as in
    :func:`latency_ratio`, and the interval are quantiles of the medians, **for this process**. Several series: each
    process has a speed of its own, so that one counts as one value, however many runs it made: Student's t on the
    logarithms of the medians.

    None for one series of fewer than 20 times, of times that are worth fewer than 4, or that jumped; and for two
    series, whose interval would say nothing.

    >>> found = median_interval([[5] * 20])
    >>> round(found.low, 3), round(found.high, 3)
    (4.5, 5.5)
    """
    arrays = [np.asarray(values, np.float64) for values in series if len(values)]
    bounds: tuple[float, float] | None = None
    if len(arrays) == 1 and len(arrays[0]) >= FEWEST_TIMES:
        bounds = _median_bounds(np.maximum(arrays[0], _SHORTEST_US), confidence)
    elif len(arrays) >= FEWEST_PROCESSES:
        bounds = processes_bounds(np.log([_median(values) for values in arrays]), confidence)
    if bounds is None:
        return None
    low, high = math.exp(bounds[0]), math.exp(min(bounds[1], _MOST_LOGARITHM))
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
        return LatencyRatio(len(rounds), ratio, None, withheld="few")
    low, high = processes_bounds(logarithms, confidence)
    interval = Interval(math.exp(low), math.exp(min(high, _MOST_LOGARITHM)), confidence)
    return LatencyRatio(len(rounds), ratio, interval, len(rounds))


def _median(times: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """At least half a microsecond, which is what 0 stands for in whole ones; no invocation takes less."""
    return max(_SHORTEST_US, float(np.median(np.asarray(times, np.float64))))
