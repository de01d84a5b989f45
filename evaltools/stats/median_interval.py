"""How sure a median of times is that were measured one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.stats.interval import Interval

_BATCHES: Final = 10
_FEWEST_SERIES: Final = 4
_FEWEST_TIMES: Final = 20


def median_interval(series: Sequence[Sequence[int]], confidence: float = 0.95) -> Interval | None:
    """The interval of the median of several series of times, each in the order in which they were measured.

    Neighbouring times resemble each other, so that they do not count one by one: the times are cut into 10 batches, and
    their medians are taken as independent: ``median +- t * s / sqrt(batches)`` with Student's t of one batch less and
    ``s`` the standard deviation of the batches' medians. Four and more series are batches themselves, for each may be
    of another process with a speed of its own. Source: method of batch means, Law and Kelton, "Simulation Modeling and
    Analysis", chapter 9; medians of batches as in Seila 1982. None for fewer than 20 times.

    >>> median_interval([[5] * 20])
    Interval(low=5.0, high=5.0, confidence=0.95)
    """
    from scipy import stats

    arrays = [np.asarray(values, np.float64) for values in series if len(values)]
    times = np.concatenate(arrays) if arrays else np.empty(0)
    if len(times) < _FEWEST_TIMES:
        return None
    batches = arrays if len(arrays) >= _FEWEST_SERIES else np.array_split(times, _BATCHES)
    medians = np.array([np.median(batch) for batch in batches])
    quantile = float(stats.t.ppf(0.5 + confidence / 2, len(medians) - 1))
    half = quantile * float(medians.std(ddof=1)) / math.sqrt(len(medians))
    middle = float(np.median(times))
    return Interval(middle - half, middle + half, confidence)
