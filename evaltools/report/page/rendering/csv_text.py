"""A table as CSV: numbers as the JSON result has them, all else as it is shown."""

from __future__ import annotations

import csv
import io
import re
from typing import Final

from evaltools.result.section import Cell, Number, Table, text_of
from evaltools.text import printable

_FORMULA: Final = re.compile(r"[=@]|[+-](?![\d.]+%?$)(?!$)")
"""How a text begins that a spreadsheet computes; a number is none, nor is a dash alone."""


def csv_of(table: Table) -> bytes:
    r"""UTF-8, with the headings as its first line; what has no number is empty.

    Names come from elsewhere: control characters are shown as Python writes them, and what a spreadsheet would take for
    a formula has an apostrophe before it.

    >>> csv_of(Table("", ("name", "top1"), [("a", Number("50 %", 0.5)), ("b", Number("no number", None))]))
    b'name,top1\na,0.5\nb,\n'
    >>> csv_of(Table("", ("name",), [("=1+1",), ("-cmd",), ("-1.5",), ("a\tb",)]))
    b"name\n'=1+1\n'-cmd\n-1.5\na\\tb\n"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if table.columns:
        writer.writerow(map(_value, table.columns))
    writer.writerows([_value(cell) for cell in row] for row in table.rows)
    return text.getvalue().encode(errors="replace")


def _value(cell: Cell) -> str | float | None:
    if isinstance(cell, Number):
        return cell.value
    text = printable(text_of(cell))
    return f"'{text}" if _FORMULA.match(text) else text
