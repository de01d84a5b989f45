"""What a page shows at most, whatever a result or a task from outside gives; what is left out is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.report.page.content.page import Part, Saying, sentences, some_of
from evaltools.result.section import Block, Cell, Gallery, Lines, Picture, Section, Table
from evaltools.text import shortened

MOST_SAYINGS: Final = 12
MOST_WARNINGS: Final = 12
MOST_LINES: Final = 40
MOST_ROWS: Final = 200
MOST_COLUMNS: Final = 24
MOST_FRAMES: Final = 24
"""Of a picture."""
MOST_PANELS: Final = 6
"""Of a picture."""
LONGEST_FACT: Final = 320
"""On the first screen, in characters; what is longer stands whole in a section."""
LONGEST_TEXT: Final = 600
"""In characters; longer ones lose their middle. Commands are never cut."""
_TONES: Final = ("bad", "open", "", "good")


def bounded(part: Part) -> Part:
    """The part with as much as a page has room for."""
    return replace(
        part,
        sayings=_sayings(part.sayings),
        warnings=tuple(_lines(part.warnings, MOST_WARNINGS, "warnings")),
        sections=tuple(map(bounded_section, part.sections)),
        tables=tuple(map(bounded_section, part.tables)),
    )


def bounded_section(section: Section) -> Section:
    """The section with as many rows, columns and lines as a page has room for."""
    return replace(section, blocks=[_block(block) for block in section.blocks])


def _sayings(sayings: Sequence[Saying]) -> tuple[Saying, ...]:
    """Bad ones stay first of all, then open ones; all keep their order."""
    by_need = sorted(range(len(sayings)), key=lambda place: _TONES.index(sayings[place].tone))
    kept = [_short(sayings[place]) for place in sorted(by_need[:MOST_SAYINGS])]
    left = some_of(len(kept), len(sayings), "configurations")
    return (*kept, *([Saying("and more", "", left)] if left else []))


def _short(said: Saying) -> Saying:
    facts = tuple((question, shortened(answer, LONGEST_FACT)) for question, answer in said.facts)
    return replace(said, said=shortened(said.said, LONGEST_TEXT), facts=facts)


def _block(block: Block) -> Block:
    if isinstance(block, Lines):
        return Lines(_lines(block.lines, MOST_LINES, "lines"))
    if isinstance(block, Gallery):
        return replace(block, pictures=list(map(_picture, block.pictures)))
    return _table(block) if isinstance(block, Table) else block


def _picture(picture: Picture) -> Picture:
    left = (
        some_of(min(len(picture.frames), MOST_FRAMES), len(picture.frames), "boxes"),
        some_of(min(len(picture.panels), MOST_PANELS), len(picture.panels), "small pictures"),
    )
    lines = _lines([*picture.lines, *filter(None, left)], MOST_LINES, "lines")
    panels = [replace(panel, name=shortened(panel.name, LONGEST_TEXT)) for panel in picture.panels[:MOST_PANELS]]
    return replace(picture, frames=picture.frames[:MOST_FRAMES], lines=lines, panels=panels)


def _lines(lines: Sequence[str], most: int, what: str) -> list[str]:
    left = some_of(min(len(lines), most), len(lines), what)
    return [*(shortened(line, LONGEST_TEXT) for line in lines[:most]), *([left] if left else [])]


def _table(table: Table) -> Table:
    rows = [[_cell(cell) for cell in row[:MOST_COLUMNS]] if table.columns else row for row in table.rows[:MOST_ROWS]]
    left = (
        some_of(len(rows), len(table.rows), "rows"),
        some_of(min(len(table.columns), MOST_COLUMNS), len(table.columns), "columns"),
    )
    below = sentences(table.below, *left) if any(left) else table.below
    return replace(table, columns=table.columns[:MOST_COLUMNS], rows=rows, below=below)


def _cell(cell: Cell) -> Cell:
    return shortened(cell, LONGEST_TEXT) if isinstance(cell, str) else cell
