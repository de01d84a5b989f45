"""Disturbances, on both sides of each limit."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec.structs import replace

from evaltools.benchmark.disturbances import find_disturbances
from evaltools.metrics.latency import Drift
from evaltools.result.rounds import Conditions

BEFORE: Final = Conditions(
    affinity=[2, 5],
    frequencies_mhz=[2000.0, 2000.0],
    governors=["performance", "schedutil"],
    temperatures={"cpu": 60.0, "board": 30.0},
)
NOTHING: Final = Conditions([0], [], [], {})


def found(drift: Drift | None = None, **changes: object) -> list[str]:
    return find_disturbances(BEFORE, replace(BEFORE, **changes), drift)


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert find_disturbances(NOTHING, NOTHING, None) == []
    assert find_disturbances(BEFORE, NOTHING, None) == []


def test_more_threads_than_cpus_in_use() -> None:
    assert find_disturbances(BEFORE, BEFORE, None, threads=2) == []
    sentence = "4 threads on 2 CPUs: they wait for each other; use at most 2"
    assert find_disturbances(BEFORE, BEFORE, None, threads=4) == [sentence]


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
    """Frequencies: 15 % of the highest."""
    assert found(**changes) == []


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
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
    assert len(found(Drift(1.0, 0.0), frequencies_mhz=[800.0, 800.0], temperatures={"cpu": 99.0})) == 3
