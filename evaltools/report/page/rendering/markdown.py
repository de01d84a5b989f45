"""Blocks in Markdown, fit for a comment in a code review: answers, tables, no pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evaltools.report.page.content.page import Page
from evaltools.report.words.markdown import escape, escape_line, table
from evaltools.result.section import Block, Cell, Gallery, Lines, Note, Section, Sentence, Table, Word, text_of

_MOST_PICTURES: Final = 20
_PLACES: Final = ("accuracy", "numerics", "changes")


def markdown_of(page: Page) -> bytes:
    """UTF-8. The first screen, then the tables of each result; all else is in HTML."""
    several = len(page.parts) > 1
    lines = [f"# {escape(page.title)}"]
    for first in page.first:
        lines += [f"## {escape(first.title)}"] if len(page.first) > 1 else []
        lines += [text for block in first.blocks for text in _block(block)]
        lines += _block(Lines(first.notes)) if first.notes else []
    lines += _block(page.remarks) if page.remarks.lines else []
    for part in page.parts:
        for section in part.sections:
            if section.place in _PLACES or section.is_brief:
                lines += _section(section, part.source if several else "")
    lines += [escape_line(page.below)] if page.below else []
    return ("\n\n".join(lines) + "\n").encode(errors="replace")


def _section(section: Section, source: str = "") -> Iterator[str]:
    """``source`` is the result that it is of, where there are several."""
    texts = [text for block in section.blocks for text in _block(block)]
    if texts:
        yield f"## {escape(': '.join(filter(None, (source, section.title))))}"
        if section.intro:
            yield escape_line(section.intro)
    yield from texts


def _block(block: Block) -> Iterator[str]:
    """A table, a list, or of a gallery who says what; charts are left out, as their figures stand in tables."""
    if isinstance(block, Sentence):
        yield f"**{escape(block.text)}**"
    elif isinstance(block, Lines):
        yield "\n".join(f"* {_line(line)}" for line in block.lines)
    elif isinstance(block, Gallery):
        shown = block.pictures[:_MOST_PICTURES]
        rows = [[each.name, each.effect, "; ".join(each.lines)] for each in shown]
        yield table(["picture", "change", escape(block.caption)], [list(map(escape, row)) for row in rows])
    elif isinstance(block, Table):
        shown_table = block.compact
        rows = [list(map(_cell, row)) for row in shown_table.rows]
        columns = shown_table.columns or [""] * max(map(len, rows), default=0)
        yield table(list(map(escape, columns)), rows)
    if isinstance(block, Table | Gallery) and block.below:
        yield escape_line(block.below)


def _line(line: str | Note) -> str:
    return escape_line(line) if isinstance(line, str) else f"**{escape(line.of)}**: {escape(line.text)}"


def _cell(cell: Cell) -> str:
    return f"**{escape(cell.text)}**" if isinstance(cell, Word) else escape(text_of(cell))
