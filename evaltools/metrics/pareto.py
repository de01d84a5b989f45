"""Which of several choices no other one beats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby


def pareto_front(points: Sequence[tuple[float, float]]) -> list[bool]:
    """Whether each ``(cost, gain)`` is on the Pareto front.

    It is unless another costs no more and gains no less, and is better in one of the two. Equal points are on it
    together. A point with a NaN is never on it and beats none. Takes O(n log n).

    >>> pareto_front([(10.0, 0.7), (20.0, 0.6), (20.0, 0.8), (20.0, 0.8), (5.0, float("nan"))])
    [True, False, True, True, False]
    """
    on_front = [False] * len(points)
    numbers = [place for place, point in enumerate(points) if not any(map(math.isnan, point))]
    numbers.sort(key=lambda place: points[place][0])
    best_so_far: float | None = None
    for _, same_cost in groupby(numbers, key=lambda place: points[place][0]):
        places = list(same_cost)
        gain = max(points[place][1] for place in places)
        if best_so_far is None or gain > best_so_far:
            best_so_far = gain
            for place in places:
                on_front[place] = points[place][1] == gain
    return on_front
