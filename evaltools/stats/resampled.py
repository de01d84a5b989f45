"""Bounds of a change from paired draws of the examples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from evaltools.stats.coco_bootstrap import percentile_interval
from evaltools.stats.proportions import expected_bound

FEWEST_EXAMPLES: Final = 50
"""With fewer the draws say too little about examples that were not drawn at all."""
MOST_CONFIDENCE: Final = 0.99
"""Of a bound: beyond it a thousand draws have hardly a value."""
_RARE: Final = 0.01


def drawn_bound(differences: Sequence[float], examples: int, confidence: float, upper: bool) -> float:
    """One-sided bound of a change, -1..1, by its ``differences`` over draws of ``examples`` examples.

    The percentile of the differences (see :func:`~evaltools.stats.coco_bootstrap.percentile_interval`). It is trusted
    only where many examples differ: where more than 1 % of the draws have no difference, fewer than about five do
    (a draw misses each with a probability of 1/e), and others like them may not be among the examples. The bound is
    then at least that of Tango's score for examples of which none flipped. NaN for fewer than 50 examples.

    >>> round(drawn_bound([0.0] * 1000, 5000, 0.95, upper=True), 5)
    0.00054
    """
    if examples < FEWEST_EXAMPLES or not differences:
        return math.nan
    interval = percentile_interval(np.asarray(differences), 2 * confidence - 1)
    found = interval.high if upper else interval.low
    if differences.count(0.0) <= _RARE * len(differences):
        return found
    unseen = expected_bound(examples, 0, 0, confidence, upper)
    return max(found, unseen) if upper else min(found, unseen)


def paired_differences(before: Sequence[float | None], after: Sequence[float | None]) -> list[float]:
    """``after - before`` of the draws in which both have a figure; none where these are not the same draws.

    >>> paired_differences([0.25, None], [0.5, 0.5])
    [0.25]
    """
    if len(before) != len(after):
        return []
    return [new - old for old, new in zip(before, after, strict=True) if old is not None and new is not None]
