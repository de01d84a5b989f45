"""What is shown while an evaluation goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evaltools.engine.ledger import Tally
from evaltools.result.result import Row


class Observer:
    """Its methods are called while an evaluation goes on, for instance to show its progress; these do nothing."""

    def opened(self, configurations: list[Row]) -> None:
        """Called once with what each configuration runs on, before anything is measured."""

    @contextmanager
    def progress(self, phase: str, total: int) -> Iterator[Callable[[Tally], None]]:
        """A context around a phase of ``total`` steps; it yields a function that takes the counts of finished steps."""
        yield lambda _tally: None

    def message(self, text: str) -> None:
        """Called with what is worth knowing before the result is there."""

    def measured(self) -> None:
        """Called when everything is measured. From here on Ctrl-C would lose the result."""


@contextmanager
def counted(observer: Observer, phase: str, total: int) -> Iterator[Callable[[], None]]:
    """A context that yields a function to call after each of ``total`` steps, none of which can fail."""
    tally = Tally()

    def step() -> None:
        tally.done += 1
        on_progress(tally)

    with observer.progress(phase, total) as on_progress:
        yield step
