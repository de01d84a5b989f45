"""What a process prints: written down, and read again, of which nobody knows how much it is."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import IO, Final

LONGEST_PART: Final = 1 << 18
"""How many bytes of the head, and as many of the tail, are read of a text."""


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
