"""What native code prints: in a child to a file that its parent can read, too, whatever becomes of the child."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryFile
from typing import Final

from evaltools.text import printable_lines

LONGEST_PART: Final = 1 << 18
"""How many bytes of the head, and as many of the tail, are read of a text."""
_STREAMS: Final = (1, 2)
_own_file: int | None = None


def print_to(descriptor: int) -> None:
    """Let this process, a child, print to a file from now on."""
    global _own_file
    for stream in _STREAMS:
        os.dup2(descriptor, stream)
    _own_file = descriptor


def text_of(descriptor: int, start: int = 0) -> str:
    """What stands in a file from some place on: of a long text its head, its tail, and how much is left out."""
    size = max(0, os.fstat(descriptor).st_size - start)
    left_out = size - 2 * LONGEST_PART
    if left_out <= 0:
        return os.pread(descriptor, size, start).decode("utf-8", "replace")
    head, tail = (
        os.pread(descriptor, LONGEST_PART, place).decode("utf-8", "replace")
        for place in (start, start + size - LONGEST_PART)
    )
    return f"{head}\n... {left_out} bytes left out ...\n{tail}"


def flush_printed() -> None:
    """Write down what Python keeps back of what was printed here."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()


class NativeMessages:
    """What was printed, once the block of :func:`native_messages` has ended."""

    text = ""


@contextmanager
def native_messages() -> Iterator[NativeMessages]:
    """Collect what is printed to the descriptors 1 and 2 in a block.

    It holds for the whole process, so that other threads should not print meanwhile.
    """
    messages = NativeMessages()
    with ExitStack() as stack:
        file = stack.enter_context(_streams_in_a_file()) if _own_file is None else _own_file
        flush_printed()
        start = os.fstat(file).st_size
        try:
            yield messages
        finally:
            flush_printed()
            messages.text = text_of(file, start)


@contextmanager
def _streams_in_a_file() -> Iterator[int]:
    """A context in which this process prints to a file, what stands in which goes to stderr at its end."""
    with TemporaryFile() as file:
        flush_printed()
        kept = [os.dup(stream) for stream in _STREAMS]
        for stream in _STREAMS:
            os.dup2(file.fileno(), stream)
        try:
            yield file.fileno()
        finally:
            for stream, original in zip(_STREAMS, kept, strict=True):
                os.dup2(original, stream)
                os.close(original)
            os.write(2, printable_lines(text_of(file.fileno())).encode())
