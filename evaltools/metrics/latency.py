"""Latency figures from raw times, computed as the native tools do: in whole microseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct


class Latency(Struct, frozen=True):
    """Figures over one series, in microseconds.

    ``p50_us``, ``p90_us`` and ``p99_us`` are those of the times as they were measured, to the nanosecond. All others
    are as the native tools have them, of times rounded to whole microseconds; their ``std_us`` is truncated twice.

    With no value at all everything is 0. Where a native tool summed the series up, which gives no single times,
    ``first_us`` and the three are None, and the ``std_us`` of preprocessing is always 0.
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
    p99_us: float | None = None


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
