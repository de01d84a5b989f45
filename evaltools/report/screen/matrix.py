"""A suite at a glance: a row for each model, a column for each configuration in each job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.report.screen.rows import ModelRow, is_lost
from evaltools.report.screen.table import SUITE, is_shown, word_of
from evaltools.report.words.facts import latency_of, model_name
from evaltools.report.words.numbers import in_milliseconds
from evaltools.result.result import Result, Row
from evaltools.result.section import Cell, Number, Table, Word

_MOST_COLUMNS: Final = 8


def matrix_of(results: Mapping[str, Result]) -> Table | None:
    """What became of each model: its verdict, or its time where only that was measured.

    None for anything but one suite, of one model, or of one or very many configurations, which a table shows better.
    """
    (result, *others) = results.values()
    if others or result.command != SUITE:
        return None
    cells: dict[str, dict[str, Cell]] = {}
    jobs = {row.job for row in result.rows}
    for row in filter(is_shown, result.rows):
        column = f"{row.job}: {row.name}" if len(jobs) > 1 else row.name
        cells.setdefault(model_name(result.models, row), {})[column] = _cell(result, row)
    columns = list(dict.fromkeys(column for by_column in cells.values() for column in by_column))
    if len(cells) < 2 or not 1 < len(columns) <= _MOST_COLUMNS:
        return None
    rows = [[name, *(by_column.get(column, "") for column in columns)] for name, by_column in cells.items()]
    return Table("Every model at a glance", ["model", *columns], rows, is_matrix=True)


def _cell(result: Result, row: Row) -> Cell:
    shown, time_ms = ModelRow("", result, row), latency_of(row)
    if row.verdict is None and time_ms is not None and shown.is_clean and not is_lost(shown):
        return Number(in_milliseconds(time_ms), time_ms)
    return Word(word_of(shown), shown.tone)
