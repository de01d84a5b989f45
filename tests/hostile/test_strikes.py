"""A process of a run that is killed or stopped is told, and leaves nothing; ``make hostile`` has them all."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from itertools import product
from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK
from tests.cli.evaluate.sample_runs import imagenet, inference_diff, left_after, run
from tests.hostile.examples import IS_LONG

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform != "linux", reason="other platforms do not tell what a process left"),
]
EXAMPLES = 80
LONGEST_RUN_S = 240
PATIENCE_S = 6
CONFIGURATIONS = ("--config=a: use_xnnpack=true", "--config=b: use_xnnpack=false")
FEW_ROUNDS = (
    *("--num_runs=20", "--min_secs=0", "--max_secs=10", "--warmup_runs=1", "--warmup_min_secs=0", "--rounds=3"),
    f"--example_timeout={PATIENCE_S}",
)
TOLD = ("crashed", "failed: ", "not measured: ", "not clean")
"""One of these is said of a process that a run cannot do without."""
SOME = [
    ("imagenet", "command", "SIGKILL"),
    ("imagenet", "server", "SIGKILL"),
    ("imagenet", "decoder", "SIGKILL"),
    ("inference-diff", "supervisor", "SIGSTOP"),
    ("inference-diff", "child", "SIGKILL"),
    ("benchmark", "server", "SIGKILL"),
]
ALL = [
    (command, role, signal)
    for command, role, signal in product(
        ("imagenet", "inference-diff", "benchmark"),
        ("command", "server", "supervisor", "child", "decoder"),
        ("SIGKILL", "SIGSTOP"),
    )
    if (command == "imagenet" or role != "decoder") and (role not in ("command", "server") or signal == "SIGKILL")
]
"""Without processes that there are none of; a command or server that is stopped is stopped by the user."""


def words_of(command: str, run_dir: Path) -> list[str]:
    limits = ("--workers=2", f"--example_timeout={PATIENCE_S}", "--progress=none", f"--run_dir={run_dir}")
    if command == "imagenet":
        return imagenet(*limits, *CONFIGURATIONS, pictures=EXAMPLES)
    if command == "inference-diff":
        return inference_diff(*limits, *CONFIGURATIONS, runs=EXAMPLES)
    return ["benchmark", f"--model_file={sample.model_file('float32')}", *FEW_ROUNDS, *CONFIGURATIONS]


@pytest.mark.parametrize(("command", "role", "signal"), ALL if IS_LONG else SOME)
def test_a_run_ends_whatever_is_done_to_its_processes(command: str, role: str, signal: str, tmp_path: Path) -> None:
    mark, run_dir = uuid.uuid4().hex, tmp_path / "run"
    words = [sys.executable, "-m", "tests.hostile.struck", signal, role, *words_of(command, run_dir)]
    with tempfile.TemporaryDirectory() as temporary:
        environment = {**os.environ, "EVALTOOLS_TEST_RUN": mark, "TMPDIR": temporary}
        done = subprocess.run(
            words,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
            text=True,
            timeout=LONGEST_RUN_S,
            check=False,
        )
        left = left_after(mark) + os.listdir(temporary)
    assert f"{signal} was sent to the {role}" in done.stderr
    assert done.returncode in ((-9,) if role == "command" else (OK, EXAMPLES_FAILED, NOT_MEASURED)), done.stderr
    assert "Traceback" not in done.stderr
    if role in ("supervisor", "child") or done.returncode == EXAMPLES_FAILED:
        assert any(words in done.stderr for words in TOLD), done.stderr
    assert left == []
    if command != "benchmark":
        resumed = run(["resume", str(run_dir)])
        is_whole = resumed.code == OK and f"Num evaluation runs: {EXAMPLES}" in resumed.out
        assert is_whole or resumed.code == EXAMPLES_FAILED, resumed.err
