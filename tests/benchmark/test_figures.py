"""The figures of several rounds, worked out by hand."""

from __future__ import annotations

import math

import pytest

from evaltools.benchmark.run import PERCENTILES, figures_of
from evaltools.result.benchmark import Phase
from tests.report.benchmark_samples import a_round

FIRST = a_round(Phase([50, 45], [0, 0], [0, 60]), Phase([10, 30], [1, 2], [0, 20]))
SECOND = a_round(Phase(), Phase([20, 40], [3, 4], [0, 30]))


def test_runs_of_all_rounds_are_pooled() -> None:
    found = figures_of([FIRST, SECOND])
    assert (found.inference.count, found.inference.sum_us, found.inference.p50_us) == (4, 100, 25.0)
    assert (found.inference.first_us, found.inference.last_us) == (10, 40)
    assert (found.run_and_read.min_us, found.run_and_read.max_us, found.run_and_read.sum_us) == (11, 44, 110)
    assert (found.warm_up.count, found.warm_up.sum_us) == (2, 95)
    assert (found.init.count, found.init.avg_us) == (2, 155.0)


def test_the_first_run_of_a_process_is_of_the_warm_up_or_else_a_regular_one() -> None:
    found = figures_of([FIRST, SECOND]).first_run
    assert (found.count, found.first_us, found.last_us) == (2, 50, 20)


def test_percentiles_are_samples_at_the_native_index() -> None:
    """Index ``4 * percent // 100`` of 10, 20, 30, 40."""
    expected = {"1": 10, "5": 10, "10": 10, "25": 20, "50": 30, "75": 40, "90": 40, "95": 40, "99": 40}
    assert figures_of([FIRST, SECOND]).percentiles == expected
    assert set(expected) == set(map(str, PERCENTILES))


def test_the_interval_of_several_rounds_is_that_of_their_medians() -> None:
    """Student's t with two degrees of freedom on the logarithms of 20, 30 and 20; half a microsecond besides."""
    assert figures_of([FIRST, SECOND]).median_interval is None
    found = figures_of([FIRST, SECOND, FIRST]).median_interval
    middle, half = (20 * 30 * 20) ** (1 / 3), 4.30265273 * math.log(30 / 20) / 3
    assert found is not None
    assert found.low == pytest.approx(middle * math.exp(-half) - 0.5, rel=1e-6)
    assert found.high == pytest.approx(middle * math.exp(half) + 0.5, rel=1e-6)


def test_drift_is_told_of_one_round_only() -> None:
    """The medians of the thirds of 100 to 159 are 109.5 and 149.5."""
    times = list(range(100, 160))
    rising = a_round(Phase(), Phase([*times], [0] * 60, times))
    found = figures_of([rising]).drift
    assert found is not None
    assert found.change == pytest.approx(149.5 / 109.5 - 1)
    assert figures_of([rising, rising]).drift is None


def test_a_dry_run_has_nothing_but_its_opening() -> None:
    found = figures_of([a_round(Phase(), Phase())])
    assert (found.init.count, found.init.avg_us) == (1, 155.0)
    assert [each.count for each in (found.first_run, found.warm_up, found.inference, found.run_and_read)] == [0] * 4
    assert found.percentiles == {}
    assert found.median_interval is None
    assert found.drift is None
