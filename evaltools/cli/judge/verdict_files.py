"""The files in which verdicts are written: JUnit, Markdown, JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.errors import OutputError, UsageError
from evaltools.gates.check import GateDecisions
from evaltools.gates.decide import Decision, GateVerdict
from evaltools.gates.outcome import GateOutcome, outcome_of
from evaltools.report.files.gates import badge_json, junit_xml, markdown_summary
from evaltools.report.files.output_file import require_output_file, write_file
from evaltools.report.page.content.sources import Sources
from evaltools.report.page.file import measured_page, require_page_file
from evaltools.request.flags import GivenFlags
from evaltools.result.json_file import encode_json
from evaltools.result.verdict import Reason

_RENDERERS: Final[Mapping[str, Callable[[GateOutcome], bytes]]] = {
    "junit": junit_xml,
    "markdown": markdown_summary,
    "badge": badge_json,
    "output_file_path": encode_json,
    "json": encode_json,
}
_REPORT: Final = "report"
_FIRST_BYTES: Final = 4096
_JSON: Final = ("badge", "output_file_path", "json")
EXIT_CODE_OF: Final[Mapping[GateVerdict, int]] = {
    "pass": exit_codes.OK,
    "inconclusive": exit_codes.INCONCLUSIVE,
    "fail": exit_codes.LIMIT_BROKEN,
    "not measured": exit_codes.NOT_MEASURED,
}
"""By the worst verdict."""


def planned_files(flags: GivenFlags, inputs: Sequence[Path]) -> dict[str, Path]:
    """The files that are to be written, by flag, checked before anything is run."""
    files: dict[str, Path] = {}
    for name in (*_RENDERERS, _REPORT):
        path = flags.path(name)
        if path is None:
            continue
        if name in _JSON and path.suffix.lower() != ".json":
            raise UsageError(f"--{name}={path}: the verdicts are JSON; give a name that ends in .json")
        if name == _REPORT:
            require_page_file(path, f"--{name}")
        require_output_file(path, f"--{name}", inputs)
        files[name] = path
    return files


def write_verdicts(outcome: GateOutcome, files: Mapping[str, Path], sources: Sources) -> list[OutputError]:
    """Write the planned files; returns what could not be written. ``sources`` are the results that were judged."""
    failed = []
    for name, path in files.items():
        try:
            if name == _REPORT:
                content = measured_page(replace(sources, outcomes={outcome.command: outcome}), path)
            else:
                content = _RENDERERS[name](outcome)
            write_file(path, content)
        except OutputError as error:
            failed.append(error)
    return failed


def write_failure(why: str, files: Mapping[str, Path]) -> None:
    """Write the planned files of a command that judged nothing, so that those of an earlier one do not stay.

    A file that is none of evaltools' is left, since it may be one that a run reads, and so is what cannot be written.
    """
    nothing = Decision("*", "no limit", "not measured", reason=Reason.of_text(why))
    outcome = outcome_of(version("evaltools"), "", [GateDecisions("gate", "", (nothing,))])
    write_verdicts(outcome, {name: path for name, path in files.items() if _is_of_evaltools(path)}, Sources())


def _is_of_evaltools(path: Path) -> bool:
    """Whether a file may be replaced: it is not there yet, or was written by evaltools, as its first words say."""
    try:
        with open(path, "rb") as file:
            return b"evaltools" in file.read(_FIRST_BYTES)
    except FileNotFoundError:
        return True
    except OSError:
        return False
