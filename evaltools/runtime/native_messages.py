"""What native code prints to stdout and stderr, kept to be read and passed on afterwards."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


class NativeMessages:
    """What was printed; complete once the block of :func:`native_messages` has ended."""

    text = ""


@contextmanager
def native_messages() -> Iterator[NativeMessages]:
    """Collect what is printed to the descriptors 1 and 2 in a block, and print it to stderr at its end.

    It holds for the whole process, so that other threads should not print meanwhile.
    """
    messages = NativeMessages()
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


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _pass_on(file: IO[bytes]) -> str:
    file.seek(0)
    content = file.read()
    os.write(2, content)
    return content.decode("utf-8", "replace")
