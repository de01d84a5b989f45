"""Runs of which one process is killed or stopped in the middle: what they say, give and leave."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Final

from msgspec import Struct

from evaltools.datasets import sample
from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK
from tests.cli.evaluate.sample_runs import imagenet, inference_diff, left_after, run

SIGNALS: Final = ("SIGKILL", "SIGSTOP")
ROLES: Final = ("command", "server", "warden", "child", "decoder")
COMMANDS: Final = ("imagenet", "inference-diff", "benchmark")
_EXAMPLES: Final = 200
_LONGEST_RUN_S: Final = 240
_PATIENCE_S: Final = 20
_CONFIGURATIONS: Final = ("--config=a: use_xnnpack=true", "--config=b: use_xnnpack=false")
_FEW_ROUNDS: Final = (
    "--num_runs=20",
    "--min_secs=0",
    "--max_secs=10",
    "--warmup_runs=1",
    "--warmup_min_secs=0",
    "--rounds=3",
)
_TOLD: Final = ("crashed", "failed: ", "not measured: ", "not clean")
"""One of these is said of a process that a run cannot do without."""


class Case(Struct, frozen=True):
    """A command, the role of one of its processes, and the signal that this one is sent."""

    command: str
    role: str
    signal: str

    @property
    def can_be(self) -> bool:
        """Whether there is such a process, and something to be seen: a command that is stopped is the user's."""
        return (self.command == "imagenet" or self.role != "decoder") and self != Case(
            self.command, "command", "SIGSTOP"
        )


class Struck(Struct, frozen=True):
    """What a run did after the signal; ``left`` names processes and logs, ``resumed`` how going on failed."""

    case: Case
    code: int
    seconds: float
    errors: str
    left: list[str]
    resumed: str

    @property
    def told(self) -> str:
        """The line that tells of the process, empty where nothing does."""
        return next((line for line in self.errors.splitlines() if any(words in line for words in _TOLD)), "")


def strike(case: Case, folder: Path) -> Struck:
    """Run the command with the signal, and what is resumed afterwards."""
    mark, run_dir = uuid.uuid4().hex, folder / f"{case.command}-{case.role}-{case.signal}"
    program = [sys.executable, "-m", "tests.hostile.strikes.struck", case.signal, case.role]
    err, begun = run_dir.with_suffix(".err"), monotonic()
    with err.open("wb") as file, tempfile.TemporaryDirectory() as temporary:  # sockets cannot have long names
        environment = {**os.environ, "EVALTOOLS_TEST_RUN": mark, "TMPDIR": temporary}
        words = [*program, *_words(case.command, run_dir)]
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=file, env=environment)
        try:
            process.wait(_LONGEST_RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        seconds, left = monotonic() - begun, left_after(mark)
        left += [log.name for log in Path(temporary).glob("evaltools-*.log")]
    resumed = "" if case.command == "benchmark" else _not_resumed(run_dir)
    return Struck(case, process.returncode, seconds, err.read_text(), left, resumed)


def problems(struck: Struck) -> Iterator[str]:
    """What of a run must not be."""
    case = struck.case
    ends_with_it = case.role == "command"
    if struck.code not in ((-9,) if ends_with_it else (OK, EXAMPLES_FAILED, NOT_MEASURED)):
        yield f"exit code {struck.code}"
    if struck.seconds > _LONGEST_RUN_S:
        yield "no end"
    if "Traceback" in struck.errors:
        yield "a traceback"
    if "was sent to" not in struck.errors:
        yield "no signal was sent"
    if (case.role in ("warden", "child") or struck.code == EXAMPLES_FAILED) and not struck.told:
        yield "nothing is said of it"
    if struck.left:
        yield f"left: {struck.left}"
    if struck.resumed:
        yield f"not resumed: {struck.resumed}"


def _words(command: str, run_dir: Path) -> list[str]:
    shared = (
        "--workers=2",
        f"--example_timeout={_PATIENCE_S}",
        "--progress=none",
        f"--run_dir={run_dir}",
        *_CONFIGURATIONS,
    )
    if command == "imagenet":
        return imagenet(*shared, pictures=_EXAMPLES)
    if command == "inference-diff":
        return inference_diff(*shared, runs=_EXAMPLES)
    model = f"--model_file={sample.model_file('float32')}"
    return ["benchmark", model, *_FEW_ROUNDS, f"--run_timeout={_PATIENCE_S}", *_CONFIGURATIONS]


def _not_resumed(run_dir: Path) -> str:
    done = run(["resume", str(run_dir)])
    examples = f"Num evaluation runs: {_EXAMPLES}"
    is_whole = (done.code == OK and examples in done.out) or done.code == EXAMPLES_FAILED
    return "" if is_whole else f"exit code {done.code}: {done.err}"
