"""Progress of an evaluation in Python: none, a bar, or a function that is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from msgspec import Struct

from evaltools.engine.ledger import Tally
from evaltools.tasks.framework.observer import Observer


class Progress(Struct, frozen=True):
    """How far an evaluation is: ``done`` of ``total`` examples of a phase, of which ``failed`` failed.

    ``phase`` is empty for the evaluation itself.
    """

    phase: str
    done: int
    total: int
    failed: int


OnProgress = Callable[[Progress], object]


class _Shown(Observer):
    """A bar on stderr, or in the cell of a notebook, where ``progress`` is True, else a function that is called."""

    def __init__(self, progress: bool | OnProgress) -> None:
        self._progress = progress

    @contextmanager
    def progress(self, phase: str, total: int) -> Iterator[Callable[[Tally], None]]:
        """Show each step."""
        call = self._progress
        if callable(call):

            def step(tally: Tally) -> None:
                call(Progress(phase, tally.done, total, tally.failed_examples))

            yield step
            return
        with bar(phase or "examples", total) as update:
            yield lambda tally: update(tally.done)


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, or in the cell of a notebook; the function takes how many are done."""
    from rich.console import Console
    from rich.progress import Progress as RichProgress

    with RichProgress(console=Console(stderr=True), transient=True) as shown:
        step: Any = shown.add_task(what, total=total)
        yield lambda done: shown.update(step, completed=done)


@contextmanager
def shown_progress(
    progress: bool | Callable[[int, int], object] | None, what: str, total: int | None = None
) -> Iterator[Callable[[int, int], object]]:
    """What is called with how many of how many are done: nothing, a bar (True), or the function."""
    if callable(progress):
        yield progress
    elif progress:
        with ExitStack() as stack:
            bars: list[Callable[[int], None]] = []

            def on_step(done: int, of: int) -> None:
                if not bars:
                    bars.append(stack.enter_context(bar(what, total or of)))
                bars[0](done)

            yield on_step
    else:
        yield lambda _done, _total: None


def observer_of(progress: bool | OnProgress | None) -> Observer:
    """What shows an evaluation: nothing, a bar (True), or a function that is called after each example."""
    return _Shown(progress) if progress else Observer()
