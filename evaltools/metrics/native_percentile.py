"""Percentiles as the native benchmark takes them: one of the samples, never a value between two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def native_percentile(values: Sequence[float], percent: int) -> float:
    """The sample at index ``n * percent // 100`` of the sorted samples (tsl ``StatWithPercentiles::percentile``).

    ``values`` are n numbers in any order; no value gives 0, as there. Of an even number of samples the median is
    the upper of the two in the middle. 100 gives the largest sample; the native library would give the last one in time
    there, but no tool asks for it. Raises ``ValueError`` for a percentage outside 0..100.

    >>> native_percentile([40, 10, 20, 30], 50), native_percentile([], 50)
    (30.0, 0.0)
    """
    if not 0 <= percent <= 100:
        raise ValueError(f"{percent} is no percentage; use 0 to 100")
    if not values:
        return 0.0
    index = min(len(values) * percent // 100, len(values) - 1)
    return float(np.partition(np.array(values, np.float64), index)[index])
