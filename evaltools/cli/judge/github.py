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
from evaltools.gates.gate_file import Gate, GateFile
from evaltools.gates.outcome import is_inconclusive_allowed, limits_of, worst_of
from evaltools.report.content import Sources
from evaltools.report.page.file import page_file
from evaltools.result.result import Result
from evaltools.result.verdict import ending_of

_ON: Final = "GITHUB_ACTIONS"
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_OUTPUT: Final = "GITHUB_OUTPUT"
_WORKSPACE: Final = "GITHUB_WORKSPACE"
_QUOTED: Final = re.compile(r'"([^"\\\n]*)"' + r"|'([^'\n]*)'")


def show_on_github(outcome: Result, file: GateFile | None = None) -> list[OutputError]:
    """Write error lines to stderr, and the files that a step of GitHub Actions has; returns what cannot be written.

    Does nothing elsewhere. ``file`` has the limits, None where it could not be read.
    """
    if os.environ.get(_ON) != "true":
        return []
    for line in error_lines(outcome, file):
        command(line)
    contents = {_SUMMARY: markdown_summary(outcome), _OUTPUT: f"verdict={worst_of(outcome)}\n".encode()}
    return [error for name, content in contents.items() for error in _append(name, content)]


def markdown_summary(outcome: Result) -> bytes:
    """The first screen of the page about it in Markdown."""
    return page_file(Sources({outcome.command: outcome}), Path("summary.md"))


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


def error_lines(outcome: Result, file: GateFile | None) -> Iterator[str]:
    """A line for each limit that did not pass, with its place in the file of gates, as far as it is known there."""
    text = _text(file)
    for row, limit, verdict in limits_of(outcome.rows):
        level = ending_of(verdict.kind, is_inconclusive_allowed(outcome)).github
        if level is None:
            continue
        properties = {"title": f"evaltools gate: {verdict.kind}"}
        model = outcome.models[row.model].file
        number = None if file is None else line_of_limit(text, file.gates, limit.name, row.job, row.name, model)
        if file is not None and text:
            properties = {"file": _in_repository(file.path), **({"line": str(number)} if number else {}), **properties}
        message = f"{row.job}, {row.name}, {limit.name}: {verdict.why or verdict.kind}"
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


def line_of_limit(text: str, gates: Sequence[Gate], limit: str, run: str, configuration: str, model: str) -> int | None:
    """The line, from 1, on which a limit stands; of one that evaltools makes for a run, that of the run.

    Equal limits in several gates are distinguished by the run and configuration that these are about. None where
    that is not clear.
    """
    holders = [gate for gate in gates for criterion in gate.criteria if criterion.text == limit]
    if not holders:
        return _line_of_run(text, run)
    numbers = [
        number
        for number, written in enumerate(text.splitlines(), 1)
        if not written.lstrip().startswith("#")
        for found in _QUOTED.finditer(written)
        if " ".join((found[1] or found[2] or "").split()) == limit
    ]
    about = [
        number
        for number, gate in zip(numbers, holders, strict=False)
        if gate.names(configuration) and gate.is_about(run, gate.task, gate.task, model)
    ]
    return about[0] if about and len(numbers) == len(holders) else None


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
