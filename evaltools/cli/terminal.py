"""The console on stderr."""

from __future__ import annotations

import os
import sys
from typing import IO

from rich.console import Console

_WIDTH_WITHOUT_TERMINAL = 160


class _LastingConsole(Console):
    """A console whose reader may go away: what it prints is then lost, and nothing else."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def make_console(file: IO[str] | None = None) -> Console:
    """A console that prints text as it is: names from outside are neither markup nor emoji.

    Without a terminal lines are not cut at 80 columns.
    """
    options = {"markup": False, "emoji": False, "highlight": False, "soft_wrap": True}
    target = file or sys.stderr
    width = None if target.isatty() else _WIDTH_WITHOUT_TERMINAL
    return _LastingConsole(file=target, width=width, **options)  # type: ignore[arg-type]
