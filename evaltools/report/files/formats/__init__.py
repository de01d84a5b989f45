"""The formats of result files, by the ending of their names.

A format is one module here plus one line in ``FORMATS``.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Final, Protocol

from evaltools.result.evaluation import ConfigurationResult, EvaluationResult

FORMATS: Final = {
    ".json": "evaltools.report.files.formats.json",
}
"""The module of each ending; every other name is the native tool's protobuf."""
_NATIVE: Final = "evaltools.report.files.formats.protobuf"


class OutputFormat(Protocol):
    """What a module of a format has."""

    @property
    def PER_CONFIGURATION(self) -> bool:  # noqa: N802 - a constant of the module
        """Whether each test configuration has a file of its own, and no other is written."""

    def render(self, result: EvaluationResult, configuration: ConfigurationResult | None, /) -> bytes:
        """The content of a file: that of a measured test configuration, or with None that of the whole result."""


def format_of(path: Path) -> OutputFormat:
    """The format that the name of a file asks for.

    >>> format_of(Path("a.JSON")).PER_CONFIGURATION, format_of(Path("a.pb")).PER_CONFIGURATION
    (False, True)
    """
    module: OutputFormat = importlib.import_module(FORMATS.get(path.suffix.lower(), _NATIVE))
    return module
