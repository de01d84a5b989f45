"""What native code prints to stdout and stderr, kept to be read and passed on afterwards."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Final

from evaltools.runtime.process.printed import bounded_text
from evaltools.text import printable_lines

_OWN_STDERR: Final = "/proc/self/fd/2"


class NativeMessages:
    """What was printed, once the block of :func:`native_messages` has ended; of a long text its head and its tail."""

    text = ""


@contextmanager
def native_messages() -> Iterator[NativeMessages]:
    """Collect what is printed to the descriptors 1 and 2 in a block, and print it to stderr at its end.

    Where both go to one file, as in child processes, it is read from there, so that nothing is lost in a crash.
    It holds for the whole process, so that other threads should not print meanwhile.
    """
    messages = NativeMessages()
    if _is_one_file():
        start = os.fstat(2).st_size
        try:
            yield messages
        finally:
            _flush_streams()
            messages.text = _read_from(start)
        return
    with tempfile.TemporaryFile() as file:
        _flush_streams()
        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield messages
        finally:
            _flush_streams()
            for descriptor, original in zip((1, 2), kept, strict=True):
                os.dup2(original, descriptor)
                os.close(original)
            messages.text = _pass_on(file)


def _is_one_file() -> bool:
    """Whether both descriptors write to the same file, which can be read again."""
    out, err = os.fstat(1), os.fstat(2)
    same = (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
    return same and stat.S_ISREG(err.st_mode) and os.access(_OWN_STDERR, os.R_OK)


def _read_from(start: int) -> str:
    with open(_OWN_STDERR, "rb") as file:
        return bounded_text(file, start)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _pass_on(file: IO[bytes]) -> str:
    text = bounded_text(file)
    os.write(2, printable_lines(text).encode())
    return text
