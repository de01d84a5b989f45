"""What a page is about, and what it shows before it is rendered for a terminal, as HTML or as Markdown.

The modules of all that a page may be about are imported where there is such a thing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.result.section import Block, Cell, Gallery, Lines, Note, Picture, Section, Table, Tone
from evaltools.text import shortened

if TYPE_CHECKING:
    from evaltools.result.result import Result

MOST_NOTES: Final = 12
MOST_WARNINGS: Final = 12
MOST_LINES: Final = 40
MOST_ROWS: Final = 200
MOST_COLUMNS: Final = 24
MOST_FRAMES: Final = 24
"""Of a picture."""
MOST_PANELS: Final = 6
"""Of a picture."""
LONGEST_TEXT: Final = 600
"""In characters; longer ones lose their middle. Commands are never cut."""
BY_NEED: Final[tuple[Tone, ...]] = ("bad", "missing", "open", "near", "", "good")
"""What is to be seen first."""


class Sources(Struct, frozen=True):
    """What a page is about, each by its name.

    ``located`` are what searches found in the model of an evaluation, by that one's name.
    ``saved`` is what stands in the result files that there are, and ``folders`` where these lie.
    """

    results: Mapping[str, Result] = field(default_factory=dict)
    located: Mapping[str, Sequence[Result]] = field(default_factory=dict)
    saved: Mapping[str, bytes] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)


class Download(Struct, frozen=True):
    """A result file inside the page: ``saved`` as it is in its file, else the ``result`` itself."""

    name: str
    result: Any
    saved: bytes = b""


class First(Struct, frozen=True):
    """What the first screen says of one result, or of all results of one kind: the answer, one table, what is special.

    ``notes`` are about configurations that are not as they should be, ``steps`` say what to do next. ``source`` names
    the JSON result that the paths of its figures lead to; empty for several.
    """

    title: str
    blocks: tuple[Block, ...]
    notes: tuple[Note, ...] = ()
    steps: tuple[Note, ...] = ()
    source: str = ""


class Part(Struct, frozen=True):
    """The details of one result: ``source`` is its name, ``about`` in a few words what it is of.

    ``ran`` are about how it was run, which a page shows when it is asked. ``hints`` say what is not known, and the flag
    that brings it. ``folders`` are those from which relative names of files may be meant: where the command was given,
    where the result lies.
    """

    source: str
    about: str
    sections: tuple[Section, ...]
    ran: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    folders: tuple[Path, ...] = (Path(),)


class Page(Struct, frozen=True):
    """Plain texts, not yet escaped: the first screen, then the details of each result; ``below`` is the last line."""

    title: str
    first: tuple[First, ...]
    parts: tuple[Part, ...]
    below: str = ""

    @property
    def remarks(self) -> Lines:
        """Warnings, then what to do next, each once."""
        return Lines([*self.warnings.lines, *dict.fromkeys(step for first in self.first for step in first.steps)])

    @property
    def warnings(self) -> Lines:
        """Each once; of several parts with the names that they are about."""
        return Lines([Note("warning", text, "open") for text in _lines(self._warnings, MOST_WARNINGS, "warnings")])

    @property
    def _warnings(self) -> list[str]:
        found: dict[str, list[str]] = {}
        for part in self.parts:
            for warning in part.warnings:
                found.setdefault(warning, []).append(part.source)
        if len(self.parts) == 1:
            return list(found)
        return [f"{', '.join(of)}: {warning}" for warning, of in found.items()]


def merged(notes: Sequence[Note]) -> list[Note]:
    """The notes, of which those with the same text are one with all names, which have a comma where there are models.

    >>> merged([Note("a", "no GPU"), Note("b", "slow"), Note("c", "no GPU")])[0].of
    'a, c'
    """
    names: dict[tuple[str, Tone], list[str]] = {}
    for note in notes:
        names.setdefault((note.text, note.tone), []).append(note.of)
    return [
        Note(("; " if any(", " in name for name in of) else ", ").join(dict.fromkeys(of)), text, tone)
        for (text, tone), of in names.items()
    ]


def first_lines(texts: Sequence[str], most: int = 12) -> list[str]:
    """The first lines, and how many are left out.

    >>> first_lines(["a 1", "b 2", "c 3"], most=2)
    ['a 1', 'b 2', 'and 1 more']
    """
    return [*texts[:most], *([f"and {len(texts) - most} more"] if len(texts) > most else [])]


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


def bounded(part: Part) -> Part:
    """The part with as much as a page has room for."""
    shown, ran = (tuple(map(bounded_section, sections)) for sections in (part.sections, part.ran))
    return replace(part, sections=shown, ran=ran)


def bounded_first(first: First) -> First:
    """The first screen with as much as a page has room for; of notes, bad ones are kept before others."""
    notes = merged(first.notes)
    by_need = sorted(range(len(notes)), key=lambda place: BY_NEED.index(notes[place].tone))
    kept = [notes[place] for place in sorted(by_need[:MOST_NOTES])]
    left = some_of(len(kept), len(notes), "remarks")
    shown = [*(replace(note, text=shortened(note.text, LONGEST_TEXT)) for note in kept)]
    return replace(
        first,
        blocks=tuple(map(_block, first.blocks)),
        notes=(*shown, *([Note("and more", left)] if left else [])),
    )


def bounded_section(section: Section) -> Section:
    """The section with as many rows, columns and lines as a page has room for."""
    return replace(section, blocks=[_block(block) for block in section.blocks])


def _block(block: Block) -> Block:
    if isinstance(block, Lines):
        lines = [line if isinstance(line, Note) else line.strip() for line in block.lines if line]
        left = some_of(min(len(lines), MOST_LINES), len(lines), "lines")
        return Lines([*map(_line, lines[:MOST_LINES]), *([left] if left else [])])
    if isinstance(block, Gallery):
        return replace(block, pictures=list(map(_picture, block.pictures)))
    return bounded_table(block) if isinstance(block, Table) else block


def _line(line: str | Note) -> str | Note:
    if isinstance(line, Note):
        return replace(line, text=shortened(line.text, LONGEST_TEXT))
    return shortened(line, LONGEST_TEXT)


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
    rows = [[_cell(cell) for cell in row] if table.columns else row for row in table.rows[:MOST_ROWS]]
    left = (
        some_of(len(rows), len(table.rows), "rows"),
        some_of(min(len(table.columns), MOST_COLUMNS), len(table.columns), "columns"),
    )
    below = sentences(table.below, *left) if any(left) else table.below
    columns = range(min(len(table.columns), MOST_COLUMNS))
    shown = replace(table, rows=rows, below=below)
    return shown.of_columns(columns) if len(table.columns) > MOST_COLUMNS else shown


def _cell(cell: Cell) -> Cell:
    return shortened(cell, LONGEST_TEXT) if isinstance(cell, str) else cell
