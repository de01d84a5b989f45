"""An observer for tests of evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evaltools.engine.ledger import Tally
from evaltools.result.result import Row
from evaltools.tasks.framework.observer import Observer


class Silent(Observer):
    """An observer that remembers what it was told; ``total`` and ``steps`` are those of all phases together."""

    def __init__(self) -> None:
        self.described: list[Row] = []
        self.phases: list[str] = []
        self.total = self.steps = self.all_measured = 0

    def opened(self, configurations: list[Row]) -> None:
        self.described = configurations

    @contextmanager
    def progress(self, phase: str, total: int) -> Iterator[Callable[[Tally], None]]:
        before = self.steps

        def step(tally: Tally) -> None:
            self.steps += 1
            assert tally.done == self.steps - before, "told after each step"

        self.phases.append(phase)
        self.total += total
        yield step

    def measured(self) -> None:
        self.all_measured += 1
