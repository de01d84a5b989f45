"""Keeps Ctrl-C away from native code that cannot be left half-way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Let a block finish before Ctrl-C takes effect; :class:`KeyboardInterrupt` is then raised at its end.

    An import of a native module that is interrupted fails with other errors, now and when it is tried again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if arrived and previous is not signal.SIG_IGN:
        raise KeyboardInterrupt
