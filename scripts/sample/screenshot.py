"""Draws ``docs/first-screen.svg``: a terminal of 80 columns with a real run on the sample, as README shows it.

``python scripts/sample/screenshot.py`` (``make screenshot``). Times are those of the machine it runs on; a test holds
everything else against the present command line.
"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[2]
TARGET: Final = ROOT / "docs" / "first-screen.svg"
COLUMNS: Final = 80
COMMAND: Final = (
    "evaltools imagenet models/dynamic_range.tflite --images=images --ground_truth=ground_truth.txt "
    "--labels=labels.txt --config='xnnpack: use_xnnpack=true' --config='nnapi: use_nnapi=true' >native.txt"
)
_WORD: Final = re.compile(r"(?:[^\s']|'[^']*')+")
_REWRITTEN: Final = re.compile(r"^.*(?:\r|\x1b\[2K)")
_FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_INDENTED: Final = re.compile(r' x="([\d.]+)" y="([\d.]+)" textLength="[\d.]+"([^>]*)>((?:&#160;)+)(?!&#160;|<)')
_WIDTH: Final = 12.2
"""Of a character, in rich's pictures."""
_CURSOR: Final = re.compile(r"\x1b\[\?25[hl]")
_BAR: Final = "━"


def terminal_lines(command: str, folder: Path) -> list[str]:
    """What is left on a terminal of 80 columns after the command, with its colours and without bars of progress.

    What the command sends into a file is not kept.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 60, COLUMNS, 0, 0))
    typed_words, _, file = command.partition(" >")
    words = [sys.executable, "-m", "evaltools.cli.main", *shlex.split(typed_words)[1:]]
    environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "LINES")}
    process = subprocess.Popen(
        words,
        cwd=folder,
        env={**environment, "TERM": "xterm-256color"},
        stdout=subprocess.DEVNULL if file else slave,
        stderr=slave,
    )
    os.close(slave)
    printed = io.BytesIO()
    try:
        while part := os.read(master, 1 << 16):
            printed.write(part)
    except OSError:  # how a terminal says that nobody writes to it any more
        pass
    process.wait()
    os.close(master)
    text = _CURSOR.sub("", printed.getvalue().decode()).replace("\r\n", "\n")
    lines = [_REWRITTEN.sub("", line) for line in text.splitlines()]
    shown = [line for line in lines if _BAR not in line]
    return [line for line, before in zip(shown, ["", *shown], strict=False) if line or before]


def typed(command: str) -> list[str]:
    """The command as one would type it into 80 columns, its lines joined by backslashes."""
    lines = ["$"]
    for word in _WORD.findall(command):
        if len(f"{lines[-1]} {word} \\") > COLUMNS:
            lines.append("   ")
        lines[-1] += f" {word}"
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def picture(lines: list[str], title: str) -> str:
    """An SVG of a terminal."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for line in lines:
        console.print(Text.from_ansi(line), highlight=False)
    return _INDENTED.sub(_moved, _FONT.sub("", console.export_svg(title=title, unique_id="evaltools")))


def _moved(text: re.Match[str]) -> str:
    """Text without the spaces before it, further to the right; some programs leave such spaces out."""
    x = float(text[1]) + _WIDTH * text[4].count("&#160;")
    return f' x="{x:.1f}" y="{text[2]}"{text[3]}>'


def main() -> int:
    """Run and draw."""
    shown = terminal_lines(COMMAND, ROOT / "datasets" / "sample")
    TARGET.write_text(picture([*typed(COMMAND), *shown], "evaltools"))
    print(TARGET.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
