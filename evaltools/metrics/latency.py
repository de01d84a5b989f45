"""Latency figures from raw microseconds, with the native tool's definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Latency:
    """Figures over one series, in microseconds. ``std_us`` is truncated twice, as the native tool does.

    With no value at all everything is 0. Where a native tool summed the series up, which tells no single times,
    ``first_us``, ``p50_us`` and ``p90_us`` are None, and the ``std_us`` of preprocessing is always 0.
    """

    count: int
    first_us: int | None
    last_us: int
    min_us: int
    max_us: int
    sum_us: int
    avg_us: float
    std_us: int
    p50_us: float | None
    p90_us: float | None


def summarise_latency(values_us: Sequence[int]) -> Latency:
    """Summarise whole microseconds.

    ``avg = sum / count``; ``std = int(sqrt(int(population variance)))`` (tsl ``stats_calculator``, ``int64``).

    >>> summarise_latency([1, 2, 6]).avg_us, summarise_latency([1, 2, 6]).std_us
    (3.0, 2)
    """
    if not values_us:
        return Latency(0, 0, 0, 0, 0, 0, 0.0, 0, 0.0, 0.0)
    count, total = len(values_us), sum(values_us)
    average = total / count
    variance = sum(value * value for value in values_us) / count - average * average
    p50, p90 = np.percentile(np.array(values_us, np.float64), [50, 90])
    return Latency(
        count=count,
        first_us=values_us[0],
        last_us=values_us[-1],
        min_us=min(values_us),
        max_us=max(values_us),
        sum_us=total,
        avg_us=average,
        std_us=0 if min(values_us) == max(values_us) else math.isqrt(max(0, int(variance))),
        p50_us=float(p50),
        p90_us=float(p90),
    )
