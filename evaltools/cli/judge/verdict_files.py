"""The files in which verdicts are written: JUnit, Markdown, JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools.cli.judge.github import show_on_github
from evaltools.errors import OutputError
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision
from evaltools.gates.outcome import GateOutcome, outcome_of
from evaltools.report.content import Sources
from evaltools.report.files.gates import badge_json, junit_xml, markdown_summary
from evaltools.report.files.output_file import first_bytes, is_written_in_place, planned_outputs, write_outputs
from evaltools.report.page.file import measured_page
from evaltools.request.flags import GivenFlags
from evaltools.result.json_file import encode_json

_RENDERERS: Final[Mapping[str, Callable[[GateOutcome], bytes]]] = {
    "junit": junit_xml,
    "markdown": markdown_summary,
    "badge": badge_json,
    "output_file_path": encode_json,
    "json": encode_json,
}
_VERDICTS: Final = (
    re.compile(rb"""<\?xml [^>]*>\s*<testsuites name="evaltools gate\""""),
    re.compile(rb"# [^\n]*: evaltools gate"),
    re.compile(rb"(?s)<!doctype html>.*?<title>[^<]*: evaltools gate"),
    re.compile(rb'(?s)\{\s*"schemaVersion": 1,\s*"label": "evaltools"'),
    re.compile(rb'(?s)\{\s*"evaltools": "[^"]*",\s*"gates": '),
)
"""How the files of verdicts begin."""


def planned_files(flags: GivenFlags, inputs: Sequence[Path]) -> dict[str, Path]:
    """The files that are to be written, by flag, checked before anything is run."""
    return planned_outputs(flags.options(), (*_RENDERERS, "report"), inputs, "the verdicts are")


def write_verdicts(outcome: GateOutcome, files: Mapping[str, Path], sources: Sources) -> list[OutputError]:
    """Write the planned files; returns what could not be written. ``sources`` are the results that were judged."""
    shown = replace(sources, outcomes={outcome.command: outcome})
    contents = {name: partial(render, outcome) for name, render in _RENDERERS.items()}
    return write_outputs(files, {**contents, "report": lambda: measured_page(shown, files["report"])})


def begin_files(files: Mapping[str, Path]) -> None:
    """Have the planned files that are there say that nothing is judged yet, in case this run is killed."""
    there = {name: path for name, path in files.items() if path.is_file() and not is_written_in_place(path)}
    write_verdicts(_nothing_judged("it has not come to its end: it still runs, or was killed"), there, Sources())


def write_failure(why: str, files: Mapping[str, Path]) -> None:
    """Write files for a command that judged nothing, so that those of an earlier one do not stay.

    GitHub Actions gets it as well.
    """
    outcome = _nothing_judged(why)
    write_verdicts(outcome, files, Sources())
    show_on_github(outcome)


def _nothing_judged(why: str) -> GateOutcome:
    nothing = Decision("*", "could not start", "not measured", reason=why)
    return outcome_of(version("evaltools"), "", [GateDecisions("gate", "", (nothing,))])


def holds_verdicts(path: Path) -> bool:
    """Whether a file is one that ``evaltools gate`` wrote, as its first bytes say."""
    if not path.is_file():
        return False
    try:
        head = first_bytes(path)
    except OSError:
        return False
    return any(pattern.match(head) for pattern in _VERDICTS)
