"""What a benchmark asks for next."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.report.page.sections.benchmarks import after_benchmark
from evaltools.result.benchmark import BenchmarkRow
from evaltools.result.evaluation import DelegateUsed
from tests.report.benchmark_samples import benchmark, row
from tests.report.tables.cases import ROUND


def rounds_of(made: BenchmarkRow, count: int, low: float | None, high: float = 0.0) -> BenchmarkRow:
    """So many rounds, and an interval of the median in milliseconds, None: no interval."""
    assert made.figures is not None
    interval = None if low is None else Interval(1000 * low, 1000 * high)
    return replace(made, rounds=[ROUND] * count, figures=replace(made.figures, median_interval=interval))


@pytest.mark.parametrize(
    ("first", "second", "step"),
    [
        (rounds_of(row("a", 1000), 2, None), rounds_of(row("b", 2000), 2, None), "says how sure the medians are"),
        (
            rounds_of(row("a", 1000), 3, 0.8, 1.2),
            rounds_of(row("b", 1100), 3, 1.1, 1.3),
            "may separate the two fastest",
        ),
        (rounds_of(row("a", 1000), 3, 0.9, 1.1), rounds_of(row("b", 2000), 3, 1.8, 2.2), ""),
        (rounds_of(row("a", 1000), 8, 0.8, 1.2), rounds_of(row("b", 1100), 8, 1.1, 1.3), ""),
        (rounds_of(row("a", 1000), 1, None), rounds_of(row("b", 2000), 1, 1.8, 2.2), "says how sure the medians are"),
    ],
    ids=["too few", "overlap", "apart", "many rounds", "one round"],
)
def test_more_rounds_are_asked_for_where_they_may_say_more(
    first: BenchmarkRow, second: BenchmarkRow, step: str
) -> None:
    steps = after_benchmark(benchmark(second, first), first)
    assert len(steps) == bool(step)
    assert all(each.startswith(f"the same command with --rounds=8 {step}") for each in steps)


def test_the_outputs_are_compared_with_the_shapes_that_were_measured() -> None:
    first = rounds_of(row("a", 1000), 8, 0.8, 1.2)
    first = replace(first, delegates=[DelegateUsed("xnnpack", True, {}, 1, 1)])
    made = benchmark(first)
    given = replace(made, options={**made.options, "input_layer": "x,y", "input_layer_shape": "1,8,8,3:5"})
    (step,) = after_benchmark(given, first)
    assert " --input_shape=x:1,8,8,3 --input_shape=y:5 says whether its outputs" in step
