"""The Pareto front against its definition."""

from __future__ import annotations

import math
import random

import pytest

from evaltools.metrics.pareto import pareto_front

NAN = float("nan")


def by_definition(points: list[tuple[float, float]]) -> list[bool]:
    def beats(other: tuple[float, float], point: tuple[float, float]) -> bool:
        return other[0] <= point[0] and other[1] >= point[1] and (other[0] < point[0] or other[1] > point[1])

    return [
        not any(map(math.isnan, point))
        and not any(beats(other, point) for other in points if not any(map(math.isnan, other)))
        for point in points
    ]


@pytest.mark.parametrize("seed", range(10))
def test_it_is_what_the_definition_says(seed: int) -> None:
    """On a small grid, so that costs, gains and whole points are often equal."""
    generator = random.Random(seed)
    for _ in range(100):
        values = [0.0, 1.0, 2.0, 3.0, -1.0, math.inf, -math.inf, NAN][: generator.randint(2, 8)]
        points = [(generator.choice(values), generator.choice(values)) for _ in range(generator.randint(0, 12))]
        assert pareto_front(points) == by_definition(points), points
