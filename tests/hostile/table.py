"""Prints what each misbehaviour of a delegate does at each moment: ``python -m tests.hostile.table [MOMENT ...]``."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.hostile.harm import MISBEHAVIOURS, MOMENTS, build_hostile_delegate, problems, run_cell


def main(moments: list[str]) -> int:
    """Print a line per run; the exit code is 1 where one did what must not be."""
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = build_hostile_delegate(folder)
        undisturbed = run_cell(library, "never", "sleep", folder)
        print("moment    misbehaviour  exit  seconds  parent MB  left  reason")
        for moment in moments or MOMENTS:
            for misbehaviour in MISBEHAVIOURS:
                cell = run_cell(library, moment, misbehaviour, folder)
                found = list(problems(cell, undisturbed))
                wrong += bool(found)
                print(
                    f"{moment:9} {misbehaviour:12} {cell.code:5} {cell.seconds:8.1f} {cell.parent_mb:10.0f} "
                    f"{len(cell.left):5}  {'WRONG: ' + '; '.join(found) if found else cell.reason[:110]}",
                    flush=True,
                )
    print(f"{wrong} of {len(moments or MOMENTS) * len(MISBEHAVIOURS)} did what must not be")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
