"""An observer for tests of evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evaltools.report.result import ConfigurationResult


class Silent:
    """An observer that remembers what it was told."""

    def __init__(self) -> None:
        self.described: list[ConfigurationResult] = []
        self.total = self.steps = 0

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        self.described = configurations

    @contextmanager
    def progress(self, total: int) -> Iterator[Callable[[int], None]]:
        def step(_failed: int) -> None:
            self.steps += 1

        self.total = total
        yield step
