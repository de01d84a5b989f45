"""What processes and native code print: kept, read again, of which nobody knows how much it is, and passed on."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final

from evaltools.text import printable_lines

LONGEST_PART: Final = 1 << 18
"""How many bytes of the head, and as many of the tail, are read of a text."""
_OWN_STDERR: Final = "/proc/self/fd/2"


def flush_printed() -> None:
    """Write down what Python keeps back of what was printed here."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()


def bounded_text(file: IO[bytes], start: int = 0, longest_part: int = LONGEST_PART) -> str:
    """What stands in a file from a place on; of a long text its head, its tail, and how much is left out."""
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    if size <= 2 * longest_part:
        return file.read(max(0, size)).decode("utf-8", "replace")
    head = file.read(longest_part).decode("utf-8", "replace")
    file.seek(start + size - longest_part)
    tail = file.read(longest_part).decode("utf-8", "replace")
    return f"{head}\n... {size - 2 * longest_part} bytes left out ...\n{tail}"


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
