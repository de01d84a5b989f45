"""Measures how the time from the command to the first finished example is spent."""

from __future__ import annotations

import os
import time
from pathlib import Path

STARTING = "process"
CHECKS = "checks"
OPENING = "opening"
PROBING = "probing"
FIRST_TURN = "first_turn"


class Startup:
    """Measures phases that follow each other, in seconds; the first one began with the process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()
        age = _age_of_process()
        if age is not None:
            self.seconds[STARTING] = age

    def mark(self, phase: str) -> None:
        """End a phase now."""
        now = time.monotonic()
        self.seconds[phase] = now - self._last
        self._last = now

    def mark_once(self, phase: str) -> None:
        """End a phase now, unless it has ended before."""
        if phase not in self.seconds:
            self.mark(phase)


def _age_of_process() -> float | None:
    """Seconds since this process was started, where the system tells (Linux)."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
