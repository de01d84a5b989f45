"""The folder of a capture, and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from evaltools.errors import UsageError
from evaltools.report.files.output_file import write_file
from evaltools.result.json_file import encode_json

TRACE: Final = "trace.json"
SUMMARY: Final = "summary.json"


def make_folder(folder: Path) -> None:
    """Make the folder if it is missing; raises :class:`UsageError` where that is impossible."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror}; give a folder that can be written") from error


def write_summary(folder: Path, summary: Any) -> None:
    """Write what was found as JSON; raises :class:`~evaltools.errors.OutputError`."""
    write_file(folder / SUMMARY, encode_json(summary))
