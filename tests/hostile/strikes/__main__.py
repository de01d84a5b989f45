"""Prints what is done where one process of a run is killed or stopped: ``python -m tests.hostile.strikes``."""

from __future__ import annotations

import sys
import tempfile
from itertools import product
from pathlib import Path

from tests.hostile.strikes.runs import COMMANDS, ROLES, SIGNALS, Case, problems, strike


def main() -> int:
    """Print a line per run; the exit code is 1 where one did what must not be."""
    wrong = 0
    print("command         role     signal   exit  seconds  what was said")
    with tempfile.TemporaryDirectory() as folder:
        for case in (case for words in product(COMMANDS, ROLES, SIGNALS) if (case := Case(*words)).can_be):
            struck = strike(case, Path(folder))
            found = list(problems(struck))
            wrong += bool(found)
            said = f"WRONG: {'; '.join(found)}" if found else struck.told[:110]
            seconds = f"{struck.code:5} {struck.seconds:8.1f}"
            print(f"{case.command:15} {case.role:8} {case.signal:7} {seconds}  {said}", flush=True)
    print(f"{wrong} did what must not be")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
