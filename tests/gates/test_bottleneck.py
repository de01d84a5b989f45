"""What bounds a pass, compared with shares worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.gates.bottleneck import Help, bottleneck
from evaltools.report.words.execution import advice_in_words
from evaltools.result.execution import ExecutionUsed, InferenceSeconds
from tests.results import configuration, result


def used(bound: Any, workers: int = 1, **seconds: float) -> ExecutionUsed:
    return ExecutionUsed(workers, 9, None, {}, seconds, bound)


def test_the_input_is_one_kind_and_its_largest_step_is_named() -> None:
    found = bottleneck(used("input", read=1, decode=4, resize=2, prepare=1, inference=6, metrics=1, journal=1), 2, 1)
    assert found is not None
    assert (found.bound, found.stage, found.share) == ("input", "decode", 0.5)
    assert list(found.shares.items())[:2] == [("inference", 0.375), ("decode", 0.25)]


@pytest.mark.parametrize(
    ("slow", "stage", "share"),
    [
        (InferenceSeconds(copy=1.0, run=6.0, read_back=0.0), "run", 0.875),
        (InferenceSeconds(copy=6.0, run=0.5, read_back=0.5), "copy", 0.875),
        (InferenceSeconds(copy=1.0, run=1.0, read_back=5.0), "read back", 0.875),
    ],
)
def test_inference_names_its_step_and_the_slowest_configuration(
    slow: InferenceSeconds, stage: str, share: float
) -> None:
    inference = {"reference": InferenceSeconds(0.25, 0.5, 0.25), "gpu": slow}
    found = bottleneck(replace(used("inference", inference=8), inference_seconds=inference), 1, 1)
    assert found is not None
    assert (found.stage, found.configuration, found.configuration_share) == (stage, "gpu", share)
    assert found.helps == ()


@pytest.mark.parametrize(
    ("bound", "workers", "cores", "threads", "helps"),
    [
        ("input", 1, 4, 1, (Help("workers", 4, 4.0),)),
        ("inference", 1, 4, 1, (Help("workers", 4, 4.0), Help("num_threads", 4, 4.0))),
        ("inference", 2, 8, 2, (Help("workers", 4, 2.0), Help("num_threads", 4, 2.0))),
        ("inference", 4, 4, 1, ()),
        ("input", 1, 4, 4, ()),
        ("metrics", 1, 8, 1, ()),
        ("journal", 1, 8, 1, ()),
    ],
)
def test_flags_help_where_cores_are_idle_and_work_can_be_spread(
    bound: str, workers: int, cores: int, threads: int, helps: tuple[Help, ...]
) -> None:
    found = bottleneck(used(bound, workers, **{bound if bound != "input" else "decode": 1.0}), cores, threads)
    assert found is not None
    assert (found.helps, found.unused_cores) == (helps, max(0, cores - workers * threads))


def test_no_more_workers_than_examples_and_one_where_more_are_refused() -> None:
    execution = used("inference", inference=1)
    few = bottleneck(replace(execution, examples_run=3), cores=8, threads=1)
    one = bottleneck(replace(execution, one_worker=True), cores=8, threads=1)
    assert few is not None
    assert one is not None
    assert few.helps == (Help("workers", 3, 3.0), Help("num_threads", 8, 8.0))
    assert one.helps == (Help("num_threads", 8, 8.0),)


def test_nothing_is_said_where_no_work_was_measured() -> None:
    assert bottleneck(used(None), 4, 1) is None
    assert bottleneck(used(None, inference=0.0), 4, 1) is None


def test_threads_are_those_of_configurations_that_were_measured() -> None:
    left_out = replace(configuration("b"), num_threads=8, status="not measured")
    for threads, said in ((2, "--workers=2"), (-1, "")):
        found = result(replace(configuration("a"), num_threads=threads), left_out)
        environment = replace(found.environment, cpu_count=4)
        words = advice_in_words(replace(found, environment=environment), used("input", decode=1))
        assert (said or "--workers") in words if said else "--" not in words
