"""Blocks on a terminal: the first screen of a page, and with all detail everything on it but pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.console import Console
from rich.text import Text

from evaltools.known_tasks import Detail
from evaltools.report.content import Page
from evaltools.report.page.rendering.columns import STYLES, print_table
from evaltools.result.section import Block, Chart, Files, Gallery, Lines, Note, Section, Sentence, Table, text_of
from evaltools.text import printable

_MOST_PICTURES: Final = 20


def show_page(page: Page, console: Console, detail: Detail = "figures", hint: str = "") -> None:
    """The first screen without charts, then sections: with ``figures`` the short ones, with ``all`` every one.

    With ``answer`` there are no tables. ``hint`` says how to see what is not shown.
    """
    sections = [section for part in page.parts for section in part.sections]
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
        console.print(printable(f"{block.caption}: {block.text}"))
    elif isinstance(block, Gallery):
        _show_gallery(block, console)
    elif isinstance(block, Files):
        for file in block.files:
            console.print(printable(f"{file.name}: {file.about}"))


def show_section(section: Section, console: Console) -> None:
    """A section below its title, of which an empty line parts it from what is above."""
    if section.title:
        console.print()
        console.print(Text(printable(section.title), style="bold underline"))
    if section.intro:
        console.print(printable(section.intro))
    for block in section.blocks:
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
    return Text.assemble((printable(line.of), STYLES[line.tone] or "bold"), f": {printable(line.text)}")
