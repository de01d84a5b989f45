"""Tables that keep whole names and numbers: where a terminal is narrow, columns are left out, never cut."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table

Row = TypeVar("Row")
_WIDEST_NAME: Final = 20
_LONGEST_WORD: Final = 16
_NARROWEST: Final = 4
_BETWEEN: Final = 2
"""Blanks between columns."""
_WORD: Final = re.compile(r"[\d.]+ %(?!\S)|\[[^\]\s][^\]]*\]\S*|\S+")
"""What stays in one line: a word, a number with its percent sign, and an interval in brackets."""
_PART: Final = re.compile(r"[^\s_\-./]*[_\-./]+|[^\s_\-./]+")


class Column(Struct, Generic[Row], frozen=True):
    """A column; of those that do not fit, one of the highest ``rank`` is left out first, none of rank 0.

    ``folds``: it may take several lines, as names do.

    >>> Column("name", str.title).cell("ada")
    'Ada'
    """

    heading: str
    cell: Callable[[Row], str]
    rank: int = 0
    justify: Literal["left", "right"] = "right"
    folds: bool = False


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
    widest_name: int = _WIDEST_NAME,
) -> None:
    """Rows as wide as the console, ``names`` to the left; says what is not shown.

    A name of more than ``widest_name`` characters takes several lines before a column is left out for it; words of
    up to 16 stay whole as long as there is room. Numbers are never cut. ``style`` is the style of a row, None for the
    usual one.
    """
    shown = [*(replace(column, folds=True, justify="left") for column in names), *columns]
    left_out = list[Column[Row]]()
    while True:
        widths = [max(_cells(column, rows, cell_len)) for column in shown]
        narrow = [min(width, widest_name) if shown[place].folds else width for place, width in enumerate(widths)]
        optional = [column for column in shown if column.rank]
        if not optional or sum(narrow) + _BETWEEN * (len(shown) - 1) <= console.width:
            break
        left_out.append(max(optional, key=lambda column: column.rank))
        shown.remove(left_out[-1])
    _narrow(shown, widths, rows, console.width - _BETWEEN * (len(shown) - 1))
    console.print(_table(shown, widths, rows, style))
    if left_out:
        headings = [column.heading for column in columns if column in left_out]
        console.print(f"a wider terminal also shows: {', '.join(headings)}", style="dim")


def _cells(column: Column[Row], rows: Sequence[Row], size: Callable[[str], int]) -> list[int]:
    """The ``size`` of each of its texts."""
    return [size(text) for text in (column.heading, *map(column.cell, rows))]


def _narrow(columns: Sequence[Column[Row]], widths: list[int], rows: Sequence[Row], room: int) -> None:
    """Make the widest of those that fold narrower until all fit: down to words, to parts of words, then to less."""
    for least in (_longest_word, _longest_part, lambda _text: _NARROWEST):
        floors = [max(_cells(column, rows, least)) for column in columns]
        while sum(widths) > room:
            wide = [
                place for place, column in enumerate(columns) if column.folds and widths[place] > max(1, floors[place])
            ]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1


def _longest_word(text: str) -> int:
    return min(_LONGEST_WORD, max(map(cell_len, _WORD.findall(text)), default=0))


def _longest_part(text: str) -> int:
    return min(_LONGEST_WORD, max(map(cell_len, _PART.findall(text)), default=0))


def folded(text: str, width: int) -> str:
    """The text in lines of at most ``width``; a word that is longer breaks behind ``_``, ``-``, ``.`` or ``/`` first.

    >>> folded("mobilenet_v1_0.25_128 xnnpack", 13).splitlines()
    ['mobilenet_v1_', '0.25_128', 'xnnpack']
    >>> folded("0 points [-1.49, 1.49]", 15).splitlines()
    ['0 points', '[-1.49, 1.49]']
    """
    lines = [""]
    for word in _WORD.findall(text):
        gap = " " if lines[-1] else ""
        if cell_len(lines[-1] + gap + word) <= width:
            lines[-1] += gap + word
            continue
        lines += [""] * bool(lines[-1])
        for part in [word] if cell_len(word) <= width else _PART.findall(word):
            if cell_len(lines[-1] + part) > width:
                lines += [""] * bool(lines[-1])
            pieces = chop_cells(part, max(1, width))
            lines[-1] += pieces[0]
            lines += pieces[1:]
    return "\n".join(lines)


def _table(
    columns: Sequence[Column[Row]], widths: Sequence[int], rows: Sequence[Row], style: Callable[[Row], str | None]
) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")

    def cells(texts: Iterable[str]) -> list[str]:
        of = zip(columns, widths, texts, strict=True)
        return [folded(text, width) if column.folds and cell_len(text) > width else text for column, width, text in of]

    for column, heading, width in zip(columns, cells(column.heading for column in columns), widths, strict=True):
        table.add_column(heading, justify=column.justify, no_wrap=True, width=width)
    for row in rows:
        table.add_row(*cells(column.cell(row) for column in columns), style=style(row))
    return table
