"""The formats of result files, by the ending of their names.

A format is one function here plus one line in ``FORMATS``; what only it needs is imported where it renders.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result.metrics import METRICS

_FACTS: Final = ("configuration", "role", "status", "verdict", "reason")


class OutputFormat(Struct, frozen=True):
    """How a file is made: ``render`` gives the content for a measured test configuration, or with None for all.

    ``is_per_configuration``: each test configuration has a file of its own, and no other is written.
    """

    render: Callable[[EvaluationResult, ConfigurationResult | None], bytes]
    is_per_configuration: bool = False


def _json(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """All that is known, described by ``result.schema.json``."""
    return encode_json(result)


def _html(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """The page."""
    from evaltools.report.page.content.sources import Sources
    from evaltools.report.page.make import page_of
    from evaltools.report.page.rendering.html import html_of

    return html_of(page_of(Sources({Path(result.model.file).stem: result})))


def _markdown(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """The first screen of the page: answers and figures, without pictures."""
    from evaltools.report.page.content.sources import Sources
    from evaltools.report.page.make import page_of
    from evaltools.report.page.rendering.markdown import markdown_of

    return markdown_of(page_of(Sources({Path(result.model.file).stem: result})))


def _csv(result: EvaluationResult, _configuration: ConfigurationResult | None) -> bytes:
    """A row per configuration, figures as the JSON result has them; one that a configuration lacks is empty."""
    rows = [_row(result, entry) for entry in result.configurations]
    columns = dict.fromkeys([*_FACTS, *(name for row in rows for name in row)])
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(errors="replace")


def _row(result: EvaluationResult, entry: ConfigurationResult) -> dict[str, object]:
    """Facts, the task's figures, then those that every task has."""
    row: dict[str, object] = {
        "configuration": entry.name,
        "role": entry.role,
        "status": entry.status,
        "verdict": entry.verdict.kind if entry.verdict is not None else "",
        "reason": entry.reason or "",
    }
    if entry.status == "measured":
        common = {metric.name: metric.read(result, entry) for metric in METRICS}
        row.update({name: value for name, value in common.items() if isinstance(value, float)})
        row.update(entry.figures)
    return row


def _protobuf(result: EvaluationResult, configuration: ConfigurationResult | None) -> bytes:
    """The native tool's ``EvaluationStageMetrics`` of a configuration."""
    from evaltools.native.lines.evaluation import native_proto

    assert configuration is not None
    return native_proto(result, configuration)


FORMATS: Final = {
    ".json": OutputFormat(_json),
    ".md": OutputFormat(_markdown),
    ".html": OutputFormat(_html),
    ".csv": OutputFormat(_csv),
    ".pb": OutputFormat(_protobuf, is_per_configuration=True),
    ".bin": OutputFormat(_protobuf, is_per_configuration=True),
}
"""By ending."""
NATIVE: Final = ".pb"
"""What a name means that has no ending of these, where one may be given as to the native tool."""


def format_of(path: Path, stated: str = "") -> OutputFormat:
    """The format that the name of a file asks for, unless one is ``stated``: an ending without its dot.

    >>> format_of(Path("a.JSON")).is_per_configuration, format_of(Path("a.pb")).is_per_configuration
    (False, True)
    """
    ending = f".{stated}" if stated else path.suffix.lower()
    return FORMATS.get(ending, FORMATS[NATIVE])


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
