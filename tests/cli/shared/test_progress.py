"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from evaltools.cli.shared.progress import show_progress
from evaltools.engine.ledger import Tally


def shown(terminal: bool, phase: str = "", style: str = "auto", **failed: int) -> str:
    """What three examples print; ``failed`` are the failures of configurations."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, highlight=False)
    with show_progress(phase, 3, console, style) as on_example:
        for done in range(1, 4):
            on_example(Tally(done, max(failed.values(), default=0), {"a": 0, **failed}))
    return text.getvalue()


@pytest.mark.parametrize(
    ("terminal", "how", "begins", "ends"),
    [
        (False, {}, "evaluated 3 of 3 (100 %), ", "/s, 0 s left"),
        (False, {"b": 2}, "evaluated 3 of 3 (100 %), ", ", 2 failed (b 2)"),
        (False, {"a": 1, "b": 2}, "evaluated 3 of 3 (100 %), ", ", 2 failed (a 1, b 2)"),
        (False, {"phase": "noise floor"}, "noise floor: 3 of 3 (100 %), ", "/s, 0 s left"),
        (True, {"style": "lines"}, "evaluated 3 of 3 (100 %), ", "/s, 0 s left"),
    ],
)
def test_a_line_has_the_whole_the_rate_and_failures(
    terminal: bool, how: dict[str, Any], begins: str, ends: str
) -> None:
    (line,) = shown(terminal, **how).splitlines()
    assert line.startswith(begins)
    assert line.rstrip().endswith(ends)
    assert "/s" in line


def test_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.cli.shared.progress._SECONDS_BETWEEN_LINES", 0.0)
    assert len(shown(terminal=False).splitlines()) == 3


def test_a_terminal_gets_a_bar_with_rate_and_phase() -> None:
    text = shown(terminal=True, phase="noise floor")
    assert all(part in text for part in ("3/3", "/s", "noise floor"))


def test_objects_hold_the_counts_of_each_configuration() -> None:
    (line,) = shown(terminal=True, style="json", b=2).splitlines()
    found = json.loads(line)
    assert found["per_second"] > 0
    assert {name: found[name] for name in found if name != "per_second"} == {
        "phase": "evaluation",
        "done": 3,
        "total": 3,
        "seconds_left": 0,
        "failed_examples": 2,
        "failed": {"a": 0, "b": 2},
    }


def test_no_progress_where_none_is_asked_for() -> None:
    assert shown(terminal=True, style="none") == shown(terminal=False, style="none") == ""
