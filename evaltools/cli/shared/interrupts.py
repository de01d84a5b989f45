"""Ctrl-C, SIGTERM, SIGQUIT and the end of the terminal: heeded from a command's start, ignored while it writes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from evaltools.signals import INTERRUPTS


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
