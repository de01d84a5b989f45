"""Which flags would make a pass faster, by cores, workers and threads that are given."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.report.execution import advice_in_words
from evaltools.result.execution import ExecutionUsed
from tests.results import configuration, result


def used(bound: Any, workers: int = 1, **seconds: float) -> ExecutionUsed:
    return ExecutionUsed(workers, 9, None, {}, seconds, bound)


def advised(execution: ExecutionUsed, cores: int, threads: int) -> str:
    found = result(replace(configuration("a"), num_threads=threads))
    return advice_in_words(replace(found, environment=replace(found.environment, cpu_count=cores)), execution)


def flags(execution: ExecutionUsed, cores: int, threads: int = 1) -> list[str]:
    return re.findall(r"--\w+=\d+", advised(execution, cores, threads))


@pytest.mark.parametrize(
    ("bound", "workers", "cores", "threads", "helps"),
    [
        ("input", 1, 4, 1, ["--workers=4"]),
        ("inference", 1, 4, 1, ["--workers=4", "--num_threads=4"]),
        ("inference", 2, 8, 2, ["--workers=4", "--num_threads=4"]),
        ("inference", 4, 4, 1, []),
        ("input", 1, 4, 4, []),
        ("metrics", 1, 8, 1, []),
    ],
)
def test_flags_help_where_cores_are_idle_and_work_can_be_spread(
    bound: str, workers: int, cores: int, threads: int, helps: list[str]
) -> None:
    execution = used(bound, workers, **{bound if bound != "input" else "decode": 1.0})
    assert flags(execution, cores, threads) == helps
    assert (f"asked for {workers * threads} of {cores} cores" in advised(execution, cores, threads)) == bool(helps)


def test_the_largest_step_of_the_input_is_named() -> None:
    assert advised(used("input", read=1, decode=4, resize=2, inference=6), 2, 1).startswith("input-bound; more cores")


def test_no_more_workers_than_examples_and_one_where_more_are_refused() -> None:
    execution = used("inference", inference=1)
    assert flags(replace(execution, examples_run=3), 8) == ["--workers=3", "--num_threads=8"]
    assert flags(replace(execution, one_worker=True), 8) == ["--num_threads=8"]


def test_nothing_is_said_where_no_work_was_measured() -> None:
    assert advised(used(None), 4, 1) == advised(used(None, inference=0.0), 4, 1) == ""


def test_threads_are_those_of_configurations_that_were_measured() -> None:
    left_out = replace(configuration("b"), num_threads=8, status="not measured")
    for threads, said in ((2, "--workers=2"), (-1, "")):
        found = result(replace(configuration("a"), num_threads=threads), left_out)
        environment = replace(found.environment, cpu_count=4)
        words = advice_in_words(replace(found, environment=environment), used("input", decode=1))
        assert (said or "--workers") in words if said else "--" not in words
