"""The files in which verdicts are written: JUnit, Markdown, JSON, a badge."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from evaltools.cli.judge.github import markdown_summary, show_on_github
from evaltools.errors import OutputError
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision
from evaltools.gates.outcome import counts, is_inconclusive_allowed, outcome_of, worst_of
from evaltools.report.content import Sources
from evaltools.report.files.output_file import first_bytes, is_written_in_place, planned_outputs, write_outputs
from evaltools.report.files.rows import junit_of_rows
from evaltools.report.page.file import page_file
from evaltools.request.flags import GivenFlags
from evaltools.result.environment import describe_environment
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result

_FILES: Final = ("junit", "markdown", "badge", "output_file_path", "json", "report")
_COLOURS: Final[Mapping[str, str]] = {
    "skipped": "lightgrey",
    "pass": "brightgreen",
    "inconclusive": "yellow",
    "fail": "red",
    "not measured": "orange",
}
_VERDICTS: Final = (
    re.compile(rb"""<\?xml [^>]*>\s*<testsuites name="evaltools gate\""""),
    re.compile(rb"# [^\n]*: evaltools gate"),
    re.compile(rb"(?s)<!doctype html>.*?<title>[^<]*: evaltools gate"),
    re.compile(rb'(?s)\{\s*"schemaVersion": 1,\s*"label": "evaltools"'),
    re.compile(rb'(?s)\{\s*"(command": "gate",|evaltools": "[^"]*",\s*"gates": )'),
)
"""How the files of verdicts begin."""


def planned_files(flags: GivenFlags, inputs: Sequence[Path]) -> dict[str, Path]:
    """The files that are to be written, by flag, checked before anything is run."""
    return planned_outputs(flags.options(), _FILES, inputs, "the verdicts are")


def write_verdicts(outcome: Result, files: Mapping[str, Path], judged: Mapping[str, Result]) -> list[OutputError]:
    """Write the planned files; returns what could not be written. ``judged`` are the results that were judged."""
    name = outcome.command if outcome.command not in judged else f"evaltools {outcome.command}"
    contents = {
        "junit": lambda: junit_of_rows(outcome, is_inconclusive_allowed(outcome)),
        "markdown": lambda: markdown_summary(outcome),
        "badge": lambda: badge_json(outcome),
        "output_file_path": lambda: encode_json(outcome),
        "json": lambda: encode_json(outcome),
        "report": lambda: page_file(Sources({name: outcome, **judged}), files["report"]),
    }
    return write_outputs(files, contents)


def badge_json(outcome: Result) -> bytes:
    """The numbers of verdicts; red where anything failed, else the colour of the worst."""
    colour = _COLOURS["fail" if outcome.limits_broken else worst_of(outcome)]
    return encode_json({"schemaVersion": 1, "label": "evaltools", "message": counts(outcome), "color": colour})


def begin_files(files: Mapping[str, Path]) -> None:
    """Have the planned files that are there say that nothing is judged yet, in case this run is killed."""
    there = {name: path for name, path in files.items() if path.is_file() and not is_written_in_place(path)}
    write_verdicts(_nothing_judged("it has not come to its end: it still runs, or was killed"), there, {})


def write_failure(why: str, files: Mapping[str, Path]) -> None:
    """Write files for a command that judged nothing, so that those of an earlier one do not stay.

    GitHub Actions gets it as well.
    """
    outcome = _nothing_judged(why)
    write_verdicts(outcome, files, {})
    show_on_github(outcome)


def _nothing_judged(why: str) -> Result:
    nothing = Decision("*", "could not start", "not measured", reason=why)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    environment = describe_environment(["evaltools", "gate"], now, 0.0)
    return outcome_of("", [GateDecisions("gate", "", (nothing,))], environment)


def holds_verdicts(path: Path) -> bool:
    """Whether a file is one that ``evaltools gate`` wrote, as its first bytes say."""
    if not path.is_file():
        return False
    try:
        head = first_bytes(path)
    except OSError:
        return False
    return any(pattern.match(head) for pattern in _VERDICTS)
