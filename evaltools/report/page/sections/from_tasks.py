"""The sections that a task adds, made fit for a page: tasks from outside may give anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Number, Place, Section, Table
from evaltools.task_kind import TaskKind, tree_kinds


def own_sections(kind: TaskKind, result: EvaluationResult) -> list[Section]:
    """Those with blocks; none of a task whose report has no ``sections``.

    Raises :class:`UsageError`, which names the task, where a task from outside fails, or gives what no section is.
    """
    if kind.name in tree_kinds():
        return [section for section in kind.report.sections(result) if section.blocks]
    try:
        make = getattr(kind.report, "sections", None)
        return [] if make is None else [_fit(section) for section in make(result) if section.blocks]
    except Exception as error:  # whatever the code of others raises
        raise UsageError(
            f"task {kind.name!r}: the sections of its report cannot be shown: {error!r}; sections(result) must give "
            "a list of evaltools.result.section.Section"
        ) from error


def _fit(section: Section) -> Section:
    blocks = [_fit_table(block) if isinstance(block, Table) else _known(block) for block in section.blocks]
    place: Place = section.place if section.place in get_args(Place) else "task"
    return replace(section, title=str(section.title), blocks=blocks, place=place)


def _known(block: Any) -> Block:
    if not isinstance(block, get_args(Block)):
        raise TypeError(f"{type(block).__name__} is no block of a section")
    found: Block = block
    return found


def _fit_table(table: Table) -> Table:
    """The table with texts and numbers as its cells, and rows of one length."""
    width = max(map(len, (table.columns, *table.rows)))
    columns = _padded([str(column) for column in table.columns], width) if table.columns else []
    rows = [_padded([_cell(cell) for cell in row], width) for row in table.rows]
    return replace(table, caption=str(table.caption), columns=columns, rows=rows)


def _padded(cells: Sequence[Any], width: int) -> list[Any]:
    return [*cells, *[""] * (width - len(cells))]


def _cell(cell: Any) -> Cell:
    return replace(cell, text=str(cell.text)) if isinstance(cell, Number) else str(cell)
