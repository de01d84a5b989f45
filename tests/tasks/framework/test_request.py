"""Flags about how an evaluation is carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.engine.execution import Execution, Shard
from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.request import Options
from evaltools.request.flags import parse_flags
from evaltools.tasks.framework import read
from evaltools.tasks.framework.common_options import (
    EXECUTION,
    EXECUTION_WITH_ONE_WORKER,
    MAX_FAILED_EXAMPLES,
)
from evaltools.tasks.framework.request import flags_to_repeat, read_execution
from tests.requests import request_of


def given(*words: str, one_worker: bool = False) -> Options:
    parameters = EXECUTION_WITH_ONE_WORKER if one_worker else EXECUTION
    return parse_flags("imagenet", "", "", {"execution": (*parameters, MAX_FAILED_EXAMPLES)}, words).options()


def test_without_flags_there_is_one_worker_per_core_and_nothing_is_kept() -> None:
    assert read_execution(given()) == Execution(workers=None)
    assert read_execution(given(one_worker=True)) == Execution(workers=1)
    assert read_execution(given("--workers=auto", one_worker=True)) == Execution(workers=None)


def test_every_flag_has_its_place() -> None:
    words = [
        "--workers=3",
        "--example_timeout=0.5",
        "--max_crashes=1",
        "--max_failed_examples=9",
        "--run_dir=run",
        "--shard_index=2",
        "--shard_count=4",
        "--latency_examples=4",
        "--trace=t.json",
    ]
    asked = Execution(3, 0.5, 1, 9, Path("run"), Shard(2, 4), 4, Path("t.json"))
    assert read_execution(given(*words)) == asked


@pytest.mark.parametrize("text", ["1025", "", " 2"])
def test_a_number_of_workers_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--workers=.*: use a number from 1 to 1024, or auto: one per core$"):
        read_execution(given(f"--workers={text}"))
    assert read_execution(given("--workers=1024")).workers == 1024


def test_a_shard_and_a_resumed_run_must_agree_on_when_a_configuration_is_given_up() -> None:
    assert [parameter.name for parameter in EXECUTION if parameter.must_agree] == ["max_crashes"]
    assert flags_to_repeat(given("--workers=3", "--max-crashes=2", "--trace=t")) == {"--max_crashes": "2"}


@pytest.mark.parametrize("task", ["imagenet", "inference_diff"])
def test_the_native_tool_compares_no_two_models(task: str) -> None:
    request = request_of(task, "--compat=native", "--reference_model_file=float.tflite")
    with pytest.raises(UsageError, match="--compat=native compares a model with itself"):
        read(task_command(task), request)
