"""Progress on stderr: a bar with rate and remaining time on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

_SECONDS_BETWEEN_LINES: Final = 10.0


@contextmanager
def show_progress(total: int, console: Console) -> Iterator[Callable[[int], None]]:
    """Yields a function to call after each example with the number of failed examples so far."""
    if not console.is_terminal:
        yield _plain_lines(total, console)
        return
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[failed]}"),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        bar = progress.add_task("", total=total, rate="", failed="")
        start = time.perf_counter()

        def advance(failed_examples: int) -> None:
            done = int(progress.tasks[0].completed) + 1
            rate = f"{done / (time.perf_counter() - start):.1f}/s"
            failed = f"{failed_examples} failed" if failed_examples else ""
            progress.update(bar, advance=1, rate=rate, failed=failed)

        yield advance


def _plain_lines(total: int, console: Console) -> Callable[[int], None]:
    start = last = time.perf_counter()
    done = 0

    def advance(failed_examples: int) -> None:
        nonlocal last, done
        done += 1
        now = time.perf_counter()
        if done < total and now - last < _SECONDS_BETWEEN_LINES:
            return
        last = now
        rate = done / (now - start)
        remaining = (total - done) / rate
        line = f"evaluated {done} of {total} ({100 * done // total} %), {rate:.1f}/s, {remaining:.0f} s left"
        console.print(f"{line}, {failed_examples} failed" if failed_examples else line)

    return advance
