"""A table as CSV: numbers as the JSON result has them, all else as it is shown."""

from __future__ import annotations

import csv
import io

from evaltools.result.section import Cell, Number, Table, text_of


def csv_of(table: Table) -> bytes:
    r"""UTF-8, with the headings as its first line; what has no number is empty.

    >>> csv_of(Table("", ("name", "top1"), [("a", Number("50 %", 0.5)), ("b", Number("no number", None))]))
    b'name,top1\na,0.5\nb,\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if table.columns:
        writer.writerow(table.columns)
    writer.writerows([_value(cell) for cell in row] for row in table.rows)
    return text.getvalue().encode(errors="replace")


def _value(cell: Cell) -> str | float | None:
    return cell.value if isinstance(cell, Number) else text_of(cell)
