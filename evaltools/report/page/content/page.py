"""What stands on a page, before it is rendered as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.result.section import Block, Cell, Chart, Gallery, Lines, Picture, Section, Table, Tone
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


class Saying(Struct, frozen=True):
    """What is said of a configuration on the first screen.

    ``facts`` are pairs of a question and its answer: how sure, how fast, did it run. ``next_steps`` say what to do.
    """

    of: str
    tone: Tone
    said: str
    facts: tuple[tuple[str, str], ...] = ()
    next_steps: tuple[str, ...] = ()


class Download(Struct, frozen=True):
    """A result file inside the page; ``content`` is None for one that is too large, as ``note`` says."""

    name: str
    content: bytes | None
    note: str = ""


class Part(Struct, frozen=True):
    """What is told of one result: ``source`` is its name, ``about`` in a few words what it is of.

    ``hints`` say what is not known, and the flag that brings it. ``tables`` are sections that Markdown has as well as
    those that stand at accuracy, numerics and changes. ``folders`` are those from which relative names of files may be
    meant: where the command was given, where the result lies.
    """

    source: str
    about: str
    sayings: tuple[Saying, ...]
    sections: tuple[Section, ...]
    overview: Chart | None = None
    advice: str = ""
    warnings: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    tables: tuple[Section, ...] = ()
    folders: tuple[Path, ...] = (Path(),)


class Page(Struct, frozen=True):
    """Plain texts, not yet escaped; ``together`` are sections over several results, ``below`` the last line.

    ``answer`` is a sentence that answers, ``summary`` a table of all configurations; without evaluations of one task
    there is neither.
    """

    title: str
    parts: tuple[Part, ...]
    together: tuple[Section, ...] = ()
    below: str = ""
    answer: str = ""
    summary: Table | None = None

    @property
    def warnings(self) -> list[str]:
        """Each warning once, of several parts with the names of those that it is about."""
        found: dict[str, list[str]] = {}
        for part in self.parts:
            for warning in part.warnings:
                found.setdefault(warning, []).append(part.source)
        if len(self.parts) == 1:
            return list(found)
        return [f"{', '.join(of)}: {warning}" for warning, of in found.items()]


def compact(table: Table) -> Table:
    """The table without columns in which all cells are empty.

    >>> compact(Table("", ("a", "b", "c"), [("1", "", "2"), ("3", "", "")])).columns
    ['a', 'c']
    """
    kept = [place for place in range(len(table.columns)) if any(row[place] for row in table.rows)]
    if not table.columns or not table.rows:
        return table
    rows = [[row[place] for place in kept] for row in table.rows]
    return replace(table, columns=[table.columns[place] for place in kept], rows=rows)


def first_few(told: Sequence[str], most: int = 5) -> str:
    """A sentence of the first entries, and how many are left out.

    >>> first_few(["a 1", "b 2", "c 3"], most=2)
    'a 1; b 2; and 1 more.'
    """
    more = [f"and {len(told) - most} more"] if len(told) > most else []
    return f"{'; '.join([*told[:most], *more])}."


def some_of(shown: int, total: int, what: str) -> str:
    """That only some are shown; empty where all are.

    >>> some_of(12, 40, "outputs"), some_of(3, 3, "outputs")
    ('12 of 40 outputs shown, all in the JSON result', '')
    """
    return f"{shown} of {total} {what} shown, all in the JSON result" if shown < total else ""


def sentences(*texts: str) -> str:
    """Each that is not empty, as a sentence.

    >>> sentences("12 of 40 outputs shown", "", "a: 0.1.")
    '12 of 40 outputs shown. a: 0.1.'
    """
    return " ".join(f"{text.rstrip('.')}." for text in texts if text)


def each_step_once(sayings: Sequence[Saying]) -> tuple[Saying, ...]:
    """The sayings, without steps that an earlier one has already."""
    known: set[str] = set()
    found = []
    for said in sayings:
        found.append(replace(said, next_steps=tuple(step for step in said.next_steps if step not in known)))
        known |= set(said.next_steps)
    return tuple(found)


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
    return bounded_table(block) if isinstance(block, Table) else block


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


def bounded_table(table: Table) -> Table:
    """The table with as many rows and columns as a page has room for."""
    rows = [[_cell(cell) for cell in row[:MOST_COLUMNS]] if table.columns else row for row in table.rows[:MOST_ROWS]]
    left = (
        some_of(len(rows), len(table.rows), "rows"),
        some_of(min(len(table.columns), MOST_COLUMNS), len(table.columns), "columns"),
    )
    below = sentences(table.below, *left) if any(left) else table.below
    return replace(table, columns=table.columns[:MOST_COLUMNS], rows=rows, below=below)


def _cell(cell: Cell) -> Cell:
    return shortened(cell, LONGEST_TEXT) if isinstance(cell, str) else cell
