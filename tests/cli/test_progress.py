"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from evaltools.cli.progress import show_progress


def shown(terminal: bool, failed: int = 0) -> str:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100)
    with show_progress(3, console) as on_example:
        for _ in range(3):
            on_example(failed)
    return text.getvalue()


def test_plain_lines_end_with_the_whole() -> None:
    lines = shown(terminal=False).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("evaluated 3 of 3 (100 %), ")
    assert lines[0].endswith("/s, 0 s left")


def test_failures_are_counted() -> None:
    assert shown(terminal=False, failed=2).rstrip().endswith(", 2 failed")


def test_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.cli.progress._SECONDS_BETWEEN_LINES", 0.0)
    assert len(shown(terminal=False).splitlines()) == 3


def test_a_terminal_gets_a_bar_with_rate() -> None:
    text = shown(terminal=True)
    assert "3/3" in text
    assert "/s" in text
