"""Which exit code several runs, entries or rows have together: what was not shown is never a success."""

from __future__ import annotations

from typing import Literal

import pytest
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.benchmark.command import COMMAND, request_of_flags
from evaltools.benchmark.request import read_request
from evaltools.cli.benchmark import exit_code_of
from evaltools.cli.suite.run import exit_code_of as exit_code_of_suite
from evaltools.datasets import sample
from evaltools.request.flags import parse_flags
from evaltools.result.facts import FailedExample, RuntimeUsed
from evaltools.result.result import ALL, Row
from evaltools.result.result import exit_code_of as exit_code_of_evaluation
from tests.report.benchmark_samples import Sample, benchmark, lost, row
from tests.report.page import samples

Entry = tuple[Literal["done", "failed", "skipped"], int | None]


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ([], 0), ([0, 0], 0), ([0, 1, 0], 1), ([1, 4], 4), ([4, 3, 1], 3), ([3, 5], 5), ([5, 2], 2), ([2, 130], 130),
    ],
)  # fmt: skip
def test_of_several_runs_the_one_counts_that_says_least(codes: list[int], worst: int) -> None:
    assert exit_codes.worst_of(codes) == exit_codes.worst_of(codes[::-1]) == worst


@pytest.mark.parametrize(
    ("entries", "code"),
    [
        ([("done", 0), ("done", 0)], 0),
        ([("done", 0), ("done", 1)], 1),
        ([("done", 1), ("done", 4), ("done", 0)], 4),
        ([("done", 4), ("done", 3), ("done", 1)], 3),
        ([("done", 4), ("failed", 70)], 3),
        ([("done", 0), ("failed", None)], 3),
    ],
)
def test_the_code_of_a_suite_is_that_of_its_worst_entry(entries: list[Entry], code: int) -> None:
    made = [
        Row("fast" if state == "done" else ALL, counts={} if ended is None else {"exit_code": ended})
        for state, ended in entries
    ]
    finished = replace(samples.suite("x", made), stopped="")
    assert exit_code_of_suite(finished) == code
    assert exit_code_of_suite(replace(finished, stopped="interrupted")) == exit_codes.INTERRUPTED


@pytest.mark.parametrize(
    ("limits_broken", "stopped", "code"),
    [(False, "", 4), (True, "", 4), (True, "interrupted", 130), (True, "too many failed", 4)],
)
def test_a_limit_says_nothing_of_examples_that_failed(limits_broken: bool, stopped: str, code: int) -> None:
    """As of several runs, so of one: what was not shown comes before what was shown to be bad."""
    some_failed = replace(samples.classifier(), failed=[FailedExample("bad.jpg", "a", "inference", "no answer")])
    assert exit_code_of_evaluation(replace(some_failed, limits_broken=limits_broken, stopped=stopped)) == code
    without = replace(some_failed, failed=[], limits_broken=True)
    assert exit_code_of_evaluation(without) == exit_codes.LIMIT_BROKEN


RUNTIME = RuntimeUsed("litert", "ai-edge-litert", "2.3.0", "default")


def failed(name: str, runtime: RuntimeUsed | None = None) -> Sample:
    return lost(row(name, 100), "no GPU here", runtime=runtime)


FAILED, LOST = failed("gpu-fp16"), failed("gpu-fp16", RUNTIME)
SOME_RUNS_FAILED = row("gpu-fp16", 100, status="not measured", reason="a run failed", runtime=RUNTIME)


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([row("cpu", 100)], 0),
        ([row("cpu", 100), FAILED], 0),
        ([FAILED], 3),
        ([FAILED, failed("gpu-fp16@R5")], 3),
        ([row("cpu", 100), LOST], 3),
        ([row("cpu", 100), failed("asked for")], 3),
        ([row("cpu", 100), SOME_RUNS_FAILED], 4),
    ],
)
def test_a_benchmark_may_lack_some_rows_of_all_and_never_each(rows: list[Sample], code: int) -> None:
    words = (f"--graph={sample.model_file('int8')}", "--perf_options_list=all")
    flags = parse_flags("benchmark", "", "", COMMAND.groups, words)
    asked = read_request(request_of_flags(flags, ("evaltools", "benchmark", *words)))
    assert "gpu-fp16" in asked.may_be_missing
    assert exit_code_of(benchmark(*rows), asked) == code
