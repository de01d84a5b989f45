"""How sure a median of times is that were measured one after the other, in one process or in several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import LatencyRatio
from evaltools.stats.series import (
    FEWEST_INDEPENDENT,
    FEWEST_PROCESSES,
    clock_step,
    independent_values,
    processes_bounds,
)

_BATCHES: Final = 10
_FEWEST_TIMES: Final = 20
_SHORTEST_US: Final = 0.5


def median_interval(series: Sequence[Sequence[float]], confidence: float = 0.95) -> Interval | None:
    """The interval of the median of times in microseconds; each series is of one process, in the order measured.

    One series: neighbouring times resemble each other, so they are cut into 10 batches. The bounds are the second
    smallest and the second largest of their medians, which hold the median with a confidence of 97.9 % where these are
    independent (sign test; for other confidences the fitting ones), **for this process**. Several series: each
    process has a speed of its own, so that one counts as one value, however many runs it made: Student's t on the
    logarithms of the medians. Sources: method of batch means, Law and Kelton, "Simulation Modeling and Analysis",
    chapter 9; Conover, "Practical Nonparametric Statistics", 3.2.

    None for one series of fewer than 20 times, or of times that resemble their neighbours so much that all of them are
    worth too few (see :func:`~evaltools.stats.series.independent_values`); and for two series, whose interval would say
    nothing.

    >>> median_interval([[5] * 20])
    Interval(low=4.5, high=5.5, confidence=0.95)
    """
    arrays = [np.asarray(values, np.float64) for values in series if len(values)]
    if len(arrays) == 1 and len(arrays[0]) >= _FEWEST_TIMES:
        medians = np.array([float(np.median(batch)) for batch in np.array_split(arrays[0], _BATCHES)])
        if medians.std() > 0 and independent_values(medians) < FEWEST_INDEPENDENT:
            return None
        bounds = _of_batches(medians.tolist(), confidence)
    elif len(arrays) >= FEWEST_PROCESSES:
        bounds = _of_logarithms(np.log([_median(values) for values in arrays]), confidence)
    else:
        return None
    half_a_step = clock_step(np.concatenate(arrays)) / 2
    return Interval(max(0.0, bounds[0] - half_a_step), bounds[1] + half_a_step, confidence)


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
    interval = Interval(*_of_logarithms(logarithms, confidence), confidence)
    return LatencyRatio(len(rounds), ratio, interval, len(rounds))


def _median(times: Sequence[float] | npt.NDArray[np.float64]) -> float:
    """At least half a microsecond, which is what 0 stands for in whole ones; no invocation takes less."""
    return max(_SHORTEST_US, float(np.median(np.asarray(times, np.float64))))


def _of_logarithms(values: npt.NDArray[np.float64], confidence: float) -> tuple[float, float]:
    low, high = processes_bounds(values, confidence)
    return math.exp(low), math.exp(min(high, 700.0))


def _of_batches(medians: Sequence[float], confidence: float) -> tuple[float, float]:
    """As many are cut off at both ends as the sign test allows."""
    from scipy import special

    ordered = sorted(medians)
    cut = 0
    while 1 - 2 * special.bdtr(cut + 1, len(ordered), 0.5) >= confidence:
        cut += 1
    return ordered[cut], ordered[len(ordered) - 1 - cut]
