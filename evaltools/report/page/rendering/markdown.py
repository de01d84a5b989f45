"""Blocks in Markdown, fit for a comment in a code review: answers, tables, no pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from evaltools.report.content import Page
from evaltools.result.section import Block, Cell, Gallery, Lines, Note, Section, Sentence, Table, Word, text_of
from evaltools.text import printable

_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_MARKED: Final = re.compile(r"([\\`*_\[\]!~$])")
_NAMES_SOMEBODY: Final = re.compile(r"(?<!\w)@(?=\w)|@(?=[\w-]+\.\w)|(?<!&)#(?=\d)")
"""What hosts of code make a mention, an address or a link of, whatever stands before it."""
_NOTHING: Final = "<!-- -->"
_ENDS_HEADING: Final = re.compile(r"#(?=#*$)")
_BEGINS_BLOCK: Final = re.compile(r"^([-+=#]|\d{1,9}(?=[.)]))")
_MOST_PICTURES: Final = 20
_PLACES: Final = ("accuracy", "numerics", "changes")


def escape(text: str) -> str:
    r"""A text of one line that reads in Markdown as it is, within a line or a cell.

    >>> escape("a|b <c> *d*")
    'a&#124;b &lt;c&gt; \\*d\\*'
    >>> escape("red \x1b[31m")
    'red \\\\x1b\\[31m'
    >>> escape("@team: #3 is wrong")
    '@<!-- -->team: #<!-- -->3 is wrong'
    """
    marked = _MARKED.sub(r"\\\1", printable(" ".join(text.split())))
    plain = "".join(_ENTITIES.get(character, character) for character in marked)
    return _ENDS_HEADING.sub(r"\#", _NAMES_SOMEBODY.sub(lambda found: found[0] + _NOTHING, plain))


def escape_line(text: str) -> str:
    r"""The same where it begins a line or an item, and could begin a list, a heading or a rule.

    >>> escape_line("- a"), escape_line("# b"), escape_line("1. c"), escape_line("2 d")
    ('\\- a', '\\# b', '1\\. c', '2 d')
    """
    plain = escape(text)
    return _BEGINS_BLOCK.sub(lambda found: f"{found[0]}\\" if found[0].isdigit() else f"\\{found[0]}", plain)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are Markdown already.

    >>> print(table(["name", "top1"], [["xnnpack", "**90 %**"]]))
    | name | top1 |
    | --- | --- |
    | xnnpack | **90 %** |
    """
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows))


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
        yield table_of(block)
    if isinstance(block, Table | Gallery) and block.below:
        yield escape_line(block.below)


def table_of(block: Table) -> str:
    """A table without what stands below it."""
    shown = block.compact
    rows = [list(map(_cell, row)) for row in shown.rows]
    columns = shown.columns or [""] * max(map(len, rows), default=0)
    return table(list(map(escape, columns)), rows)


def _line(line: str | Note) -> str:
    if isinstance(line, str):
        return escape_line(line)
    return f"**{escape(line.of)}**: {' '.join(filter(None, (_code(line.command), escape(line.text))))}"


def _code(command: str) -> str:
    r"""A command as code; as text where it has what may end code or begin a tag.

    >>> _code("evaltools doctor"), _code("a`b")
    ('`evaltools doctor`', 'a\\`b')
    """
    if set("`<") & set(command):
        return escape(command)
    return f"`{printable(command)}`" if command else ""


def _cell(cell: Cell) -> str:
    return f"**{escape(cell.text)}**" if isinstance(cell, Word) else escape(text_of(cell))
