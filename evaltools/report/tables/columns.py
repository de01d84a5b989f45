"""Tables that keep whole names and numbers: where a terminal is narrow, columns are left out, never cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, TypeVar

from rich.console import Console
from rich.table import Table

Row = TypeVar("Row")
_WIDER_THAN_ANY: Final = 100_000
_WIDEST_NAME: Final = 20
_LONGEST_WORD: Final = 16


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column; of those that do not fit, one of the highest ``rank`` is left out first, none of rank 0.

    >>> Column("name", str.title).cell("ada")
    'Ada'
    """

    heading: str
    cell: Callable[[Row], str]
    rank: int = 0
    justify: Literal["left", "right"] = "right"


def ranked(columns: Sequence[Column[Row]]) -> list[Column[Row]]:
    """The first column is always shown, the others are left out from the right.

    >>> [column.rank for column in ranked([Column("a", str), Column("b", str), Column("c", str)])]
    [0, 1, 2]
    """
    return [replace(column, rank=rank) for rank, column in enumerate(columns)]


def print_columns(
    names: Sequence[Column[Row]],
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    console: Console,
    style: Callable[[Row], str | None] = lambda _row: None,
) -> None:
    """Rows as wide as the console, ``names`` to the left; says what is not shown.

    A name of more than 20 characters takes several lines before a column is left out for it; words of
    up to 16 stay whole. ``style`` is the style of a row, None for the usual one.
    """
    shown, left_out = list(columns), list[Column[Row]]()
    while True:
        table = _table(names, shown, rows, style)
        narrow = _table(names, shown, rows, style, _WIDEST_NAME)
        optional = [column for column in shown if column.rank]
        if not optional or _natural_width(narrow, console) <= console.width:
            break
        left_out.append(max(optional, key=lambda column: column.rank))
        shown.remove(left_out[-1])
    console.print(table)
    if left_out:
        headings = [column.heading for column in columns if column in left_out]
        console.print(f"a wider terminal also shows: {', '.join(headings)}", style="dim")


def _table(
    names: Sequence[Column[Row]],
    columns: Sequence[Column[Row]],
    rows: Sequence[Row],
    style: Callable[[Row], str | None],
    widest_name: int | None = None,
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in names:
        words = [word for text in (column.heading, *map(column.cell, rows)) for word in text.split()]
        least = min(_LONGEST_WORD, max(map(len, words), default=0))
        table.add_column(column.heading, overflow="fold", min_width=least, max_width=widest_name)
    for column in columns:
        table.add_column(column.heading, justify=column.justify, no_wrap=True)
    for row in rows:
        table.add_row(*(column.cell(row) for column in (*names, *columns)), style=style(row))
    return table


def _natural_width(table: Table, console: Console) -> int:
    unlimited = console.options.update(max_width=_WIDER_THAN_ANY)
    return console.measure(table, options=unlimited).maximum
