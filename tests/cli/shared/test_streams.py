"""What is said wraps at spaces on a terminal, and is left alone elsewhere."""

from __future__ import annotations

import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from fcntl import ioctl

import pytest
from rich.table import Table

from evaltools.cli.shared.streams import complain, say, say_wrapped
from evaltools.cli.shared.terminal import make_console
from evaltools.exit_codes import NOT_WRITTEN, OK
from evaltools.text import wrapped

LONG = "evaltools: labels.txt has 1000 lines, the model's well-known output has 1001"


def on_terminal(act: Callable[[], object], stream: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that a terminal so wide is sent."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 100, columns, 0, 0))
    with open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, stream, terminal)
        act()
        terminal.flush()
        sent = os.read(ours, 10_000).decode()
    os.close(ours)
    return sent.splitlines()


def test_sentences_wrap_at_spaces_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [
        "evaltools: labels.txt has",
        "1000 lines, the model's",
        "well-known output has 1001",
    ]
    assert on_terminal(lambda: complain(LONG), "stderr", 28, monkeypatch) == expected
    assert on_terminal(lambda: say_wrapped(LONG), "stdout", 28, monkeypatch) == expected
    assert on_terminal(lambda: say(LONG), "stdout", 28, monkeypatch) == [LONG]


def test_elsewhere_each_line_stays_one(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(sys, "stdout", text)
    assert say_wrapped(LONG)
    assert text.getvalue() == f"{LONG}\n"
    assert wrapped(LONG, None) == LONG


def test_lines_go_on_below_their_last_column_where_that_leaves_room() -> None:
    line = "  no   GPU             nothing that draws: install it"
    assert wrapped(line, 40).splitlines() == [
        "  no   GPU             nothing that",
        "                       draws: install it",
    ]
    assert wrapped(line, 30).splitlines() == ["  no   GPU             nothing", "       that draws: install it"]


def test_a_command_and_a_word_that_is_too_long_stay_whole() -> None:
    command = "$ evaltools imagenet --model_file=a.tflite --images=b"
    assert wrapped(command, 20) == command
    assert wrapped("see /a/very/long/path/to/some/file.txt there", 20).splitlines() == (
        ["see", "/a/very/long/path/to/some/file.txt", "there"]
    )


ODD = "a\x1b[31mred\x07 \u202e\r\tb"
SHOWN = "a\\x1b[31mred\\x07 \\u202e\\r\tb"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_control_characters_are_shown_wherever_they_are_printed(stream: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.StringIO()
    monkeypatch.setattr(sys, stream, text)
    {"stdout": say, "stderr": complain}[stream](f"{ODD}\nnext")
    assert text.getvalue() == f"{SHOWN}\nnext\n"


def test_control_characters_are_shown_in_sentences_and_cells_of_the_console() -> None:
    text = io.StringIO()
    console = make_console(text)
    table = Table("heading")
    table.add_row(ODD)
    console.print(ODD, table)
    assert "\x1b" not in text.getvalue()
    assert text.getvalue().count("a\\x1b[31mred\\x07 \\u202e\\r") == 2


@pytest.mark.parametrize("words", [("coco", "--help"), ("coco", "--help=all"), ("--help",)])
def test_a_reader_that_stops_early_is_no_traceback(words: tuple[str, ...]) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "evaltools.cli.main", *words], stdout=theirs, stderr=subprocess.PIPE, text=True
    )
    os.close(theirs)
    assert done.stderr == ""
    assert done.returncode in (OK, NOT_WRITTEN)
