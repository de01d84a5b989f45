"""Disturbances, on both sides of each limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from evaltools.benchmark.disturbances import find_disturbances
from evaltools.report.benchmark_result import Conditions
from evaltools.stats.latency_ratio import Drift

BEFORE: Final = Conditions(
    load_average=0.5,
    affinity=[2, 5],
    frequencies_mhz=[2000.0, 2000.0],
    governors=["performance", "schedutil"],
    temperatures={"cpu": 60.0, "board": 30.0},
    steal_s=10.0,
    busy_s=500.0,
    own_s=3.0,
    elapsed_s=1000.0,
)
AFTER: Final = replace(BEFORE, busy_s=510.0, own_s=13.0, elapsed_s=1010.0)
"""Ten seconds later, of which this process worked ten."""
NOTHING: Final = Conditions(None, [0], [], [], {}, None, None, None, 0.0)


def found(drift: Drift | None = None, **changes: object) -> list[str]:
    return find_disturbances(BEFORE, replace(AFTER, **changes), drift)  # type: ignore[arg-type]


def test_a_quiet_machine() -> None:
    assert found(Drift(0.0, 0.9)) == []


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert find_disturbances(NOTHING, replace(NOTHING, elapsed_s=10.0), None) == []
    assert find_disturbances(BEFORE, replace(NOTHING, elapsed_s=1010.0), None) == []


def test_steal_above_one_percent_of_the_time_of_the_cpus_in_use() -> None:
    """Two CPUs for ten seconds: 0.2 s are 1 %."""
    assert found(steal_s=10.2) == []
    assert found(steal_s=10.4) == [
        "the hypervisor took 0.40 s from this machine's CPUs, 2.0 % of the time of the 2 CPUs in use: "
        "other virtual machines worked on its host"
    ]


def test_other_work_above_five_percent_of_a_cpu() -> None:
    assert found(busy_s=510.5) == []
    assert found(busy_s=525.0) == [
        "other processes worked 15.00 s in 10.0 s, 150 % of one CPU: end them, or measure when the machine is idle"
    ]


def test_more_own_work_than_work_is_rounding() -> None:
    assert found(own_s=13.4) == []


@pytest.mark.parametrize(("elapsed", "steal", "work", "sentences"), [(0.4, 0.01, 0.05, 0), (0.4, 0.02, 0.06, 2)])
def test_what_rounding_of_the_counters_explains_is_nothing(
    elapsed: float, steal: float, work: float, sentences: int
) -> None:
    """A tick of 0.01 s is more than 1 % of 0.8 s, and five of them more than 5 % of 0.4 s."""
    after = replace(AFTER, own_s=3.0, elapsed_s=1000.0 + elapsed, busy_s=500.0 + work, steal_s=10.0 + steal)
    assert len(find_disturbances(BEFORE, after, None)) == sentences


def test_frequency_above_five_percent_with_the_governor_that_changed_it() -> None:
    assert found(frequencies_mhz=[2099.0, 1901.0]) == []
    assert found(frequencies_mhz=[2000.0, 1500.0]) == [
        "the frequency of 1 of 2 CPUs changed, most that of CPU 5: from 2000 to 1500 MHz (-25 %)",
        "the frequency governor is schedutil, which changes the frequency: set performance to keep it up",
    ]


def test_a_frequency_that_changed_under_performance_blames_no_governor() -> None:
    assert found(frequencies_mhz=[3000.0, 2000.0]) == [
        "the frequency of 1 of 2 CPUs changed, most that of CPU 2: from 2000 to 3000 MHz (+50 %)"
    ]


def test_frequencies_of_other_cpus_are_not_compared() -> None:
    assert found(affinity=[0, 1], frequencies_mhz=[1000.0, 1000.0]) == []
    assert found(frequencies_mhz=[]) == []


def test_a_load_above_the_cpus() -> None:
    assert found(load_average=2.0) == []
    sentence = "the load average was 2.50 on {}: more wanted to run, this measurement included, than could"
    assert found(load_average=2.5) == [sentence.format("2 CPUs")]
    after = replace(AFTER, load_average=2.5)
    assert find_disturbances(BEFORE, after, None, cpu_count=8) == []
    assert find_disturbances(BEFORE, after, None, cpu_count=1) == [sentence.format("1 CPU")]


def test_a_rise_above_ten_degrees_or_more_than_85() -> None:
    advice = "let the machine cool down, and pause between runs"
    assert found(temperatures={"cpu": 70.0, "board": 30.0, "new": 85.0}) == []
    assert found(temperatures={"cpu": 71.0, "board": 44.0}) == [
        f"board rose by 14 degrees to 44 degrees Celsius: {advice}"
    ]
    assert found(temperatures={"new": 86.0}) == [f"new was at 86 degrees Celsius: {advice}"]


@pytest.mark.parametrize(
    ("drift", "sentences"),
    [
        (Drift(0.05, 1e-9), []),
        (Drift(0.5, 0.01), []),
        (
            Drift(0.06, 0.009),
            ["the times rose by 6 % while they were measured (p 0.009): the machine was not steady"],
        ),
        (
            Drift(-0.25, 1e-30),
            ["the times fell by 25 % while they were measured (p <1e-9): the machine was not steady"],
        ),
    ],
)
def test_drift_above_five_percent_that_is_no_chance(drift: Drift, sentences: list[str]) -> None:
    assert found(drift) == sentences


def test_several_disturbances_are_several_sentences() -> None:
    assert len(found(Drift(1.0, 0.0), steal_s=20.0, busy_s=600.0, load_average=9.0, temperatures={"cpu": 99.0})) == 5
