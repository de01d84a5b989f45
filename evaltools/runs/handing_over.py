"""A request, or the words of a command, carried out by a process of its own on this computer."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.engine.run_folder import encode
from evaltools.request import Request
from evaltools.request.plain import to_plain

_HANDED_OVER: Final = "evaltools.cli.runs.handed_over"
"""The program that carries out a request in a file."""
_START: Final = (
    "import sys; sys.path[:1] = filter(None, sys.path[:1]); del sys.argv[0]; import runpy; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)
"""Runs a module as ``python -m`` does, but imports nothing from its folder: a ``random.py`` there is not ours."""
_WITH_STDIN: Final = "with-stdin"
"""Has the process end when its stdin does: when whoever started it ends, however that happens."""
_SECONDS_TO_END: Final = 10.0


class Ended(Struct, frozen=True):
    """How a process ended: its code as :mod:`subprocess` has it, and what it printed."""

    code: int
    out: str
    err: str


def run_in_own_process(asked: Request | Sequence[str], folder: Path) -> Ended:
    """Carry out a request, or a command of evaltools by its words, in ``folder``, and wait for the end.

    With an error here the process ends: one with a request by itself when its stdin closes, others by a signal.
    """
    with tempfile.TemporaryDirectory(prefix="evaltools-") as scratch:
        out, err, file = (Path(scratch, name).absolute() for name in ("out", "err", "request.json"))
        if isinstance(asked, Request):
            file.write_bytes(to_bytes(asked))
            words, stdin = [_HANDED_OVER, str(file), _WITH_STDIN], subprocess.PIPE
        else:
            words, stdin = ["evaltools.cli.main", *asked], subprocess.DEVNULL
        with open(out, "wb") as printed, open(err, "wb") as complaints:
            words = [sys.executable, "-c", _START, *words]
            process = subprocess.Popen(words, cwd=folder, stdin=stdin, stdout=printed, stderr=complaints)
            try:
                process.wait()
            finally:
                _end(process)
        return Ended(process.returncode, _text(out), _text(err))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process, by killing it where it does not end otherwise."""
    if process.stdin is None:
        process.terminate()
    else:
        process.stdin.close()
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


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


def to_bytes(request: Request) -> bytes:
    """A request as it is handed to another process, which runs ``_HANDED_OVER``."""
    return encode(to_plain(request)).encode()
