"""What a system does that has no more of something."""

from __future__ import annotations

import threading


def no_thread(_thread: threading.Thread) -> None:
    """In the place of a thread's ``start``."""
    raise RuntimeError("can't start new thread")
