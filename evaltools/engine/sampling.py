"""Looks at something from time to time, in a thread of its own."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import TracebackType
from typing import TypeVar

Own = TypeVar("Own", bound="Sampler")


class Sampler:
    """A context that takes a sample when it begins, one every ``between_s`` seconds, and one when it ends.

    ``between_s`` may change meanwhile. Where the system allows no more threads, there are the first and the last.
    """

    def __init__(self, name: str, between_s: float) -> None:
        self.between_s = between_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=name, daemon=True)

    def __enter__(self: Own) -> Own:
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Take the first sample, and go on."""
        self.sample()
        with suppress(RuntimeError):
            self._thread.start()

    def stop(self) -> None:
        """Take the last sample."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        self.sample()

    def sample(self) -> None:
        """Take a sample now."""
        raise NotImplementedError

    def _watch(self) -> None:
        while not self._end.wait(self.between_s):
            self.sample()
