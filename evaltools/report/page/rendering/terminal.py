"""Blocks on a terminal: the first screen of a page, and with all detail everything on it but pictures.

Tables keep whole names and numbers: where it is narrow, columns are left out, never cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from evaltools.known_tasks import Detail
from evaltools.report.content import Page
from evaltools.result.section import (
    Block,
    Cell,
    Chart,
    Files,
    Gallery,
    Lines,
    Note,
    Number,
    Section,
    Sentence,
    Table,
    Tone,
    Word,
    text_of,
)
from evaltools.text import printable

_WIDEST_NAME: Final = 20
_LONGEST_WORD: Final = 16
_NARROWEST: Final = 4
_SHORT: Final = 9
_BETWEEN: Final = 2
"""Blanks between columns."""
STYLES: Final[Mapping[Tone, str]] = {
    "good": "green", "near": "dark_sea_green4", "open": "yellow", "bad": "bold red", "missing": "bright_black", "": "",
}  # fmt: skip
"""The style of each colour on a terminal."""
_WORD: Final = re.compile(
    r"[\d.]+ (?:%|ms|s|MB|GiB|dB|C|points?)(?!\S)|\[[^\]\s][^\]]*\]\S*|\([-+]?[\d.]+ to [-+]?[\d.]+\)\S*|\S+"
)
"""What stays in one line: a word, a number with its unit, and an interval in brackets."""
_PART: Final = re.compile(r"[^\s_\-./]*[_\-./]+|[^\s_\-./]+")


class _Column(Struct, frozen=True):
    """A column as it is printed; one that ``folds`` may take several lines, those with numbers stand to the right."""

    heading: str
    texts: Sequence[str]
    rank: int
    folds: bool
    is_right: bool
    is_name: bool

    @property
    def cells(self) -> Iterable[str]:
        """All texts, the heading first."""
        return (self.heading, *self.texts)

    def widest(self, size: Callable[[str], int] = cell_len) -> int:
        """The largest ``size`` of a text."""
        return max(map(size, self.cells))


def print_table(table: Table, console: Console, widest_name: int = _WIDEST_NAME) -> None:
    """Rows as wide as the console, names to the left; says what is not shown.

    A name of more than ``widest_name`` characters takes several lines before a column is left out for it, and so do
    texts with blanks; words of up to 16 stay whole as long as there is room. Numbers are never cut.
    """
    columns = _columns(table, hides_repeated=not console.soft_wrap)
    shown = list(columns)
    while True:
        narrow = [_narrowest(column, widest_name) for column in shown]
        optional = [column for column in shown if column.rank]
        if not optional or sum(narrow) + _BETWEEN * (len(shown) - 1) <= console.width:
            break
        shown.remove(max(optional, key=lambda column: column.rank))
    widths = _fitted(shown, console.width - _BETWEEN * (len(shown) - 1))
    grid = Grid(box=None, pad_edge=False, header_style="bold", show_header=bool(table.columns))
    for column, width in zip(shown, widths, strict=True):
        heading = _in_width(column.heading, column, width)
        grid.add_column(heading, justify="right" if column.is_right else "left", no_wrap=True, width=width)
    places = [columns.index(column) for column in shown]
    for number, row in enumerate(table.rows):
        cells = zip(shown, widths, places, strict=True)
        grid.add_row(*(Text(_in_width(of.texts[number], of, width), style=_style(row[at])) for of, width, at in cells))
    console.print(grid)
    if len(shown) < len(columns):
        headings = [column.heading for column in columns if column not in shown]
        console.print(f"a wider terminal also shows: {', '.join(headings)}", style="dim")


def _columns(table: Table, hides_repeated: bool) -> list[_Column]:
    """Of a table without headings, names and values; ``hides_repeated``: a name stands in the first of its rows."""
    width = len(table.columns) or max(map(len, table.rows), default=0)
    columns = []
    for place in range(width):
        cells = [row[place] for row in table.rows]
        is_name = place < table.names
        rank = table.ranks[place] if table.ranks else max(0, place - table.names + 1)
        is_right = not is_name and any(isinstance(cell, Number) for cell in cells)
        texts = [printable(text_of(cell)) for cell in cells]
        if place < table.names - 1 and hides_repeated:
            texts = ["" if _repeats(table, number, place) else text for number, text in enumerate(texts)]
        heading = printable(table.columns[place]) if table.columns else ""
        rank = rank if table.columns else 0
        folds = is_name or ((rank > 0 or not is_right) and any(" " in text for text in texts))
        columns.append(_Column(heading, texts, rank, folds, is_right, is_name))
    return columns


def _repeats(table: Table, number: int, place: int) -> bool:
    """Whether the names up to a column are those of the row above."""
    rows = table.rows
    return number > 0 and rows[number][: place + 1] == rows[number - 1][: place + 1]


def _style(cell: Cell) -> str:
    return STYLES[cell.tone] if isinstance(cell, Word) else ""


def _narrowest(column: _Column, widest_name: int) -> int:
    """What a column needs at least before another one is left out for it: a name some lines, all else two."""
    if column.is_name:
        return min(column.widest(), max(column.widest(_longest_word), widest_name))
    return column.widest(_in_two_lines) if column.folds else column.widest()


def _fitted(columns: Sequence[_Column], room: int) -> list[int]:
    """The widths, of which the widest of those that fold are made narrower until all fit.

    That is down to two lines, to words, to parts of words, then to less.
    """
    widths = [column.widest() for column in columns]
    for least in (_in_two_lines, _longest_word, _longest_part, lambda _text: _NARROWEST):
        floors = [column.widest(least) for column in columns]
        while sum(widths) > room:
            wide = [
                place for place, column in enumerate(columns) if column.folds and widths[place] > max(1, floors[place])
            ]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _in_two_lines(text: str) -> int:
    """The least width at which a text takes no more than two lines, broken between words; short ones take one.

    >>> _in_two_lines("not decided"), _in_two_lines("-2.50 points (-5.00 to -0.10)"), _in_two_lines("worse")
    (7, 16, 5)
    """
    if cell_len(text) <= _SHORT:
        return cell_len(text)
    words = _WORD.findall(text)
    halves = [(" ".join(words[:place]), " ".join(words[place:])) for place in range(1, len(words) + 1)]
    return min((max(map(cell_len, both)) for both in halves), default=0)


def _in_width(text: str, column: _Column, width: int) -> str:
    return folded(text, width) if column.folds and cell_len(text) > width else text


def _longest_word(text: str) -> int:
    return min(_LONGEST_WORD, max(map(cell_len, _WORD.findall(text)), default=0))


def _longest_part(text: str) -> int:
    return min(_LONGEST_WORD, max(map(cell_len, _PART.findall(text)), default=0))


def folded(text: str, width: int) -> str:
    """The text in lines of at most ``width``; a word that is longer breaks behind ``_``, ``-``, ``.`` or ``/`` first.

    >>> folded("mobilenet_v1_0.25_128 xnnpack", 13).splitlines()
    ['mobilenet_v1_', '0.25_128', 'xnnpack']
    >>> folded("0 points (-1.49 to 1.49)", 16).splitlines()
    ['0 points', '(-1.49 to 1.49)']
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


