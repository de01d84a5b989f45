"""Repeats an action while a device is away for a moment; and waits in a way that can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from evaltools.device.adb.errors import MAY_PASS, DeviceStopped

Found = TypeVar("Found")

_BETWEEN_TRIES_S: Final = 1.0


class Reconnecting(Protocol):
    """A client that can bring a device back."""

    def reconnect(self, serial: str) -> None:
        """Try once to bring it back."""


def patiently(
    adb: Reconnecting, serial: str, act: Callable[[], Found], patience_s: float, stop: threading.Event | None = None
) -> Found:
    """Do ``act``, again and again while the device or the adb server is away; between the tries it tries to reconnect.

    ``patience_s`` is the number of seconds, from the first failure on, after which the last error is raised. It does
    not interrupt a try, and 0 means one try. ``act`` must be repeatable: it may have been done although its answer was
    lost. Raises :class:`DeviceStopped` between two tries where ``stop`` is set.
    """
    limit: float | None = None
    while True:
        stop_if_asked(serial, stop)
        try:
            return act()
        except MAY_PASS:
            now = time.monotonic()
            limit = now + patience_s if limit is None else limit
            if now >= limit:
                raise
            pause = min(_BETWEEN_TRIES_S, limit - now)
        rest(pause, stop)
        stop_if_asked(serial, stop)
        adb.reconnect(serial)


def stop_if_asked(serial: str, stop: threading.Event | None) -> None:
    """Raise :class:`DeviceStopped` where ``stop`` is set.

    >>> event = threading.Event()
    >>> stop_if_asked("R58M", event)
    >>> event.set()
    >>> stop_if_asked("R58M", event)
    Traceback (most recent call last):
    evaltools.device.adb.errors.DeviceStopped: R58M: stopped as asked; run it again to go on
    """
    if stop is not None and stop.is_set():
        raise DeviceStopped(f"{serial}: stopped as asked; run it again to go on", serial)


def rest(seconds: float, stop: threading.Event | None = None) -> None:
    """Wait, at most until ``stop`` is set."""
    if stop is None:
        time.sleep(seconds)
    else:
        stop.wait(seconds)
