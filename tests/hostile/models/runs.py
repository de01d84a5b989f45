"""What ``inspect``, ``diff`` and ``benchmark`` do with a damaged model."""

from __future__ import annotations

import faulthandler
import os
import resource
import time
import traceback
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct

from evaltools.exit_codes import EXAMPLES_FAILED, NOT_MEASURED, OK, USAGE
from tests.command import evaltools_here
from tests.hostile.models.mutations import Case, case

_EXPECTED: Final = (OK, USAGE, NOT_MEASURED, EXAMPLES_FAILED)
_MOST_BYTES: Final = 8 << 30
_LONGEST_S: Final = 900.0
_STDERR: Final = os.fdopen(os.dup(2), "w")
"""Where a command that hangs shows its place; what is printed to descriptor 2 meanwhile is the command's."""
_SECONDS_TO_LEAVE: Final = 5.0
_CASES_PER_BENCHMARK: Final = 8
_TIMEOUT_FLAG: Final = "--example_timeout=5"
_COMMANDS: Final = {
    "inspect": ("--run=false",),
    "diff": ("--num_runs=1", "--noise_floor_runs=0", "--workers=1", "--progress=none", "--use_xnnpack", _TIMEOUT_FLAG),
    "benchmark": ("--num_runs=1", "--min_secs=0", "--warmup_runs=1", "--warmup_min_secs=0", "--rounds=1"),
}


class Done(Struct, frozen=True):
    """What a command did with a case; ``wrong`` is what it should not have done, empty where that is nothing."""

    case: str
    command: str
    code: int
    seconds: float
    message: str
    wrong: str = ""


def limit_memory() -> None:
    """Limit that of this process and of those that it starts, so that the machine does not feel a model's wishes."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))


def run_cases(numbers: range, folder: Path) -> list[Done]:
    """What is done with the cases of these numbers."""
    return [done for number in numbers for done in run_case(case(number), folder)]


def run_case(damaged: Case, folder: Path) -> list[Done]:
    """Inspect the model; where that takes it, compare it on two configurations, or measure its speed."""
    path = folder / f"{damaged.number}-{damaged.seed}-{damaged.damage}.tflite"
    path.write_bytes(damaged.content)
    done = [_run("inspect", path)]
    if done[0].code == OK:
        done.append(_run("diff" if damaged.number % _CASES_PER_BENCHMARK else "benchmark", path))
    if not any(each.wrong for each in done):
        path.unlink()
    return done


def _run(command: str, path: Path) -> Done:
    start = time.monotonic()
    faulthandler.dump_traceback_later(_LONGEST_S, exit=True, file=_STDERR)
    servers = _below()
    try:
        completed = evaltools_here(command, str(path), *_COMMANDS[command])
    except Exception:
        return Done(path.name, command, -1, time.monotonic() - start, "", traceback.format_exc())
    finally:
        faulthandler.cancel_dump_traceback_later()
    wrong = "" if completed.code in _EXPECTED else f"exit code {completed.code}"
    if "Traceback (most recent call last)" in completed.out + completed.err:
        wrong = "a traceback"
    if completed.code == USAGE and (completed.out or not completed.err.startswith("evaltools: ")):
        wrong = "no sentence"
    if left := _left(servers):
        wrong = f"left {left}"
    return Done(path.name, command, completed.code, time.monotonic() - start, completed.err[-2000:], wrong)


def _below() -> dict[int, str]:
    """The processes that this one has started, and those below them, by number."""
    found = {}
    for process in psutil.Process().children(recursive=True):
        try:
            found[process.pid] = f"{process.name()} {' '.join(process.cmdline())[:200]}"
        except psutil.Error:
            continue
    return found


def _left(before: dict[int, str]) -> list[str]:
    """The processes that are new and stay; the server of children and what it starts with are to stay."""
    end = time.monotonic() + _SECONDS_TO_LEAVE
    while True:
        new = {number: text for number, text in _below().items() if number not in before}
        left = [text for text in new.values() if "forkserver" not in text and "resource_tracker" not in text]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.1)