_MOST_PICTURES: Final = 20


def show_page(page: Page, console: Console, detail: Detail = "figures", hint: str = "") -> None:
    """The first screen without charts, then sections: with ``figures`` the short ones, with ``all`` every one.

    With ``answer`` there are no tables. ``hint`` says how to see what is not shown.
    """
    sections = [section for part in page.parts for section in (*part.sections, *part.ran)]
    shown = [section for section in sections if detail == "all" or (detail == "figures" and section.is_brief)]
    below_table = False
    for block in _first_blocks(page, detail):
        if below_table:
            console.print()
        show_block(block, console)
        below_table = isinstance(block, Table)
    for section in shown:
        show_section(section, console)
    if page.remarks.lines and (below_table or shown):
        console.print()
    show_block(page.remarks, console)
    if hint and detail == "figures":
        console.print(hint, style="dim")


def _first_blocks(page: Page, detail: Detail) -> Iterator[Block]:
    for first in page.first:
        for block in first.blocks:
            if isinstance(block, Sentence) or (detail != "answer" and not isinstance(block, Chart)):
                yield block
        if first.notes:
            yield Lines(first.notes)


def show_block(block: Block, console: Console, is_titled: bool = False) -> None:
    """``is_titled``: a table below its caption."""
    if isinstance(block, Sentence):
        console.print(Text(printable(block.text), style="bold"))
    elif isinstance(block, Lines):
        for line in block.lines:
            console.print(_line(line))
    elif isinstance(block, Table):
        _show_table(block, console, is_titled)
    elif isinstance(block, Chart):
        console.print(printable(f"{block.caption}: {block.text}" if block.text else block.caption))
        for text in block.lines:
            console.print(printable(f"  {text}"))
    elif isinstance(block, Gallery):
        _show_gallery(block, console)
    elif isinstance(block, Files):
        for file in block.files:
            console.print(printable(f"{file.name}: {file.about}"))


def show_section(section: Section, console: Console) -> None:
    """A section below its title, and an empty line above; charts at a glance are of pages."""
    if section.title:
        console.print()
        console.print(Text(printable(section.title), style="bold underline"))
    if section.intro:
        console.print(printable(section.intro))
    for block in section.blocks:
        if section.place != "glance" or not isinstance(block, Chart):
            show_block(block, console, is_titled=True)


def _show_table(table: Table, console: Console, is_titled: bool) -> None:
    shown = table.compact
    if is_titled and shown.caption:
        console.print(Text(printable(shown.caption), style="dim"))
    if not shown.columns and console.soft_wrap:
        _show_pairs(shown, console)
    else:
        print_table(shown, console)
    if shown.below:
        console.print(printable(shown.below))


def _show_pairs(table: Table, console: Console) -> None:
    """A line for each name and its values, however long."""
    width = max(len(text_of(row[0])) for row in table.rows)
    for name, *values in ([printable(text_of(cell)) for cell in row] for row in table.rows):
        console.print(Text(f"{name:<{width}}  {'  '.join(values)}"))


def _show_gallery(gallery: Gallery, console: Console) -> None:
    console.print(Text(printable(gallery.caption), style="dim"))
    for picture in gallery.pictures[:_MOST_PICTURES]:
        console.print(_line(Note(picture.name, "; ".join([picture.effect, *picture.lines]), picture.tone)))
    if gallery.below:
        console.print(printable(gallery.below))


def _line(line: str | Note) -> Text:
    if isinstance(line, str):
        return Text(printable(line))
    return Text.assemble((printable(line.of), STYLES[line.tone] or "bold"), f": {printable(line.line)}")
