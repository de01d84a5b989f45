"""A request handed to a process of its own."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import IO, Final

from evaltools.request import Request
from evaltools.runs.stored import HANDED_OVER, command_of, to_bytes

WITH_STDIN: Final = "with-stdin"
"""Tells the process to end when its stdin does: when whoever started it ends, however that happens."""


def start(request: Request, file: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start a process that carries a request out; ``file`` is where it is written for it, ``log`` gets its stderr."""
    file.write_bytes(to_bytes(request))
    return subprocess.Popen(
        command_of(HANDED_OVER, str(file), WITH_STDIN),
        cwd=request.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=log,
    )


def ending_in_words(code: int) -> str:
    """How a process ended, by its code as :mod:`subprocess` has it.

    >>> ending_in_words(2), ending_in_words(-9)
    ('exit code 2', 'ended by SIGKILL')
    """
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"
