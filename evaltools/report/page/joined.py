"""The first screens of results; those of several of one command are one, whose table has the rows of all."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.report.content import First
from evaltools.result.places import machine_of
from evaltools.result.result import HINT, NEXT, WARNING, Result
from evaltools.result.section import Block, Cell, Number, Sentence, Table

_FACTS: Final = {"machine": "{}", "versions": "{}"}


def first_of_results(results: Mapping[str, Result]) -> list[First]:
    """One for each command."""
    commands = dict.fromkeys(result.command for result in results.values())
    return [_first({name: each for name, each in results.items() if each.command == own}, own) for own in commands]


def _first(results: Mapping[str, Result], command: str) -> First:
    found = {name: [block for each in result.blocks if each.place == "first" for block in each.blocks]
             for name, result in results.items()}  # fmt: skip
    several = len(results) > 1
    notes = [
        replace(note, of=f"{name}, {note.of}") if several else note
        for name, result in results.items()
        for note in result.notes
        if note.of not in (WARNING, NEXT, HINT)
    ]
    steps = [note.text for result in results.values() for note in result.notes if note.of == NEXT]
    blocks = _joined(found, results) if several else next(iter(found.values()))
    return First(command, tuple(blocks), tuple(notes), tuple(steps), "" if several else next(iter(results)))


def _joined(found: Mapping[str, Sequence[Block]], results: Mapping[str, Result]) -> list[Block]:
    """The sentences, each with the name of its result, and one table; then all other blocks."""
    every = [(name, block) for name, blocks in found.items() for block in blocks]
    sentences = " ".join(f"{name}: {block.text}" for name, block in every if isinstance(block, Sentence))
    tables = {name: block for name, block in every if isinstance(block, Table)}
    others = [block for _, block in every if not isinstance(block, Sentence | Table)]
    joined = [_table(tables, results)] if tables else []
    return [*([Sentence(sentences)] if sentences else []), *joined, *others]


def _table(tables: Mapping[str, Table], results: Mapping[str, Result]) -> Table:
    """All columns that any of them has; what distinguishes the results stands at the end."""
    ranks = {
        column: rank
        for table in tables.values()
        for column, rank in zip(table.columns, table.ranks or [0] * len(table.columns), strict=True)
    }
    columns = sorted(ranks, key=lambda column: ranks[column] > 0)
    first = next(iter(tables.values()))
    found: list[dict[str, Cell]] = []
    for name, table in tables.items():
        beside = {"result": name, "machine": _machine(results[name]), "versions": _versions(results[name])}
        found += [{**dict(zip(table.columns, map(_without_path, row), strict=True)), **beside} for row in table.rows]
    if first.sorted_by:
        found.sort(key=lambda cells: _value(cells.get(first.sorted_by, "")))
    headings = ["result", *columns, *_FACTS]
    return Table(
        first.caption,
        headings,
        [[cells.get(heading, "") for heading in headings] for cells in found],
        " ".join(dict.fromkeys(table.below for table in tables.values() if table.below)),
        1 + max(table.names for table in tables.values()),
        [0, *(ranks[column] for column in columns), *(max(ranks.values()) + place for place in (1, 2))],
    ).with_facts(_FACTS)


def _machine(result: Result) -> str:
    return machine_of(result.environment, result.device_run)


def _versions(result: Result) -> str:
    """Those of evaltools and of the runtimes that ran rows."""
    used = (f"{row.runtime.package} {row.runtime.version}" for row in result.rows if row.runtime is not None)
    return ", ".join(dict.fromkeys([f"evaltools {result.environment.evaltools}", *used]))


def _value(cell: Cell) -> float:
    """The number in a cell, above all others where there is none."""
    return math.inf if not isinstance(cell, Number) or cell.value is None else cell.value


def _without_path(cell: Cell) -> Cell:
    return replace(cell, path="") if isinstance(cell, Number) else cell
