"""Figures of operators, compared with NumPy and values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evaltools.metrics.op_profile import (
    CalledGraph,
    OpProfile,
    OpTimes,
    by_time,
    by_type,
    explained_share,
    op_figures,
    run_totals_us,
    slowdown,
    top_on_cpu,
    total_us,
)

CONV = OpTimes("CONV_2D", "[conv]:0", 0, False, [100, 80, 90])
POOL = OpTimes("Average Pooling (NHWC, F32)", "Delegate/Average Pooling (NHWC, F32):0", None, True, [5, 5, 8])
SOFTMAX = OpTimes("SOFTMAX", "[scores]:2", 2, False, [10, 30, 20])
LOOPED = OpTimes("ADD", "[sum]:0", 0, False, [40, 42, 44], calls_per_run=4, first_call_us=13)


def profile(*ops: OpTimes, invoke_us: list[int] | None = None, plain_us: list[int] | None = None) -> OpProfile:
    return OpProfile("", 3, list(ops), invoke_us or [], plain_us or [])


def test_figures_are_those_of_numpy() -> None:
    times = np.random.default_rng(0).integers(1, 500, 40).tolist()
    (figures,) = op_figures([OpTimes("ADD", "[sum]:0", 0, False, times)])
    assert (figures.first_us, figures.sum_us) == (times[0], np.sum(times))
    assert figures.avg_us == pytest.approx(np.mean(times))


def test_shares_are_of_all_operators_in_the_order_given() -> None:
    figures = op_figures([CONV, POOL, SOFTMAX])
    assert [each.share for each in figures] == pytest.approx([100 * 270 / 348, 100 * 18 / 348, 100 * 60 / 348])


def test_shares_may_be_of_more_than_the_operators_given() -> None:
    assert op_figures([SOFTMAX], of_us=348)[0].share == pytest.approx(100 * 60 / 348)


def test_of_operators_without_any_time_there_are_no_shares() -> None:
    (figures,) = op_figures([OpTimes("RESHAPE", "[flat]:1", 1, False, [0, 0])])
    assert math.isnan(figures.share)


def test_an_average_is_that_of_a_call_and_the_first_time_that_of_the_first_call() -> None:
    (figures,) = op_figures([LOOPED])
    assert (figures.avg_us, figures.first_us, figures.times_called) == (126 / 12, 13, 4)


def test_order_by_time_is_by_the_average_of_calls_and_else_as_given() -> None:
    same = OpTimes("NEG", "[negated]:3", 3, False, [20, 20, 20])
    assert by_time([POOL, SOFTMAX, same, LOOPED, CONV]) == [CONV, SOFTMAX, same, LOOPED, POOL]


def test_a_type_sums_up_whole_microseconds_per_run() -> None:
    """19.67 and 9.67 us per run make 28, not 29, in the native tool."""
    ops = [OpTimes("ADD", "[a]:0", 0, False, [19, 20, 20]), OpTimes("ADD", "[b]:1", 1, False, [9, 10, 10]), CONV]
    conv, add = by_type(ops, 3)
    assert (conv.type, conv.time_us, add.type, add.count, add.time_us, add.times_called) == (
        "CONV_2D", 90, "ADD", 2, 28, 2,
    )  # fmt: skip


def test_types_of_the_same_time_are_in_backward_alphabetical_order() -> None:
    ops = [OpTimes(name, name, None, False, [2]) for name in ("ABS", "SOFTMAX", "NEG")]
    assert [each.type for each in by_type(ops, 1)] == ["SOFTMAX", "NEG", "ABS"]


def test_only_what_no_delegate_ran_counts_as_left_on_the_cpu() -> None:
    assert top_on_cpu(profile(SOFTMAX, POOL, CONV), 5) == [CONV, SOFTMAX]
    assert top_on_cpu(profile(SOFTMAX, POOL, CONV), 1) == [CONV]
    assert top_on_cpu(profile(POOL), 5) == []


def test_what_ran_in_called_graphs_is_no_part_of_the_sum() -> None:
    loop = OpTimes("WHILE", "[out]:0", 0, False, [50, 50, 50])
    with_graph = OpProfile("", 3, [loop], called=[CalledGraph(1, "body", [LOOPED])])
    assert total_us(with_graph) == 150
    assert run_totals_us(with_graph.ops) == [50, 50, 50]


def test_the_share_of_a_run_is_the_median_over_runs() -> None:
    measured = profile(CONV, SOFTMAX, invoke_us=[120, 200, 121])
    assert explained_share(measured) == pytest.approx(110 / 121)
    assert explained_share(profile(invoke_us=[7, 7, 7])) is None


def test_the_slowdown_is_that_of_the_medians() -> None:
    assert slowdown(profile(CONV, invoke_us=[110, 300, 100], plain_us=[100, 100, 900])) == pytest.approx(1.1)
    assert slowdown(profile(CONV, invoke_us=[110])) is None
