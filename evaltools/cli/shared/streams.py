"""Printing to stdout and stderr, whoever reads them or has closed them; needs nothing but the standard library."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from evaltools.text import columns_of, printable, printable_lines, wrapped


def complain(message: str) -> None:
    """Print a message to stderr; control characters from elsewhere are shown, not sent to the terminal.

    On a terminal its lines wrap at spaces.
    """
    _write(sys.stderr, wrapped(printable_lines(message), columns_of(sys.stderr)))


def command(line: str) -> None:
    """Print a line to stderr that is a command to whoever runs this, as GitHub Actions."""
    _write(sys.stderr, printable(line))


def say(text: str) -> bool:
    """Print to stdout, as :func:`complain` does; returns False where it cannot be written.

    A reader that has closed the pipe is not an error.
    """
    return _write(sys.stdout, printable_lines(text))


def say_wrapped(text: str) -> bool:
    """Print sentences to stdout as :func:`say` does, with lines that wrap at spaces on a terminal."""
    return say(wrapped(text, columns_of(sys.stdout)))


def stdout_is_terminal() -> bool:
    """Whether stdout is a terminal, so that a person reads it and not a program."""
    return sys.stdout is not None and sys.stdout.isatty()


def _write(stream: TextIO | None, text: str) -> bool:
    if stream is None:
        return True
    try:
        print(text, file=stream, flush=True)
    except BrokenPipeError:
        discard(stream)
    except OSError:
        discard(stream)
        return False
    return True


def discard(stream: TextIO) -> None:
    """Discard everything that is printed from now on, so that the interpreter does not fail when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
