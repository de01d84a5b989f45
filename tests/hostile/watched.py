"""What hostile cases cost this process: none takes long, and all together take little memory."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

MOST_MB: Final = 500
MOST_S: Final = 60
_OWN: Final = Path("/proc/self")


class Watch:
    """Counts cases, each of which must end in time, and by how much this process grew in any of them."""

    def __init__(self) -> None:
        self.cases = 0
        self._peak_mb = 0.0
        self._before_mb = _memory_mb("VmRSS")

    @contextmanager
    def case(self, what: str) -> Iterator[None]:
        """One case, which must end in time."""
        with suppress(OSError):  # where the platform has it, the peak begins anew
            (_OWN / "clear_refs").write_text("5")
        start = time.monotonic()
        yield
        assert time.monotonic() - start < MOST_S, what
        self.cases += 1
        self._peak_mb = max(self._peak_mb, _memory_mb("VmHWM") - self._before_mb)

    def require_little_memory(self) -> None:
        """All cases are done."""
        assert self._peak_mb < MOST_MB


def _memory_mb(name: str) -> float:
    """Resident memory, its peak or now; 0 where the platform does not say."""
    try:
        found = re.search(rf"{name}:\s*(\d+) kB", (_OWN / "status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0
