"""Every table on a terminal of 80 columns as it was looked at once, and on others: nothing cut."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.tables.cases import CASES
from tests.report.tables.screens import FOLDER, SCREENS, USUAL, WIDE, WIDTHS, shown, stored, width_of

ROOT = Path(__file__).parents[3]
EVERY = (*SCREENS, *CASES)


@pytest.mark.parametrize("name", EVERY)
def test_the_screen_is_the_stored_one(name: str) -> None:
    """``python -m tests.report.tables.screens`` writes them anew."""
    assert shown(name, width_of(name)) == stored(name).read_text()


@pytest.mark.parametrize("width", [*WIDTHS, WIDE])
@pytest.mark.parametrize("name", EVERY)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    assert max(map(len, shown(name, width).splitlines())) <= width


def test_no_screen_is_left_behind() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {stored(name).name for name in EVERY}


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
def test_a_real_terminal_shows_the_same(tmp_path: Path) -> None:
    """The command writes to the terminal itself, which knows its own width; every screen after the other."""
    socket, done = str(tmp_path / "tmux"), tmp_path / "done"
    show = f"{shlex.quote(sys.executable)} -m tests.report.tables.screens {' '.join(SCREENS)}; touch {done}; sleep 60"
    tmux = ["tmux", "-S", socket, "-f", "/dev/null"]
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    start = [*tmux, "new-session", "-d", "-x", str(USUAL), "-y", "1000", show]
    subprocess.run(start, check=True, cwd=ROOT, env=environment)
    try:
        subprocess.run(["sh", "-c", f"until [ -e {done} ]; do sleep 0.1; done"], check=True, timeout=60)
        screen = subprocess.run([*tmux, "capture-pane", "-p"], check=True, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], check=True)
    lines = [line.rstrip() for line in screen.rstrip().splitlines()]
    assert "\n".join(lines) + "\n" == "".join(shown(name, USUAL) for name in SCREENS)
