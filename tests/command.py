"""Runs the command line as a user does, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Completed:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str


def evaltools(*arguments: str, cwd: Path | None = None, environment: dict[str, str] | None = None) -> Completed:
    """Run ``evaltools`` with the arguments given."""
    completed = subprocess.run(
        [sys.executable, "-m", "evaltools.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
    )
    return Completed(completed.returncode, completed.stdout, completed.stderr)
