"""What every evaluation has in common."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from evaltools.report.result import ConfigurationResult


class Observer(Protocol):
    """Who wants to know how an evaluation goes."""

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        """Called once with what each configuration runs on, before anything is measured."""

    def progress(self, total: int) -> AbstractContextManager[Callable[[int], None]]:
        """Entered around the measurements; what it yields is called after each step with the failed examples so far."""
