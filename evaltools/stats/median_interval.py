"""How sure a median of times is that were measured one after the other, in one process or in several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import LatencyRatio
from evaltools.stats.series import FEWEST_PROCESSES, clock_step, processes_bounds, series_bounds

_FEWEST_TIMES: Final = 20
_SHORTEST_US: Final = 0.5
_MOST_LOGARITHM: Final = 700.0
"""Of a number that a float can hold."""


def median_interval(series: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval | None:
    """The interval of the median of times in microseconds; each series is of one process, in the order measured.

    One series: neighbouring times resemble each other, so their logarithms are taken for as few independent ones as
    they are worth (see :func:`~evaltools.stats.series.series_bounds`), **for this process**. Several series: each
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
