"""The figures of several rounds, worked out by hand."""

from __future__ import annotations

import math

import pytest

from evaltools.benchmark.accuracy import AccuracyGiven
from evaltools.benchmark.rows import rows_of
from evaltools.result.result import FRONT, Row
from evaltools.result.rounds import LoggedMemory, LoggedRound, Measured, Phase, Round, StatFigures
from tests.report.benchmark_samples import a_round

FIRST = a_round(Phase([50, 45], [0, 0], [0, 60]), Phase([10, 30], [1, 2], [0, 20]))
SECOND = a_round(Phase(), Phase([20, 40], [3, 4], [0, 30]))


def row_of(*rounds: Round) -> Row:
    (row,) = rows_of([Measured(Row("x"), list(rounds))])
    return row


def of_runs(*times: float) -> Round:
    return a_round(Phase(), Phase([*times], [0] * len(times), [0] * len(times)))


def test_runs_of_all_rounds_are_pooled() -> None:
    found = row_of(FIRST, SECOND)
    assert found.counts == {"rounds": 2, "runs": 4}
    assert found.series == {"invoke_us": [10, 30, 20, 40], "runs_of_round": [2, 2]}
    values = {name: figure.value for name, figure in found.figures.items()}
    assert values == {
        "latency_ms": 0.025,
        "latency_average_ms": 0.025,
        "latency_p95_ms": 0.04,
        "first_run_ms": 0.035,
        "latency_with_reading_ms": 0.0275,
        "load_ms": 0.155,
        "peak_memory_mb": 1800 / 1024,
        "steady_memory_mb": 1600 / 1024,
    }
    assert found.figures["latency_ms"].count == 4
    assert found.figures["latency_ms"].withheld == "too few rounds"


@pytest.mark.parametrize(
    ("runs", "percentiles"), [(9, set()), (10, {"latency_p90_ms"}), (100, {"latency_p90_ms", "latency_p99_ms"})]
)
def test_a_percentile_is_a_figure_where_there_are_runs_beyond_it(runs: int, percentiles: set[str]) -> None:
    """The sample at the native index, ``n * percent // 100`` of the sorted ones."""
    found = row_of(of_runs(*range(1, runs + 1)))
    known = {name: found.value(name) for name in ("latency_p90_ms", "latency_p99_ms") if name in found.figures}
    assert known == {name: (runs * int(name[9:11]) // 100 + 1) / 1000 for name in percentiles}


def test_the_interval_of_several_rounds_is_that_of_their_medians() -> None:
    """Student's t with two degrees of freedom on the logarithms of 20, 30 and 20; half a microsecond besides."""
    assert row_of(FIRST, SECOND).figures["latency_ms"].interval is None
    found = row_of(FIRST, SECOND, FIRST).figures["latency_ms"].interval
    middle, half = (20 * 30 * 20) ** (1 / 3), 4.30265273 * math.log(30 / 20) / 3
    assert found is not None
    assert 1000 * found.low == pytest.approx(middle * math.exp(-half) - 0.5, rel=1e-6)
    assert 1000 * found.high == pytest.approx(middle * math.exp(half) + 0.5, rel=1e-6)


def test_a_dry_run_has_nothing_but_its_opening() -> None:
    found = row_of(a_round(Phase(), Phase()))
    assert found.value("load_ms") == 0.155
    assert not [name for name in found.figures if name.startswith(("latency", "first"))]


def test_the_time_is_compared_with_the_first_row_of_the_model_that_was_measured() -> None:
    """Rounds are paired in their order; the ratio is the geometric mean of 2, 4 and 2."""
    gone = Measured(Row("gone", status="not measured", reason="no GPU"))
    first = Measured(Row("first"), [of_runs(10), of_runs(20), of_runs(10)])
    slow = Measured(Row("slow"), [of_runs(20), of_runs(80), of_runs(20)])
    alone = Measured(Row("alone", model=1), [of_runs(5)])
    rows = rows_of([gone, first, slow, alone])
    ratios = [row.figures.get("latency_ratio") for row in rows]
    assert [ratio is not None for ratio in ratios] == [False, False, True, False]
    ratio = ratios[2]
    assert ratio is not None
    assert ratio.value == pytest.approx(16 ** (1 / 3))
    assert ratio.count == 3
    assert ratio.interval is not None
    assert ratio.interval.low < 16 ** (1 / 3) < ratio.interval.high


def test_of_rows_with_an_accuracy_those_on_the_front_are_marked_and_one_that_fell_back_has_none() -> None:
    rows = rows_of(
        [
            Measured(Row("fast"), [of_runs(10)]),
            Measured(Row("both slow and bad"), [of_runs(30)]),
            Measured(Row("good"), [of_runs(20)]),
            Measured(Row("fallen", fallback="no GPU"), [of_runs(1)]),
            Measured(Row("unknown"), [of_runs(1)]),
        ],
        [*(AccuracyGiven("top1", "top-1", value, "r.json") for value in (0.5, 0.4, 0.75, 0.9)), None],
    )
    assert [row.value("top1") for row in rows] == [0.5, 0.4, 0.75, None, None]
    assert [row.counts.get(FRONT) for row in rows] == [1, 0, 1, None, None]


def test_what_another_program_measured_is_read_from_its_log() -> None:
    rounds = [
        LoggedRound(init, None, None, StatFigures(4, 1, 1, 1, 1, 2.0, 0, None, median), LoggedMemory(1.0, 2.0, peak))
        for init, peak, median in ((4000, 30.0, 2000), (6000, 40.0, 3000))
    ]
    (found,) = rows_of([Measured(Row("phone"), logged=rounds)], place="R5")
    values = {name: figure.value for name, figure in found.figures.items()}
    expected = {"latency_ms": 2.5, "latency_average_ms": 0.002, "load_ms": 5.0, "peak_memory_mb": 40.0}
    assert (found.name, found.place, found.counts, values) == ("phone@R5", "R5", {"rounds": 2, "runs": 8}, expected)
