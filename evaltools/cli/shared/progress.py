"""Progress on stderr: a bar with rate and remaining time on a terminal, lines of text or JSON elsewhere."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.engine.ledger import Tally

_SECONDS_BETWEEN_LINES: Final = 10.0
_SECONDS_BETWEEN_OBJECTS: Final = 1.0
Update = Callable[["Tally"], None]


class StepPace(Struct, frozen=True):
    """How fast the steps of this run are done; ``rate`` per second, None until two were seen."""

    done: int
    total: int
    rate: float | None

    @property
    def seconds_left(self) -> float | None:
        """At this rate, None where that is not known."""
        return (self.total - self.done) / self.rate if self.rate else None


class Stopwatch:
    """Measures the pace from the first steps on. Steps that an earlier run did do not count."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._start = time.perf_counter()
        self._before: int | None = None

    def pace(self, done: int) -> StepPace:
        """The pace after ``done`` steps."""
        elapsed = time.perf_counter() - self._start
        if self._before is None:
            self._before = done if done > 1 else 0
        new = done - self._before
        return StepPace(done, self._total, new / elapsed if new > 0 and elapsed > 0 else None)


@contextmanager
def show_progress(phase: str, total: int, console: Console, style: str = "auto") -> Iterator[Update]:
    """A context that yields a function which takes the counts after each step.

    ``style`` is the value of ``--progress``.
    """
    if style == "none":
        yield lambda _tally: None
    elif style == "json":
        yield _every(_SECONDS_BETWEEN_OBJECTS, total, lambda pace, tally: _print_object(phase, pace, tally, console))
    elif style == "lines" or not console.is_terminal:
        yield _every(_SECONDS_BETWEEN_LINES, total, lambda pace, tally: _print_line(phase, pace, tally, console))
    else:
        with _bar(phase, total, console) as update:
            yield update


@contextmanager
def _bar(phase: str, total: int, console: Console) -> Iterator[Update]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # only a terminal has bars

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.fields[failed]}"),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        bar = progress.add_task(phase, total=total, rate="", left="", failed="")
        stopwatch = Stopwatch(total)

        def update(tally: Tally) -> None:
            pace = stopwatch.pace(tally.done)
            rate = f"{pace.rate:.1f}/s" if pace.rate else ""
            progress.update(bar, completed=tally.done, rate=rate, left=_left(pace), failed=_failures(tally))

        yield update


def _every(seconds: float, total: int, show: Callable[[StepPace, Tally], None]) -> Update:
    """Show the first step after so many seconds, then one each time so many have passed, and the last step."""
    stopwatch, last = Stopwatch(total), time.perf_counter()

    def update(tally: Tally) -> None:
        nonlocal last
        pace = stopwatch.pace(tally.done)
        if tally.done < total and time.perf_counter() - last < seconds:
            return
        last = time.perf_counter()
        show(pace, tally)

    return update


def _print_line(phase: str, pace: StepPace, tally: Tally, console: Console) -> None:
    percent = 100 * pace.done // max(1, pace.total)
    parts = [f"{phase or 'evaluated'}{':' * bool(phase)} {pace.done} of {pace.total} ({percent} %)"]
    if pace.rate:
        parts += [f"{pace.rate:.1f}/s", _left(pace)]
    console.print(", ".join([*parts, *([_failures(tally)] if _failures(tally) else [])]))


def _print_object(phase: str, pace: StepPace, tally: Tally, console: Console) -> None:
    fields = {
        "phase": phase or "evaluation",
        "done": pace.done,
        "total": pace.total,
        "per_second": pace.rate,
        "seconds_left": pace.seconds_left,
        "failed_examples": tally.failed_examples,
        "failed": tally.failed,
    }
    console.out(json.dumps(fields), highlight=False)


def _left(pace: StepPace) -> str:
    return f"{pace.seconds_left:.0f} s left" if pace.seconds_left is not None else ""


def _failures(tally: Tally) -> str:
    """The number of failed examples; and by configuration, unless all failed alike."""
    if not tally.failed_examples:
        return ""
    named = [f"{name} {count}" for name, count in tally.failed.items() if count]
    return f"{tally.failed_examples} failed ({', '.join(named)})" if named else f"{tally.failed_examples} failed"
