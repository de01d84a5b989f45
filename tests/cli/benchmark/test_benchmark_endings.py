"""How ``evaltools benchmark`` ends where something goes wrong, or somebody has seen enough."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from evaltools.datasets import sample
from evaltools.result_file import read_result
from tests.cli.evaluate.sample_runs import needs_proc, processes_of, start
from tests.cli.judge.held_runs import HOLD_IN, Hold
from tests.command import evaltools_here

pytestmark = pytest.mark.once
pytest.importorskip("ai_edge_litert", reason="the runtime litert is not installed")

FLOAT = sample.model_file("float32")
FEW_RUNS = ("--num_runs=5", "--min_secs=0", "--warmup_runs=2", "--warmup_min_secs=0")
QUICK = (*FEW_RUNS, "--runtime=litert")
HELD_IN_THE_SECOND_TURN = """
import sys
from evaltools.benchmark import fresh_process, run
from evaltools.cli.main import main
from tests.cli.judge.held_runs import held
measure = run.measure_in_fresh_process
def holding(progress, inputs, options, turn, *more):
    if turn == 1:
        fresh_process.run_regular = held
    measure(progress, inputs, options, turn, *more)
run.measure_in_fresh_process = holding
sys.exit(main(sys.argv[1:]))
"""
INTERRUPTED_AFTER_THE_SUMMARY = """
import os, signal, sys
from evaltools.cli.benchmark_native import NativeLines
from evaltools.cli.main import main
summary = NativeLines.summary
def interrupted(lines, rows):
    summary(lines, rows)
    os.killpg(0, signal.SIGINT)
NativeLines.summary = interrupted
sys.exit(main(sys.argv[1:]))
"""


def start_benchmark(script: str, mark: str, *arguments: str) -> subprocess.Popen[str]:
    return start(["benchmark", *arguments], mark, program=("-c", script), own_group=True)


def finish(process: subprocess.Popen[str], mark: str) -> tuple[int, str]:
    """Exit code and stderr; nothing may be left behind, and nobody sees a traceback."""
    _, err = process.communicate(timeout=120)
    assert "Traceback" not in err
    assert processes_of(mark) == []
    return process.returncode, err


def result_of(path: Path) -> Any:
    """A result that fits its types."""
    read_result(path)
    return json.loads(path.read_text())


@pytest.fixture
def hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hold:
    """Of a command that is ``HELD_IN_THE_SECOND_TURN``."""
    folder = tmp_path / "hold"
    folder.mkdir()
    monkeypatch.setenv(HOLD_IN, str(folder))
    return Hold(folder)


@needs_proc
def test_ctrl_c_in_the_second_turn_keeps_the_first(hold: Hold, tmp_path: Path) -> None:
    output, mark = tmp_path / "result.json", uuid.uuid4().hex
    in_order = ("--sweep=use_xnnpack=true,false", "--random_shuffle_benchmark_runs=false", "--rounds=3")
    flags = (f"--graph={FLOAT}", *QUICK, *in_order, f"--output_file_path={output}")
    with start_benchmark(HELD_IN_THE_SECOND_TURN, mark, *flags) as process:
        hold.wait_until_held()
        assert processes_of(mark)
        os.killpg(process.pid, signal.SIGINT)
        hold.go_on()
        code, err = finish(process, mark)
    assert code == 130, err
    assert "interrupted; the figures are those of the rounds finished until then" in err
    result = result_of(output)
    first, second = result["rows"]
    assert result["stopped"] == "interrupted"
    assert (first["status"], first["counts"]) == ("measured", {"rounds": 1, "runs": 5})
    assert (second["status"], second["reason"]) == ("not measured", "it was interrupted")
    assert "figures" not in second


def test_ctrl_c_after_the_summary_loses_nothing(tmp_path: Path) -> None:
    output, mark = tmp_path / "result.json", uuid.uuid4().hex
    flags = (f"--graph={FLOAT}", *QUICK, "--sweep=use_xnnpack=true,false", "--rounds=1", f"--output_file_path={output}")
    with start_benchmark(INTERRUPTED_AFTER_THE_SUMMARY, mark, *flags) as process:
        code, err = finish(process, mark)
    assert code == 0, err
    result = result_of(output)
    assert result["stopped"] == ""
    assert [row["counts"]["runs"] for row in result["rows"]] == [5, 5]


@pytest.mark.parametrize(
    ("warm_up_runs", "code", "reason"), [(0, 4, "5 of 5 runs failed: "), (2, 3, "2 of 2 warm-up runs failed: ")]
)
def test_runs_that_fail_give_another_code_than_a_configuration_that_cannot_run(
    rounding_delegate: Path, tmp_path: Path, warm_up_runs: int, code: int, reason: str
) -> None:
    output, proto, outputs = tmp_path / "r.json", tmp_path / "r.pb", tmp_path / "o.bin"
    failing = f"external_delegate_path={rounding_delegate} external_delegate_options=fail:invoke use_xnnpack=false"
    done = evaltools_here(
        "benchmark", f"--graph={FLOAT}", "--num_runs=5", "--min_secs=0", "--warmup_min_secs=0", "--rounds=2",
        f"--warmup_runs={warm_up_runs}", "--config=cpu: use_xnnpack=true runtime=litert",
        f"--config=bad: {failing} runtime=litert", f"--output_file_path={output}", f"--result_file_path={proto}",
        f"--output_filepath={outputs}",
    )  # fmt: skip
    assert done.code == code, done.err
    good, bad = result_of(output)["rows"]
    assert (good["status"], good["counts"]["rounds"]) == ("measured", 2)
    assert bad["status"] == "not measured"
    assert bad["reason"].startswith(reason)
    assert "rounding_delegate: invoke fails, as option fail asks" in bad["reason"]
    assert ("figures" not in bad) == (code == 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["o.bin", "r.json", "r.pb"]


@pytest.mark.parametrize(("moment", "code"), [("create", 3), ("first", 3), ("later", 4), ("free", 4)])
def test_a_crash_ends_a_benchmark_as_it_ends_a_diff(hostile_delegate: Path, moment: str, code: int) -> None:
    """In the first run of each process nothing was measured; in a later one, or at the end, something was."""
    options = f"external_delegate_options='moment:{moment};misbehaviour:abort'"
    bad = f"--config=bad: external_delegate_path={hostile_delegate} {options}"
    model = str(sample.model_file("float32"))
    diff = evaltools_here("diff", model, bad, "--num_runs=12", "--noise_floor_runs=0")
    timed = evaltools_here("benchmark", model, bad, "--num_runs=12", "--min_secs=0", "--warmup_min_secs=0")
    assert (diff.code, timed.code) == (code, code), (diff.err, timed.err)
    word = "failed" if code == 4 else "not measured"
    assert re.search(rf"^bad +{word}", timed.err, re.M), timed.err
