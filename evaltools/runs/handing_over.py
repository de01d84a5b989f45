"""A request, or the words of a command, carried out by a process of its own on this computer."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
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
WITH_STDIN: Final = "with-stdin"
"""Has the process end when its stdin does: when whoever started it ends, however that happens."""
RECORDS_ONLY: Final = "records-only"
"""Has an evaluation end with its records."""
_SECONDS_TO_END: Final = 10.0
_SECONDS_BETWEEN_LOOKS: Final = 0.1


class Ended(Struct, frozen=True):
    """How a process ended: its code as :mod:`subprocess` has it, and what it printed."""

    code: int
    out: str
    err: str


class Start(Struct, frozen=True):
    """What a process is started with: which Python, in which environment; None is that of this process.

    ``on_line`` gets each line that it writes to stderr. ``records_only``: of an evaluation only the records count.
    """

    python: str = sys.executable
    environment: Mapping[str, str] | None = None
    on_line: Callable[[bytes], None] | None = None
    records_only: bool = False


START_HERE: Final = Start()


def run_in_own_process(asked: Request | Sequence[str], folder: Path, start: Start = START_HERE) -> Ended:
    """Carry out a request, or a command of evaltools by its words, in ``folder``, and wait for the end.

    With an error here the process ends: one with a request by itself when its stdin closes, others by a signal.
    """
    with tempfile.TemporaryDirectory(prefix="evaltools-") as scratch:
        out, err, file = (Path(scratch, name).absolute() for name in ("out", "err", "request.json"))
        if isinstance(asked, Request):
            file.write_bytes(to_bytes(asked))
            words, stdin = [_HANDED_OVER, str(file), WITH_STDIN], subprocess.PIPE
            words += [RECORDS_ONLY] if start.records_only else []
        else:
            words, stdin = ["evaltools.cli.main", *asked], subprocess.DEVNULL
        with open(out, "wb") as printed, open(err, "wb") as complaints:
            words = [start.python, "-c", _START, *words]
            environment = start.environment
            process = subprocess.Popen(
                words, cwd=folder, env=environment, stdin=stdin, stdout=printed, stderr=complaints
            )
            try:
                if start.on_line is not None:
                    _watch(process, err, start.on_line)
                process.wait()
            finally:
                _end(process)
        return Ended(process.returncode, _text(out), _text(err))


def _watch(process: subprocess.Popen[bytes], file: Path, on_line: Callable[[bytes], None]) -> None:
    """Hand on each line of a file that a process writes, until that ends."""
    with open(file, "rb") as written:
        rest = b""
        while True:
            has_ended = process.poll() is not None
            *lines, rest = (rest + written.read()).split(b"\n")
            for line in lines:
                on_line(line)
            if has_ended:
                return
            time.sleep(_SECONDS_BETWEEN_LOOKS)


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
