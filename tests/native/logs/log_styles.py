"""Logs in the styles in which tools of several releases and Android print them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

RECORDED: Final = Path(__file__).parent / "recorded_logs"
_LETTERS: Final = {"VERBOSE": "V", "INFO": "I", "WARN": "W", "WARNING": "W", "ERROR": "E", "FATAL": "E"}


def recorded(name: str) -> str:
    """A log as a terminal shows it: native prefixes, and those of absl."""
    return (RECORDED / f"{name}.txt").read_text()


def _unprefixed(text: str) -> str:
    """As releases until TensorFlow 2.11 print; messages of the runtime itself have their prefix there too."""
    lines = []
    for line in text.splitlines():
        start, colon, rest = line.partition(": ")
        lines.append(rest if colon and start == "INFO" and not rest.startswith(("Created", "Replacing")) else line)
    return "\n".join(lines) + "\n"


def _logcat(text: str, prefix: Callable[[str], str], keeps_words: bool = False) -> str:
    """A message of several lines has the level of its first in each; empty lines of messages are lost."""
    lines, letter = ["--------- beginning of main"], "I"
    for line in text.splitlines():
        start, colon, rest = line.partition(": ")
        if colon and start in _LETTERS:
            letter = _LETTERS[start]
            line = line if keeps_words else rest
        if line:
            lines.append(prefix(letter) + line)
    return "\n".join(lines) + "\n"


STYLES: Final[dict[str, Callable[[str], str]]] = {
    "native": lambda text: text,
    "without prefixes": _unprefixed,
    "windows": lambda text: text.replace("\n", "\r\n"),
    "threadtime": lambda text: _logcat(text, lambda letter: f"11-22 13:10:02.123  1234  1250 {letter} tflite  : "),
    "native in threadtime": lambda text: _logcat(
        text, lambda _: "11-22 13:10:02.123 21234 21250 I benchmark_model: ", keeps_words=True
    ),
}
