"""What a benchmark asks for next."""

from __future__ import annotations

from typing import Any

import pytest

from evaltools.metrics.interval import Interval
from evaltools.result.facts import DelegateUsed
from evaltools.result.result import NEXT
from tests.report.benchmark_samples import Sample, benchmark, row
from tests.report.tables.cases import ROUND


def made(name: str, median_us: float, rounds: int, low: float | None, high: float = 0.0, **more: Any) -> Sample:
    """So many rounds, and an interval of the median in milliseconds, None: no interval."""
    interval = None if low is None else Interval(low, high)
    return row(name, median_us, rounds=[ROUND] * rounds, interval=interval, **more)


def steps(*samples: Sample, **facts: Any) -> list[str]:
    return [note.line for note in benchmark(*samples, **facts).notes if note.of == NEXT]


@pytest.mark.parametrize(
    ("first", "second", "step"),
    [
        (made("a", 1000, 2, None), made("b", 2000, 2, None), "says how sure the medians are"),
        (made("a", 1000, 3, 0.8, 1.2), made("b", 1100, 3, 1.1, 1.3), "may separate the two fastest"),
        (made("a", 1000, 3, 0.9, 1.1), made("b", 2000, 3, 1.8, 2.2), ""),
        (made("a", 1000, 8, 0.8, 1.2), made("b", 1100, 8, 1.1, 1.3), ""),
        (made("a", 1000, 1, None), made("b", 2000, 1, 1.8, 2.2), "says how sure the medians are"),
    ],
    ids=["too few", "overlap", "apart", "many rounds", "one round"],
)
def test_more_rounds_are_asked_for_where_they_may_say_more(first: Sample, second: Sample, step: str) -> None:
    found = steps(second, first, options={})
    assert len(found) == bool(step)
    assert all(each.startswith(f"the same command with --rounds=8 {step}") for each in found)


def test_the_outputs_are_compared_with_the_shapes_that_were_measured() -> None:
    first = made("a", 1000, 8, None, delegates=[DelegateUsed("xnnpack", True, {}, 1, 1)])
    (step,) = steps(first, options={"input_layer": "x,y", "input_layer_shape": "1,8,8,3:5"})
    assert " --input_shape=x:1,8,8,3 --input_shape=y:5 says whether its outputs" in step
