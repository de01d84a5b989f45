"""Tries many damaged models: ``python -m tests.hostile.models --cases=2000 [--first=0] [--keep=FOLDER]``.

Prints how many ended how; the exit code is 1 where one did what must not be, and ``--keep`` keeps those models.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from tests.hostile.models.runs import Done, limit_memory, run_cases

_AT_A_TIME: Final = 20


def main(arguments: Sequence[str]) -> int:
    """Run the cases, on all processors; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.models")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args(arguments)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        done = list(_tried(range(asked.first, asked.first + asked.cases), folder))
    for (command, code), count in sorted(Counter((each.command, each.code) for each in done).items()):
        print(f"{command:10} exit code {code:2}: {count:5}")
    slowest = max(done, key=lambda each: each.seconds)
    print(f"slowest: {slowest.seconds:.1f} s, {slowest.command} of {slowest.case}")
    wrong = [each for each in done if each.wrong]
    print(f"{len(wrong)} of {asked.cases} models did what must not be, in {time.monotonic() - start:.0f} s")
    return int(bool(wrong))


def _tried(numbers: range, folder: Path) -> Iterator[Done]:
    pieces = [numbers[start : start + _AT_A_TIME] for start in range(0, len(numbers), _AT_A_TIME)]
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn"), limit_memory) as pool:
        for found in pool.map(partial(run_cases, folder=folder), pieces):
            for each in found:
                if each.wrong:
                    print(f"WRONG: {each.command} {each.case}: {each.wrong}\n{each.message}", flush=True)
                yield each


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
