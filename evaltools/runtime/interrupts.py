"""Keeps Ctrl-C, and what else ends a command, away from native code that cannot be left half-way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from evaltools.signals import INTERRUPTS


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Let a block finish before Ctrl-C, or another signal that has a handler, takes effect; at its end that is called.

    An import of a native module that is interrupted fails with other errors, now and when it is tried again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def remember(number: int, _frame: FrameType | None) -> None:
        arrived.append(number)

    previous = {number: handler for number in INTERRUPTS if callable(handler := signal.getsignal(number))}
    for number in previous:
        signal.signal(number, remember)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    for number in arrived[:1]:
        signal.raise_signal(number)
