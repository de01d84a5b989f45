"""What results in Python have in common: files, and tables in a notebook."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evaltools.report.content import Sources
from evaltools.report.files.output_file import write_file
from evaltools.report.page.file import page_file, require_page_file
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result as Whole
from evaltools.result.section import Table

_DIGITS: Final = 4


class Saved(ABC):
    """Something that was found, of which ``result`` is everything, typed: it can be saved, and shown on a page."""

    def __init__(self, result: Whole) -> None:
        self.result: Final = result

    @abstractmethod
    def _sources(self) -> Sources: ...

    def save(self, path: str | Path) -> None:
        """Write the result as JSON; :func:`evaltools.load` reads it.

        Raises :class:`~evaltools.errors.OutputError`.
        """
        write_file(Path(path), encode_json(self.result))

    def report(self, path: str | Path) -> None:
        """Write one page to forward: ``FILE.html``, or ``FILE.md`` for its first screen."""
        self._write_page(path, None)

    def _write_page(self, path: str | Path, images: str | Path | None) -> None:
        file = Path(path)
        require_page_file(file, "report")
        write_file(file, page_file(self._sources(), file, None if images is None else Path(images)))


class FullTable:
    """Every figure of every configuration; a notebook shows it as a table."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.rows = rows

    def __repr__(self) -> str:
        return "\n".join(", ".join(f"{name}={shown(value)}" for name, value in row.items()) for row in self.rows)

    def _repr_html_(self) -> str:
        return html_table(self.rows)


def html_of_table(table: Table) -> str:
    """A table of a page for a notebook."""
    rows = [[cell if isinstance(cell, str) else cell.text for cell in row] for row in table.rows]
    return html_table([dict(zip(table.columns, row, strict=True)) for row in rows])


def html_list(texts: Sequence[str]) -> str:
    """A line for each text."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table for a notebook."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = _line("th", columns)
    body = "".join(_line("td", [shown(row.get(column)) for column in columns]) for row in rows)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"


def shown(value: object) -> str:
    """A figure with four digits, a dash for None."""
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)
