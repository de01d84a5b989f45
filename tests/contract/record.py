"""Records cases of the contract again: ``python -m tests.contract.record [NAME ...]``, all of them without a name.

Cases on real data are recorded where ``EVALTOOLS_REALDATA`` names them.
"""

from __future__ import annotations

import os
import sys

from tests.conftest import QUIET_SYSTEM
from tests.contract.cases import CASES, REAL_DATA
from tests.contract.recording import RECORDINGS, recording_of


def main(names: list[str]) -> int:
    """Write the recordings of the cases named; returns the exit code."""
    known = {case.name: case for case in CASES}
    if unknown := set(names) - known.keys():
        print(f"no such case: {', '.join(sorted(unknown))}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    os.environ["COLUMNS"] = "120"
    os.environ["EVALTOOLS_SYSTEM"] = str(QUIET_SYSTEM)
    for name in names or known:
        if known[name].needs_real_data and not REAL_DATA.is_dir():
            print(f"{name}: left as it was, as EVALTOOLS_REALDATA names no real data", file=sys.stderr)
            continue
        (RECORDINGS / f"{name}.txt").write_text(recording_of(known[name]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
