"""How busy other programs keep the machine while something is measured."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Final

import psutil


class OtherPrograms:
    """Measures from now on what other programs use; processes that this one started count as its own."""

    def __init__(self) -> None:
        self._began: Final = time.monotonic()
        self._others_s: Final = _others_s()

    def cores(self) -> float | None:
        """How many cores others used until now, on average; None where the platform does not say."""
        now, elapsed = _others_s(), time.monotonic() - self._began
        if now is None or self._others_s is None or elapsed <= 0:
            return None
        return max(0.0, (now - self._others_s) / elapsed)


def _others_s() -> float | None:
    """Seconds of all CPUs that others worked since the machine's start, but for a constant."""
    try:
        times = psutil.cpu_times()
        own = psutil.Process()
        processes = [own, *own.children(recursive=True)]
    except (psutil.Error, OSError):
        return None
    worked = times.user + times.system + getattr(times, "nice", 0.0) + getattr(times, "steal", 0.0)
    mine = 0.0
    for process in processes:
        with suppress(psutil.Error):
            used = process.cpu_times()
            mine += used.user + used.system + used.children_user + used.children_system
    return worked - mine
