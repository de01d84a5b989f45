"""A process that crashed is never a clean pass, also where a fresh one then gave every answer."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import evaltools as et
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED
from evaltools.result.result import Result, Row
from evaltools.result_file import read_result
from tests.cli.evaluate.sample_runs import coco, imagenet, inference_diff
from tests.command import Completed, evaltools_here

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="the delegate is written for Linux"),
]
RUNS = 60


def crashing(library: Path, moment: str, how: str = "segv") -> str:
    options = f"moment:{moment};misbehaviour:{how}"
    return f"--config=bad: external_delegate_path={library} external_delegate_options={options} use_xnnpack=false"


def evaluated(command: list[str], folder: Path) -> tuple[Completed, Result, Row]:
    """What a command printed, its result, and the crashing configuration in it."""
    output = folder / "result.json"
    done = evaltools_here(*command, f"--output_file_path={output}")
    result = read_result(output)
    (bad,) = (row for row in result.rows if row.name == "bad")
    return done, result, bad


@pytest.mark.parametrize(
    ("moment", "why"),
    [("fiftieth", "during a run"), ("free", "released"), ("exit", "at its exit")],
)
def test_a_run_with_a_crash_is_not_clean(hostile_delegate: Path, tmp_path: Path, moment: str, why: str) -> None:
    command = inference_diff(crashing(hostile_delegate, moment), "--quiet", runs=RUNS)
    done, result, bad = evaluated(command, tmp_path)
    assert done.code == EXAMPLES_FAILED, done.err
    assert (bad.status, bad.finished_examples, result.failed) == ("measured", RUNS, [])
    assert bad.crashes >= 1
    assert "SIGSEGV" in bad.first_crash
    assert why in bad.first_crash
    times = "time" if bad.crashes == 1 else "times"
    assert done.err.splitlines()[-1] == f"bad: crashed {bad.crashes} {times} in {RUNS} runs"
    assert any("bad: not clean: crashed" in warning for warning in result.warnings)
    loaded = et.load(tmp_path / "result.json")
    assert isinstance(loaded, et.Result)
    assert (loaded["bad"].crashes, loaded["bad"].first_crash) == (bad.crashes, bad.first_crash)
    assert et.gate(loaded, ["max_error <= 1000"], configuration="bad").verdict == "not measured"


def test_a_crash_at_creation_is_not_measured_and_counts(hostile_delegate: Path, tmp_path: Path) -> None:
    done, _, bad = evaluated(inference_diff(crashing(hostile_delegate, "create")), tmp_path)
    assert (done.code, bad.status, bad.crashes) == (NOT_MEASURED, "not measured", 1)
    assert bad.first_crash == bad.reason
    assert done.err.splitlines()[-1] == "bad: crashed 1 time before its first run"


@pytest.mark.parametrize("command", [imagenet, coco])
def test_every_task_counts_crashes(hostile_delegate: Path, tmp_path: Path, command: Any) -> None:
    """Every process crashes at its fifth run, which a fresh one then does."""
    done, result, bad = evaluated(command(crashing(hostile_delegate, "later"), "--workers=1", pictures=12), tmp_path)
    assert (done.code, result.failed) == (EXAMPLES_FAILED, [])
    assert bad.crashes >= 2


def test_crashes_stay_counted_when_a_run_goes_on_and_are_summed_when_shards_are_merged(
    hostile_delegate: Path, tmp_path: Path
) -> None:
    folders, crashes = [], []
    for index in range(2):
        folders.append(str(tmp_path / f"shard{index}"))
        shard = [f"--run_dir={folders[-1]}", f"--shard_index={index}", "--shard_count=2", "--workers=1"]
        done, _, bad = evaluated(imagenet(crashing(hostile_delegate, "later"), *shard, pictures=24), tmp_path)
        assert done.code == EXAMPLES_FAILED
        crashes.append(bad.crashes)
    again = evaltools_here("resume", folders[0])
    assert (again.code, again.err.splitlines()[-1]) == (EXAMPLES_FAILED, f"bad: crashed {crashes[0]} times in 12 runs")
    done, _, bad = evaluated(["merge", *folders], tmp_path)
    assert (done.code, bad.crashes) == (EXAMPLES_FAILED, sum(crashes))


def test_a_suite_with_a_crash_is_not_clean(hostile_delegate: Path, tmp_path: Path) -> None:
    *_, model = (word for word in inference_diff() if word.startswith("--model_file="))
    job = "crash: " + shlex.join(["diff", "--num_runs=60", "--noise_floor_runs=3"])
    done = evaltools_here(
        "suite",
        model.partition("=")[2],
        f"--job={job}",
        crashing(hostile_delegate, "fiftieth"),
        f"--run_dir={tmp_path / 'suite'}",
    )
    assert done.code == EXAMPLES_FAILED, done.err
    assert re.search("crashed [12] times? in 60 runs", done.out + done.err)


@pytest.mark.parametrize(("number", "name"), [(4, "int64"), (5, "string")])
def test_an_output_of_another_type_than_the_models_fails_its_example(
    hostile_delegate: Path, tmp_path: Path, number: int, name: str
) -> None:
    """Which a delegate can do when it is invoked, after all types were known."""
    words = imagenet(crashing(hostile_delegate, "later", f"type{number}"), "--workers=1", pictures=12)
    done, result, bad = evaluated(words, tmp_path)
    assert done.code == EXAMPLES_FAILED, done.err
    assert (bad.finished_examples, bad.failed_examples, bad.crashes) == (4, 8, 0)
    reason = result.failed[0].reason
    assert f" is of type {name} after the run, and was float32 when the model was loaded" in reason
