"""The console on stderr."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable
from typing import IO, Any

from rich.console import Console
from rich.text import Text

from evaltools.cli.shared.streams import discard
from evaltools.text import printable_lines

_WIDTH_WITHOUT_TERMINAL = 160


class _LastingConsole(Console):
    """A console that goes on where its reader has closed the pipe: the text is lost, and nothing else happens.

    Control characters in what it is given, also in the cells of tables, are shown and not sent to the terminal.
    """

    def print(self, *objects: Any, **options: Any) -> None:
        try:
            super().print(*objects, **options)
        except OSError:
            self.on_broken_pipe()

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable_lines(text), **options)

    def on_broken_pipe(self) -> None:
        self.quiet = True
        if sys.stderr is not None:
            discard(sys.stderr)


def make_console(file: IO[str] | None = None) -> Console:
    """A console on stderr, or on ``file``, that prints text as it is: names from outside are neither markup nor emoji.

    Lines wrap at spaces on a terminal; elsewhere each stays one line.
    """
    target = file or sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    in_terminal = target.isatty()
    width = None if in_terminal else _WIDTH_WITHOUT_TERMINAL
    return _LastingConsole(
        file=target, width=width, markup=False, emoji=False, highlight=False, soft_wrap=not in_terminal
    )


def text_for_stdout(show: Callable[[Console], None]) -> str:
    """The text that ``show`` prints on a console, without blanks at line ends.

    It is as wide as stdout, where that is a terminal.
    """
    text = io.StringIO()
    console = make_console(text)
    if sys.stdout is not None and sys.stdout.isatty():
        console.width = shutil.get_terminal_size().columns
        console.soft_wrap = False
    show(console)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip().splitlines())
