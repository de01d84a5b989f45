"""The first screen of a page in Markdown, fit for a comment in a code review: answers, tables, no pictures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evaltools.report.page.content.page import Page, Part, Saying, compact
from evaltools.report.words.markdown import escape, escape_line, table
from evaltools.result.section import Block, Cell, Gallery, Lines, Section, Table

_MOST_PICTURES: Final = 20
_PLACES: Final = ("accuracy", "numerics", "changes")


def markdown_of(page: Page) -> bytes:
    """UTF-8. The answers, what is said of several results together, then the tables of each; all else is in HTML."""
    several = len(page.parts) > 1 or bool(page.together)
    lines = [f"# {escape(page.title)}"]
    lines += [escape_line(page.answer)] if page.answer else []
    lines += _block(page.summary) if page.summary is not None else []
    for part in page.parts:
        lines += [f"## {escape(part.about)} ({escape(part.source)})"] if several else []
        lines += _part(part)
    for section in page.together:
        lines += _section(section)
    for part in page.parts:
        for section in part.sections:
            if section.place in _PLACES or section in part.tables:
                lines += _section(section, part.source if several else "")
    lines += [escape_line(page.below)] if page.below else []
    return ("\n\n".join(lines) + "\n").encode(errors="replace")


def _part(part: Part) -> Iterator[str]:
    yield "\n".join(line for said in part.sayings for line in _saying(said))
    steps = dict.fromkeys(step for said in part.sayings for step in said.next_steps)
    if steps:
        yield "\n".join(f"* next: {escape(step)}" for step in steps)
    if part.advice:
        yield f"* what takes the time: {escape(part.advice)}"
    if part.warnings:
        yield "\n".join(f"* warning: {escape(warning)}" for warning in part.warnings)


def _saying(said: Saying) -> Iterator[str]:
    yield f"* **{escape(said.of)}**: {escape(said.said)}"
    for question, answer in said.facts:
        yield f"  * {escape_line(question)}: {escape(answer)}"


def _section(section: Section, source: str = "") -> Iterator[str]:
    """``source`` is the result that it is of, where there are several."""
    told = [text for block in section.blocks for text in _block(block)]
    if told:
        yield f"## {escape(': '.join(filter(None, (source, section.title))))}"
        if section.lead:
            yield escape_line(section.lead)
    yield from told


def _block(block: Block) -> Iterator[str]:
    """A table, a list, or of a gallery who says what; charts are left out, as their figures stand in tables."""
    if isinstance(block, Lines):
        yield "\n".join(f"* {escape_line(line)}" for line in block.lines)
    elif isinstance(block, Gallery):
        shown = block.pictures[:_MOST_PICTURES]
        rows = [[each.name, each.effect, "; ".join(each.lines)] for each in shown]
        yield table(["picture", "change", escape(block.caption)], [list(map(escape, row)) for row in rows])
    elif isinstance(block, Table):
        shown_table = compact(block)
        rows = [list(map(_cell, row)) for row in shown_table.rows]
        columns = shown_table.columns or [""] * max(map(len, rows), default=0)
        yield table(list(map(escape, columns)), rows)
    if isinstance(block, Table | Gallery) and block.below:
        yield escape_line(block.below)


def _cell(cell: Cell) -> str:
    return escape(cell if isinstance(cell, str) else cell.text)
