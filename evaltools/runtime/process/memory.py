"""How much memory this process has had at its peak."""

from __future__ import annotations

import sys
from typing import Final

_BYTES_PER_KB: Final = 1024


def peak_memory_kb() -> int:
    """Largest resident memory of this process so far, in units of 1024 bytes; 0 where the platform does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // _BYTES_PER_KB if sys.platform == "darwin" else peak
