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
    """The longest case so far, and by how much the resident memory of this process grew in any of them."""

    def __init__(self) -> None:
        self.cases = 0
        self.longest_s = self.peak_mb = 0.0
        self._before_mb = self._memory_mb("VmRSS")
        self.longest = ""

    @contextmanager
    def case(self, what: str) -> Iterator[None]:
        """One case, which must end in time."""
        with suppress(OSError):  # where the platform has it, the peak begins anew
            (_OWN / "clear_refs").write_text("5")
        start = time.monotonic()
        yield
        took = time.monotonic() - start
        assert took < MOST_S, what
        self.cases += 1
        self.peak_mb = max(self.peak_mb, self._memory_mb("VmHWM") - self._before_mb)
        if took > self.longest_s:
            self.longest_s, self.longest = took, what

    def require_little_memory(self) -> None:
        """All cases are done; what they took is printed for whoever wants to know."""
        took = f"the longest {self.longest_s:.1f} s ({self.longest})"
        print(f"{self.cases} cases, {self.peak_mb:.0f} MB more at most, {took}")
        assert self.peak_mb < MOST_MB

    def _memory_mb(self, name: str) -> float:
        """Resident memory, its peak or now; 0 where the platform does not say."""
        try:
            found = re.search(rf"{name}:\s*(\d+) kB", (_OWN / "status").read_text())
        except OSError:
            return 0.0
        return int(found[1]) / 1024 if found else 0.0
