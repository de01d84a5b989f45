"""What GitHub Actions shows of verdicts by itself: errors at the limits in the file of gates, a summary, an output."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from evaltools.cli.shared.streams import command
from evaltools.errors import OutputError
from evaltools.file_content import Unreadable, text_of
from evaltools.gates.ending import ending_of
from evaltools.gates.gate_file import Gate, GateFile
from evaltools.gates.outcome import GateOutcome
from evaltools.report.files.gates import markdown_summary
from evaltools.report.words.gates import GateLine, lines

_ON: Final = "GITHUB_ACTIONS"
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_OUTPUT: Final = "GITHUB_OUTPUT"
_WORKSPACE: Final = "GITHUB_WORKSPACE"
_QUOTED: Final = re.compile(r'"([^"\\\n]*)"' + r"|'([^'\n]*)'")


def show_on_github(outcome: GateOutcome, file: GateFile | None = None) -> list[OutputError]:
    """Write error lines to stderr, and the files that a step of GitHub Actions has; returns what cannot be written.

    Does nothing elsewhere. ``file`` has the limits, None where it could not be read.
    """
    if os.environ.get(_ON) != "true":
        return []
    for line in error_lines(outcome, file):
        command(line)
    contents = {_SUMMARY: markdown_summary(outcome), _OUTPUT: f"verdict={outcome.verdict}\n".encode()}
    return [error for name, content in contents.items() for error in _append(name, content)]


def _append(variable: str, content: bytes) -> Iterator[OutputError]:
    """Append to the file that a variable of the environment names, if it is set."""
    path = os.environ.get(variable)
    if not path:
        return
    try:
        with open(path, "ab") as opened:
            opened.write(content)
    except OSError as error:
        yield OutputError(f"{variable}={path} cannot be written: {error.strerror}")


def error_lines(outcome: GateOutcome, file: GateFile | None) -> Iterator[str]:
    """A line for each limit that did not pass, with its place in the file of gates, as far as it is known there."""
    text = _text(file)
    for line in lines(outcome):
        level = ending_of(line.verdict, outcome.inconclusive_allowed).github
        if level is None:
            continue
        properties = {"title": f"evaltools gate: {line.verdict}"}
        number = None if file is None else line_of_limit(text, file.gates, line)
        if file is not None and text:
            properties = {"file": _in_repository(file.path), **({"line": str(number)} if number else {}), **properties}
        message = f"{line.run}, {line.configuration}, {line.limit}: {line.explanation or line.verdict}"
        stated = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
        yield f"::{level} {stated}::{_escaped(message)}"


def _text(file: GateFile | None) -> str:
    """The text of the file, empty where there is none, as with only ``--limit``."""
    try:
        return text_of(file.path) if file is not None and file.path.is_file() else ""
    except Unreadable:
        return ""


def _in_repository(path: Path) -> str:
    """The path from the folder of the checkout, as GitHub wants it."""
    path, workspace = Path(os.path.realpath(path)), os.path.realpath(os.environ.get(_WORKSPACE) or ".")
    return path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else str(path)


def line_of_limit(text: str, gates: Sequence[Gate], line: GateLine) -> int | None:
    """The line, from 1, on which a limit stands; of one that evaltools makes for a run, that of the run.

    Equal limits in several gates are distinguished by the run and configuration that these are about. None where
    that is not clear.
    """
    holders = [gate for gate in gates for criterion in gate.criteria if criterion.text == line.limit]
    if not holders:
        return _line_of_run(text, line.run)
    numbers = [
        number
        for number, written in enumerate(text.splitlines(), 1)
        if not written.lstrip().startswith("#")
        for found in _QUOTED.finditer(written)
        if " ".join((found[1] or found[2] or "").split()) == line.limit
    ]
    about = [number for number, gate in zip(numbers, holders, strict=False) if _is_about(gate, line)]
    return about[0] if about and len(numbers) == len(holders) else None


def _is_about(gate: Gate, line: GateLine) -> bool:
    """Whether a gate may have given a line, which does not name the task."""
    return gate.names(line.configuration) and gate.is_about(line.run, gate.task, gate.task, line.model)


def _line_of_run(text: str, run: str) -> int | None:
    name = re.escape(run.partition("/")[0])
    heading = re.compile(rf"""\s*\[(?:tool\.evaltools\.)?runs\.(["']?){name}\1\]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if heading.match(line)), None)


def _escaped(text: str, more: str = "") -> str:
    """The text as workflow commands want it.

    >>> _escaped("50 %: a, b", ":,")
    '50 %25%3A a%2C b'
    """
    escaped = text.replace("%", "%25")
    for character in f"\r\n{more}":
        escaped = escaped.replace(character, f"%{ord(character):02X}")
    return escaped
