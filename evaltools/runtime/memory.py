"""How much memory a process has, and how much it may have."""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

MOST_OF_MEMORY: Final = 0.75
"""The share of the machine's memory that one process with native code may have."""
_BYTES_PER_KB: Final = 1024
_LIMITS_OF_CONTAINERS: Final = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def most_memory() -> int:
    """The bytes that a child may have: a share of the machine's memory, or of its container's; 0 where that is unknown.

    Without it, a delegate that leaks takes what others need, and the system ends whom it likes.
    """
    if sys.platform != "linux":
        return 0
    found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for file in _LIMITS_OF_CONTAINERS:
        with suppress(OSError, ValueError):  # there is none, or it says "max"
            found.append(int(Path(file).read_text()))
    return max(0, int(MOST_OF_MEMORY * min(found)))


def memory_of(process_id: int) -> int:
    """The bytes that a process has in memory without those of files, such as its model; 0 where it has ended."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{process_id}/statm").read_text().split())
    except (OSError, ValueError):
        return 0
    return (resident - shared) * os.sysconf("SC_PAGE_SIZE")


def peak_memory_kb() -> int:
    """Largest resident memory of this process so far, in units of 1024 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // _BYTES_PER_KB if sys.platform == "darwin" else peak
