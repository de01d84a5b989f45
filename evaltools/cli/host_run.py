"""The same command on this computer, in a process of its own, to be compared with devices."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evaltools.cli.device_jobs import last_lines
from evaltools.errors import UsageError


@dataclass(frozen=True)
class HostRun:
    """A command that ended here: its exit code, and what it printed to stdout."""

    code: int
    out: str


def run_here(words: Sequence[str], good_codes: Collection[int]) -> HostRun:
    """Run an evaltools command to its end.

    Raises :class:`UsageError` with its last lines where it ends with another exit code.
    """
    command = [sys.executable, "-m", "evaltools.cli.main", *words]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        errors="replace",
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate()
        except BaseException:
            process.terminate()
            process.communicate()
            raise
    if process.returncode not in good_codes:
        raise UsageError(
            f"what was to run on this computer, evaltools {words[0]}, ended with exit code {process.returncode}: "
            f"{last_lines(err)}. Try that command here by itself"
        )
    return HostRun(process.returncode, out)
