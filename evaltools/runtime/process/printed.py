"""What native code prints: kept, of which nobody knows how much it is, read again, and passed on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from tempfile import TemporaryFile
from typing import Final

from evaltools.text import printable_lines

LONGEST_PART: Final = 1 << 18
"""How many bytes of the head, and as many of the tail, are kept of a text."""
_PIECE: Final = 1 << 20
_capture: int | None = None


class BoundedText:
    """A text that comes in pieces; of a long one its head, its tail, and how much is left out."""

    def __init__(self, longest_part: int = LONGEST_PART) -> None:
        self._longest = longest_part
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self._head, self._tail, self._left_out = bytearray(), bytearray(), 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        room = self._longest - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        too_long = len(self._tail) - self._longest
        if too_long > self._longest or (self._left_out and too_long > 0):
            self._left_out += too_long
            del self._tail[:too_long]

    def __str__(self) -> str:
        too_long = max(0, len(self._tail) - self._longest)
        left_out = self._left_out + too_long
        head, tail = self._head.decode("utf-8", "replace"), self._tail[too_long:].decode("utf-8", "replace")
        if not left_out:
            return (self._head + self._tail).decode("utf-8", "replace")
        return f"{head}\n... {left_out} bytes left out ...\n{tail}"


def flush_printed() -> None:
    """Write down what Python keeps back of what was printed here."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()


class NativeMessages:
    """What was printed, once the block of :func:`native_messages` has ended; of a long text its head and its tail."""

    text = ""


def capture_in(descriptor: int) -> None:
    """Let :func:`native_messages` use this file, which another process can read if this one crashes."""
    global _capture
    _capture = descriptor


@contextmanager
def native_messages() -> Iterator[NativeMessages]:
    """Collect what is printed to the descriptors 1 and 2 in a block, and print it to stderr at its end.

    It holds for the whole process, so that other threads should not print meanwhile.
    """
    messages = NativeMessages()
    with ExitStack() as stack:
        file = stack.enter_context(TemporaryFile()).fileno() if _capture is None else _capture
        flush_printed()
        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        for descriptor in (1, 2):
            os.dup2(file, descriptor)
        try:
            yield messages
        finally:
            flush_printed()
            for descriptor, original in zip((1, 2), kept, strict=True):
                os.dup2(original, descriptor)
                os.close(original)
            messages.text = text_of(file)
            os.write(2, printable_lines(messages.text).encode())
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)


def text_of(descriptor: int) -> str:
    """What stands in a file."""
    text, place = BoundedText(), 0
    while piece := os.pread(descriptor, _PIECE, place):
        text.add(piece)
        place += len(piece)
    return str(text)
