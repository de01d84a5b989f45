"""Ctrl-C, SIGTERM and the end of the terminal, while something is measured and while it is written."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_ENDINGS: Final = (signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))
_INTERRUPTS: Final = (signal.SIGINT, *_ENDINGS)


def ignore_interrupts() -> None:
    """Ignore Ctrl-C and SIGTERM, until :func:`interrupts_restored` ends; until then the result is written and shown."""
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def interrupts_restored() -> Iterator[None]:
    """A context in which SIGTERM and the end of the terminal interrupt as Ctrl-C does.

    At its end, all signals have the handlers that they had before. A signal that is ignored, as with ``nohup``, stays
    ignored.
    """
    before = {number: signal.getsignal(number) for number in _INTERRUPTS}
    for number in _ENDINGS:
        if before[number] is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
