"""Runs with a crash every 50 examples, one after the other: ``python -m tests.hostile.soak --secs=1800``.

What this process uses after the first runs, in which all is imported, is held against what it uses at the end.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct
from msgspec.structs import fields

from evaltools.exit_codes import OK
from tests.cli.evaluate.sample_runs import below, imagenet
from tests.command import Completed, evaltools_here
from tests.hostile.harm import build_hostile_delegate

_RUNS_TO_WARM_UP: Final = 3
_SECONDS_BETWEEN_LINES: Final = 30.0
_SECONDS_TO_LEAVE: Final = 2.0
_PICTURES: Final = 200
_MOST_GROWTH_MB: Final = 60
_MEMORY: Final = Path("/dev/shm")


class Used(Struct, frozen=True):
    """What a process uses: resident memory in MB, and counts of the rest; ``files`` are temporary ones."""

    memory_mb: int
    descriptors: int
    threads: int
    processes: int
    shared_memory: int
    files: int

    @classmethod
    def now(cls, temporary: Path) -> Used:
        """What this process and those below it use, when those of the last run had time to leave.

        A model holds its file open until it is collected: what waits for that has not grown.
        """
        time.sleep(_SECONDS_TO_LEAVE)
        gc.collect()
        own = psutil.Process()
        return cls(
            own.memory_info().rss >> 20,
            own.num_fds(),
            own.num_threads(),
            len(below(own.pid)),
            len(list(_MEMORY.glob("evaltools-*"))) if _MEMORY.is_dir() else 0,
            sum(1 for _ in temporary.rglob("*")),
        )

    def growth(self, later: Used) -> list[str]:
        """In words, what has grown; memory may a little, shared memory is the whole machine's."""
        grown = []
        for each in fields(self):
            before, after = getattr(self, each.name), getattr(later, each.name)
            most = {"memory_mb": _MOST_GROWTH_MB, "shared_memory": sys.maxsize}.get(each.name, 0)
            if after - before > most:
                grown.append(f"{each.name} from {before} to {after}")
        return grown


def main(arguments: Sequence[str]) -> int:
    """Run for so long; the exit code is 1 where something grew, or a run gave no figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.soak")
    parser.add_argument("--secs", type=float, default=1800)
    parser.add_argument("--within", type=Path, help="The folder of a process that has its temporary files there.")
    asked = parser.parse_args(arguments)
    if asked.within is not None:
        return _soak(asked.secs, asked.within)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.hostile.soak", f"--secs={asked.secs}", f"--within={folder}"]
        temporary = Path(folder, "temporary")
        temporary.mkdir()
        return subprocess.run(command, env={**os.environ, "TMPDIR": str(temporary)}, check=False).returncode


def _soak(seconds: float, folder: Path) -> int:
    library, temporary, result = build_hostile_delegate(folder), folder / "temporary", folder / "result.json"
    end = time.monotonic() + seconds
    wrong = [done for _ in range(_RUNS_TO_WARM_UP) if _is_wrong(done := _run(library, result))]
    first = Used.now(temporary)
    print(f"      runs  {'  '.join(each.name for each in fields(Used))}")
    print(f"start {_RUNS_TO_WARM_UP:4}  {_line(first)}", flush=True)
    runs, next_line = _RUNS_TO_WARM_UP, time.monotonic() + _SECONDS_BETWEEN_LINES
    while time.monotonic() < end:
        done = _run(library, result)
        runs += 1
        wrong += [done] if _is_wrong(done) else []
        if time.monotonic() > next_line:
            next_line += _SECONDS_BETWEEN_LINES
            print(f"      {runs:4}  {_line(Used.now(temporary))}", flush=True)
    last = Used.now(temporary)
    print(f"end   {runs:4}  {_line(last)}")
    for done in wrong:
        print(f"WRONG: exit code {done.code}: {done.err}")
    grown = first.growth(last)
    print(f"grown: {'; '.join(grown) or 'nothing'}; {len(wrong)} of {runs} runs went wrong")
    return int(bool(grown or wrong))


def _line(used: Used) -> str:
    return "  ".join(f"{getattr(used, each.name):{len(each.name)}}" for each in fields(Used))


def _run(library: Path, result: Path) -> Completed:
    harm = f"external_delegate_path={library} external_delegate_options=moment:fiftieth;misbehaviour:segv"
    configurations = ("--config=plain: use_xnnpack=true", f"--config=bad: {harm} use_xnnpack=false")
    flags = ("--workers=1", "--progress=none", f"--output_file_path={result}")
    return evaltools_here(*imagenet(*flags, *configurations, pictures=_PICTURES))


def _is_wrong(done: Completed) -> bool:
    """A process that ends is started again and costs nothing, which is said."""
    is_told = "warning: bad: its process ended" in done.err
    return done.code != OK or not is_told or "Traceback" in done.err


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
