"""Printing to stdout and stderr, whoever reads them or has closed them; needs nothing but the standard library."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from evaltools.text import columns_of, wrapped


def complain(message: str) -> None:
    """Print a message to stderr; control characters from elsewhere are shown, not sent to the terminal.

    On a terminal its lines wrap at spaces.
    """
    _write(sys.stderr, wrapped("".join(_visible(character) for character in message), columns_of(sys.stderr)))


def say(text: str) -> bool:
    """Print to stdout; False where it cannot be written. A reader that has seen enough is no error."""
    return _write(sys.stdout, text)


def tell(text: str) -> bool:
    """The same of sentences, whose lines wrap at spaces on a terminal."""
    return say(wrapped(text, columns_of(sys.stdout)))


def stdout_is_terminal() -> bool:
    """Whether a person reads stdout as it comes, and no program does."""
    return sys.stdout is not None and sys.stdout.isatty()


def _visible(character: str) -> str:
    return character if character.isprintable() or character == "\n" else repr(character)[1:-1]


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
    """Let everything printed from now on vanish, so that the interpreter does not fail at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
