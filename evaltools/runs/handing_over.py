"""A request, or the words of a command, carried out by a process of its own on this computer."""

from __future__ import annotations

import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from msgspec import Struct

from evaltools.request import Request
from evaltools.runs.stored import HANDED_OVER, command_of, to_bytes

WITH_STDIN: Final = "with-stdin"
"""Has the process end when its stdin does: when whoever started it ends, however that happens."""
_REQUEST: Final = "request.json"
_SECONDS_TO_END: Final = 10.0


class Ended(Struct, frozen=True):
    """How a process ended: its code as :mod:`subprocess` has it, and what it printed."""

    code: int
    out: str
    err: str


def start(
    asked: Request | Sequence[str],
    folder: Path,
    place: Path,
    err: IO[bytes],
    out: IO[bytes] | int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a process in ``folder`` that carries out a request, or a command of evaltools by its words.

    The request is written for it into the folder ``place``. ``err`` and ``out`` get its stderr and stdout.
    """
    if not isinstance(asked, Request):
        words = command_of("evaltools.cli.main", *asked)
        return subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
    file = (place / _REQUEST).absolute()
    file.write_bytes(to_bytes(asked))
    words = command_of(HANDED_OVER, str(file), WITH_STDIN)
    return subprocess.Popen(words, cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=err)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process: one with a request ends by itself when its stdin closes; all are killed that do not end."""
    if process.stdin is None:
        process.terminate()
    close_stdin(process)
    try:
        process.wait(_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def close_stdin(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe to a process, which has it end."""
    if process.stdin is not None:
        process.stdin.close()


def carry_out(asked: Request | Sequence[str], folder: Path) -> Ended:
    """Carry out a request, or a command, in ``folder`` and wait for the end; with an error here the process ends."""
    with tempfile.TemporaryDirectory(prefix="evaltools-") as scratch:
        place = Path(scratch)
        out, err = place / "out", place / "err"
        with open(out, "wb") as printed, open(err, "wb") as complaints:
            process = start(asked, folder, place, complaints, printed)
            try:
                process.wait()
            finally:
                end(process)
        return Ended(process.returncode, _text(out), _text(err))


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
