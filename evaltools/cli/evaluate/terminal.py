"""An evaluation on stderr: what runs, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

from evaltools.cli.shared.interrupts import ignore_interrupts
from evaltools.cli.shared.progress import show_progress
from evaltools.engine.ledger import Tally
from evaltools.report.tables.evaluation import print_configurations
from evaltools.request import Options
from evaltools.result.evaluation import ConfigurationResult
from evaltools.tasks.shared.measuring import Observer


class Terminal(Observer):
    """Shows an evaluation on stderr, as ``--progress`` and ``--quiet`` ask for."""

    def __init__(self, console: Console, options: Options) -> None:
        self._console = console
        self._is_quiet = options.is_on("quiet")
        self._progress = "none" if self._is_quiet else options.text("progress")

    def opened(self, configurations: list[ConfigurationResult]) -> None:
        """Print what each configuration runs on."""
        if not self._is_quiet:
            print_configurations(configurations, self._console)

    @contextmanager
    def progress(self, phase: str, total: int) -> Iterator[Callable[[Tally], None]]:
        """Show progress."""
        with show_progress(phase, total, self._console, self._progress) as update:
            yield update

    def measured(self) -> None:
        """Ignore Ctrl-C from now on: the result is not written yet."""
        ignore_interrupts()
