"""What stands on a page, before it is rendered as HTML or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from evaltools.result.section import Chart, Section, Table, Tone


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
    """Plain texts, not yet escaped; ``together`` are sections over several results, ``below`` the last line."""

    title: str
    parts: tuple[Part, ...]
    together: tuple[Section, ...] = ()
    below: str = ""

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
