"""The memory of this process, in units of 1024 bytes.

What a peak means depends on how the process began. On Linux, measured and as the kernel has it (``dup_mm``,
``exec_mmap`` and ``vfork``):

========================================  =================================  ======================================
this process was                          ``ru_maxrss`` starts with          ``VmHWM`` starts with
========================================  =================================  ======================================
forked, as by a server of children        what the parent held at that time  the same, which this process does hold
forked, then another program was loaded   what the parent held at that time  nothing
started by ``posix_spawn`` or ``vfork``   the parent's peak                  nothing
========================================  =================================  ======================================

So ``VmHWM`` is this process's own. In a child forked from a server it includes the pages it shares with the server,
Python and what the server had imported, as resident memory does too: only what is added to the peak at the start is
the model's. Growth of ``ru_maxrss`` is 0 until the memory of somebody else is exceeded.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Final

import psutil

from evaltools.errors import UsageError
from evaltools.runtime.process.isolated import peak_memory_kb

_BYTES_PER_KB: Final = 1024
_STATUS: Final = Path("/proc/self/status")
_OWN_PEAK: Final = "VmHWM:"


def resident_kb() -> int | None:
    """Memory that is in RAM now, pages shared with other processes included; None where the platform does not say.

    ``VmRSS`` of Linux, the working set of Windows.
    """
    try:
        return int(psutil.Process().memory_info().rss // _BYTES_PER_KB)
    except (OSError, psutil.Error):
        return None


def anonymous_kb() -> int | None:
    """Of the memory in RAM, what belongs to no file and is not shared; None on other platforms than Linux.

    As the native tool has it: resident minus shared pages of ``/proc/self/statm``, which is ``RssAnon``.
    """
    try:
        memory = psutil.Process().memory_info()
    except (OSError, psutil.Error):
        return None
    shared = getattr(memory, "shared", None)
    return None if shared is None else int((memory.rss - shared) // _BYTES_PER_KB)


def peak_kb() -> int | None:
    """The largest resident memory of this process so far; None where the platform does not say.

    ``VmHWM`` on Linux, so that it is never that of the process that started this one, as ``ru_maxrss`` may be.
    """
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        lines = []
    own = [int(line.split()[1]) for line in lines if line.startswith(_OWN_PEAK)]
    return own[0] if own else peak_memory_kb() or None


class PeakMonitor:
    """Looks at the resident memory at the start, then every ``interval_ms`` from a thread, and at the stop.

    ``peak_kb`` is the largest value seen, None where the platform does not say; a shorter peak is not seen.
    Raises :class:`UsageError` for an interval that is not positive. It can be started once.

    >>> monitor = PeakMonitor(interval_ms=10)
    >>> monitor.start()
    >>> work = bytes(1000)
    >>> monitor.stop()
    >>> monitor.peak_kb is None or monitor.peak_kb > 1000
    True
    """

    def __init__(self, interval_ms: int = 50) -> None:
        if interval_ms <= 0:
            raise UsageError(f"memory cannot be looked at every {interval_ms} ms; give an interval of 1 ms or more")
        self.peak_kb: int | None = None
        self._interval_s: Final = interval_ms / 1000
        self._ended: Final = threading.Event()
        self._thread: Final = threading.Thread(target=self._watch, name="peak memory", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._look()
        self._thread.start()

    def stop(self) -> None:
        """Look once more, and no longer."""
        self._ended.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._ended.wait(self._interval_s):
            self._look()

    def _look(self) -> None:
        now = resident_kb()
        if now is not None:
            self.peak_kb = max(now, self.peak_kb or 0)
