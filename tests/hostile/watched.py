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
    """The longest case so far, and the most resident memory of this process in any of them."""

    def __init__(self) -> None:
        self.cases = 0
        self.longest_s = self.peak_mb = 0.0
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
        self.peak_mb = max(self.peak_mb, self._peak_mb())
        if took > self.longest_s:
            self.longest_s, self.longest = took, what

    def require_little_memory(self) -> None:
        """All cases are done; what they took is printed for whoever wants to know."""
        print(f"{self.cases} cases, {self.peak_mb:.0f} MB at most, the longest {self.longest_s:.1f} s ({self.longest})")
        assert self.peak_mb < MOST_MB

    def _peak_mb(self) -> float:
        """Of resident memory; 0 where the platform does not say."""
        try:
            found = re.search(r"VmHWM:\s*(\d+) kB", (_OWN / "status").read_text())
        except OSError:
            return 0.0
        return int(found[1]) / 1024 if found else 0.0
