"""Disturbances, on both sides of each limit."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from evaltools.benchmark.disturbances import find_disturbances
from evaltools.result.benchmark import Conditions
from evaltools.stats.latency import Drift

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
    return find_disturbances(BEFORE, replace(AFTER, **changes), drift)


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert find_disturbances(NOTHING, replace(NOTHING, elapsed_s=10.0), None) == []
    assert find_disturbances(BEFORE, replace(NOTHING, elapsed_s=1010.0), None) == []


@pytest.mark.parametrize(
    ("cpu_count", "cpus_in_use", "threads", "quiet_s", "disturbed_s"),
    [
        pytest.param(2, 2, 1, 5.0, 5.1, id="half of the other CPU"),
        pytest.param(2, 2, -1, 5.0, 5.1, id="threads that are not known are one"),
        pytest.param(2, 2, 2, 0.5, 0.6, id="none is free: 5 % of one CPU"),
        pytest.param(2, 2, 4, 0.5, 0.6, id="not less than none is free"),
        pytest.param(1, 1, 1, 0.5, 0.6, id="one CPU alone"),
        pytest.param(64, 64, 1, 315.0, 316.0, id="half of 63"),
        pytest.param(64, 64, 60, 20.0, 20.1, id="half of 4"),
        pytest.param(8, 2, 4, 30.0, 30.1, id="the threads share two CPUs and leave six"),
    ],
)
def test_other_work_above_half_of_the_cpus_that_are_left_free(
    cpu_count: int, cpus_in_use: int, threads: int, quiet_s: float, disturbed_s: float
) -> None:
    """Seconds in ten; the threads are not what is looked at."""

    def sentences(others_s: float) -> list[str]:
        samples = [replace(sample, affinity=list(range(cpus_in_use)), frequencies_mhz=[]) for sample in (BEFORE, AFTER)]
        after = replace(samples[1], busy_s=510.0 + others_s)
        said = find_disturbances(samples[0], after, None, cpu_count, threads=threads)
        return [sentence for sentence in said if "other processes" in sentence]

    assert sentences(quiet_s) == []
    assert len(sentences(disturbed_s)) == 1


def test_durations_have_digits_enough_for_the_share_that_they_make() -> None:
    after = replace(AFTER, own_s=3.0, busy_s=500.06, elapsed_s=1000.052)
    (sentence,) = find_disturbances(BEFORE, after, None)
    assert "worked 0.0600 s in 0.0520 s, 115 % of one CPU" in sentence
    after = replace(AFTER, own_s=3.0, busy_s=3499.96, elapsed_s=2099.96)
    (sentence,) = find_disturbances(BEFORE, after, None)
    assert "worked 3000 s in 1100 s, 273 % of one CPU" in sentence


def test_more_threads_than_cpus_in_use() -> None:
    assert find_disturbances(BEFORE, AFTER, None, cpu_count=8, threads=2) == []
    sentence = "4 threads on 2 CPUs: they wait for each other; use at most 2"
    assert find_disturbances(BEFORE, AFTER, None, cpu_count=8, threads=4) == [sentence]


@pytest.mark.parametrize(("steal", "work", "sentences"), [(0.01, 0.05, 0), (0.02, 0.06, 2)])
def test_what_rounding_of_the_counters_explains_is_nothing(steal: float, work: float, sentences: int) -> None:
    """A tick of 0.01 s is more than 1 % of 0.16 s, and five of them more than half of 0.08 s."""
    after = replace(AFTER, own_s=3.0, elapsed_s=1000.08, busy_s=500.0 + work, steal_s=10.0 + steal)
    assert len(find_disturbances(BEFORE, after, None)) == sentences


def test_a_load_above_the_cpus() -> None:
    assert found(load_average=2.0) == []
    sentence = (
        "the load average was 2.50 on {}, more than can run at once, this measurement included: "
        "end other processes, or use fewer threads"
    )
    assert found(load_average=2.5) == [sentence.format("2 CPUs")]
    after = replace(AFTER, load_average=2.5)
    assert find_disturbances(BEFORE, after, None, cpu_count=8) == []
    assert find_disturbances(BEFORE, after, None, cpu_count=1) == [sentence.format("1 CPU")]


COOL: Final = "let the machine cool down, and pause between runs"
WARM: Final = "warm up longer, as with --warmup_min_secs=5"
HIGHEST: Final = "the highest frequency of the 2 CPUs in use"
DRIFTED: Final = "while they were measured"


@pytest.mark.parametrize(
    "changes",
    [
        {"drift": Drift(0.0, 0.9)},
        {"drift": Drift(0.1, 1e-9)},
        {"drift": Drift(0.5, 0.001)},
        {"steal_s": 10.2},
        {"own_s": 13.4},
        {"frequencies_mhz": [2299.0, 800.0]},
        {"frequencies_mhz": [1701.0, 1701.0]},
        {"frequencies_mhz": [800.0, 2000.0]},
        {"frequencies_mhz": []},
        {"frequencies_mhz": [1000.0, 1000.0], "affinity": [0, 1]},
        {"temperatures": {"cpu": 70.0, "board": 30.0, "new": 85.0}},
    ],
    ids=str,
)
def test_a_machine_is_quiet_up_to_the_limits(changes: dict[str, Any]) -> None:
    """Steal: 1 % of two CPUs for ten seconds; own work above all work is rounding; frequencies: 15 % of the highest."""
    assert found(**changes) == []


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        (
            {"steal_s": 10.4},
            [
                "the hypervisor took 0.400 s in 10.0 s, 2.0 % of the time of the 2 CPUs in use, for other virtual "
                "machines: measure when its host is less busy, or on a machine of its own"
            ],
        ),
        (
            {"busy_s": 525.0},
            [
                "other processes worked 15.0 s in 10.0 s, 150 % of one CPU, with 1 of 2 CPUs free for them: "
                "end them, or measure when the machine is idle"
            ],
        ),
        (
            {"frequencies_mhz": [800.0, 1500.0]},
            [
                f"{HIGHEST} fell by 25 %, from 2000 to 1500 MHz: set the frequency governor to performance; "
                "it is schedutil",
            ],
        ),
        *(
            ({"frequencies_mhz": [end, 800.0], "governors": governors}, [f"{HIGHEST} {words}"])
            for governors in (["performance", "performance"], [])
            for end, words in (
                (1600.0, f"fell by 20 %, from 2000 to 1600 MHz: {COOL}"),
                (3000.0, f"rose by 50 %, from 2000 to 3000 MHz: {WARM}"),
            )
        ),
        (
            {"temperatures": {"cpu": 71.0, "board": 44.0}},
            [f"board rose by 14 degrees to 44 degrees Celsius: {COOL}"],
        ),
        ({"temperatures": {"new": 86.0}}, [f"new was at 86 degrees Celsius: {COOL}"]),
        ({"drift": Drift(0.11, 0.0009)}, [f"the times rose by 11 % {DRIFTED} (p 0.0009): {COOL}"]),
        ({"drift": Drift(-0.25, 1e-30)}, [f"the times fell by 25 % {DRIFTED} (p <1e-9): {WARM}"]),
    ],
)
def test_a_disturbance_is_said_with_what_helps(changes: dict[str, Any], sentences: list[str]) -> None:
    assert found(**changes) == sentences


def test_several_disturbances_are_several_sentences() -> None:
    assert len(found(Drift(1.0, 0.0), steal_s=20.0, busy_s=600.0, load_average=9.0, temperatures={"cpu": 99.0})) == 5
