"""Carry out a request on the host, in a process of its own, to compare it with devices."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from evaltools.device.run.jobs import last_lines
from evaltools.errors import UsageError
from evaltools.request import Request
from evaltools.runs.stored import HANDED_OVER, command_of, to_bytes
from evaltools.task_kind import request_kind


class HostRun(Struct, frozen=True):
    """A request that the host carried out: its exit code, and what it printed to stdout."""

    code: int
    out: str


def carry_out_on_host(request: Request, good_codes: Collection[int]) -> HostRun:
    """Carry out a request, whose relative paths start at the working directory.

    Raises :class:`UsageError` with the last lines of stderr where the exit code is none of ``good_codes``.
    """
    with tempfile.TemporaryDirectory(prefix="evaltools-") as folder:
        file = Path(folder, "request.json")
        file.write_bytes(to_bytes(request))
        with subprocess.Popen(
            command_of(HANDED_OVER, str(file)), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace",
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate()
            except BaseException:
                process.terminate()
                process.communicate()
                raise
    if process.returncode not in good_codes:
        command = request_kind(request.task).command
        raise UsageError(
            f"what was to run on this computer, evaltools {command}, ended with exit code {process.returncode}: "
            f"{last_lines(err)}. Try that command here by itself"
        )
    return HostRun(process.returncode, out)
