"""The console on stderr."""

from __future__ import annotations

import os
import sys
from typing import IO, Any

from rich.console import Console

from evaltools.cli.streams import discard

_WIDTH_WITHOUT_TERMINAL = 160


class _LastingConsole(Console):
    """A console whose reader may go away: what it prints is then lost, and nothing else."""

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        self.quiet = True
        if sys.stderr is not None:
            discard(sys.stderr)


def make_console(file: IO[str] | None = None) -> Console:
    """A console on stderr, or on ``file``, that prints text as it is: names from outside are neither markup nor emoji.

    Without a terminal lines are not cut at 80 columns.
    """
    target = file or sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    width = None if target.isatty() else _WIDTH_WITHOUT_TERMINAL
    return _LastingConsole(file=target, width=width, markup=False, emoji=False, highlight=False, soft_wrap=True)
