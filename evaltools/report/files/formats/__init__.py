"""The formats of result files, by the ending of their names.

A format is one module here plus one line in ``FORMATS``.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final, Protocol

from evaltools.errors import UsageError
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

FORMATS: Final = {
    ".json": "evaltools.report.files.formats.json",
    ".md": "evaltools.report.files.formats.markdown",
    ".html": "evaltools.report.files.formats.html",
    ".csv": "evaltools.report.files.formats.csv",
    ".pb": "evaltools.report.files.formats.protobuf",
    ".bin": "evaltools.report.files.formats.protobuf",
}
"""The module of each ending."""
NATIVE: Final = ".pb"
"""What a name means that has no ending of these, where one may be given as to the native tool."""


class OutputFormat(Protocol):
    """What a module of a format has."""

    @property
    def PER_CONFIGURATION(self) -> bool:  # noqa: N802 - a constant of the module
        """Whether each test configuration has a file of its own, and no other is written."""

    def render(self, result: EvaluationResult, configuration: ConfigurationResult | None, /) -> bytes:
        """The content of a file: that of a measured test configuration, or with None that of the whole result."""


def format_of(path: Path, stated: str = "") -> OutputFormat:
    """The format that the name of a file asks for, unless one is ``stated``: an ending without its dot.

    >>> format_of(Path("a.JSON")).PER_CONFIGURATION, format_of(Path("a.pb")).PER_CONFIGURATION
    (False, True)
    """
    ending = f".{stated}" if stated else path.suffix.lower()
    module: OutputFormat = importlib.import_module(FORMATS.get(ending, FORMATS[NATIVE]))
    return module


def require_format(path: Path) -> None:
    """Refuse a name that says no format; one in /dev is the native tool's protobuf.

    Raises :class:`UsageError`.
    """
    if path.suffix.lower() not in FORMATS and not path.is_relative_to("/dev"):
        raise UsageError(
            f"--output_file_path={path}: the ending {path.suffix or '(none)'} says no format; use .json for all that "
            "is known, .html or .md for a page, .csv for a table, .pb or .bin for the native tool's protobuf, or state "
            "one of them: --output_format=json"
        )
