"""The signals that end a command: Ctrl-C, SIGTERM, SIGQUIT and the end of the terminal.

They are heeded from a command's start, ignored while it writes, and kept away from native code that cannot be left
half-way.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

ENDINGS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name))
"""Those beside Ctrl-C; Windows has the first alone."""
INTERRUPTS: Final = (signal.SIGINT, *ENDINGS)
Handler = Callable[[int, FrameType | None], Any]


def heed_interrupts() -> None:
    """Have all of them interrupt as Ctrl-C does; one that is ignored, as with ``nohup``, stays ignored."""
    for number in INTERRUPTS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)


def ignore_interrupts() -> None:
    """Ignore all of them, until :func:`interrupts_restored` ends; until then the result is written and shown."""
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interrupts_restored() -> Iterator[None]:
    """A context at whose end all signals have the handlers that they had before."""
    before = {number: signal.getsignal(number) for number in INTERRUPTS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Let a block finish before Ctrl-C, or another signal that has a handler, takes effect; at its end that is called.

    An import of a native module that is interrupted fails with other errors, now and when it is tried again.
    """
    arrived: list[int] = []
    with _handled_by(lambda number, _frame, _handler: arrived.append(number)):
        yield
    for number in arrived[:1]:
        signal.raise_signal(number)


@contextmanager
def noted_interrupts() -> Iterator[Sequence[int]]:
    """A context in which Ctrl-C interrupts nothing: it yields the signals that would have done so until now.

    A ``KeyboardInterrupt`` that is raised in it by other means ends it, and counts as Ctrl-C.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None, handler: Handler) -> None:
        try:
            handler(number, frame)
        except KeyboardInterrupt:
            noted.append(number)

    with _handled_by(note):
        try:
            yield noted
        except KeyboardInterrupt:
            noted.append(signal.SIGINT)


@contextmanager
def _handled_by(handle: Callable[[int, FrameType | None, Handler], None]) -> Iterator[None]:
    """A context in which ``handle`` is called in the place of each handler; only the main thread has signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: handler for number in INTERRUPTS if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda number, frame: handle(number, frame, before[number]))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
