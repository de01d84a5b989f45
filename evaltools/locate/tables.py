"""The operators that a search looked at: those that stand out as a table, and how to read it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.locate.rows import ACCUMULATED, IN_FLOAT, RANK, SINGLE, error_in_words, index_of, is_endless, share
from evaltools.locate.words import is_by_name, operators_of
from evaltools.report.content import sentences
from evaltools.result.result import Result, Row
from evaltools.result.section import Cell, Number, Table, Word, number_cell
from evaltools.text import shortened

_MOST_ROWS: Final = 24
_MANY_TIMES: Final = 10.0
_MOST_ORDINARY: Final = 6
"""Rows, where nothing stands out."""
_LONGEST_NAME: Final = 40
_ORDINARY: Final = ("right", "stays on the CPU", "computes from constants", "precision")
_INTRO: Final = (
    "By itself: the largest error of an operator that is fed with the CPU's numbers; relative RMS: that error by the "
    "size of the output, 0 within one step. In the model: with all errors before it."
)
_INTRO_OF_GROWTH: Final = " Growth: the relative RMS there by that of what it was fed."
_INTRO_BY_NAME: Final = (
    "Each tensor compared with the one of that name elsewhere, in real numbers and with all errors before it: a growth "
    "far above 1 shows where the error grows."
)
_INTRO_OF_TWO: Final = " By itself: a layer that is fed with the other model's numbers."
_INTRO_IN_FLOAT: Final = " In float: what the model gains where only this layer is computed in float."


def operators_table(result: Result) -> Table | None:
    """The operators that stand out; None where none was looked at."""
    if not operators_of(result):
        return None
    table = _compared(result) if is_by_name(result) else _suspects(result)
    return replace(table, below=sentences(table.below, _how_to_read(result)))


def _how_to_read(result: Result) -> str:
    """What the columns of the table are."""
    operators = operators_of(result)
    if not is_by_name(result):
        return _INTRO + (_INTRO_OF_GROWTH if _have(operators, "gain") else "")
    if not _have(operators, SINGLE):
        return _INTRO_BY_NAME
    return _INTRO_BY_NAME + _INTRO_OF_TWO + (_INTRO_IN_FLOAT if _have(operators, IN_FLOAT) else "")


def _have(operators: Sequence[Row], name: str) -> bool:
    """Whether one of them has a figure."""
    return any(name in row.figures for row in operators)


def _suspects(result: Result) -> Table:
    operators, answer = operators_of(result), result.rows[0].verdicts[0].texts[0]
    shown = _standing_out(operators)
    rows: list[Sequence[Cell]] = []
    for row in shown:
        path = _path(row, result)
        rows.append(
            [
                number_cell(index_of(row), path=f"{path}/counts/index"),
                row.texts["operator"],
                shortened(row.texts["tensor"], _LONGEST_NAME),
                row.texts.get("ran_on", ""),
                _error(row, SINGLE, path),
                *(_figure(row, name, path) for name in ("size", "tolerance")),
                _of_tolerance(share(row)),
                _error(row, ACCUMULATED, path),
                _figure(row, "gain", path),
                _status(row, answer),
            ]
        )
    columns = (
        "#", "operator", "tensor", "ran on", "by itself", "relative RMS", "tolerance", "of tolerance", "in the model",
        "growth", "status",
    )  # fmt: skip
    ranks = (0, 0, 5, 4, 1, 3, 6, 2, 7, 8, 0)
    left = Counter(row.texts["status"] for row in operators if row not in shown)
    kinds = ", ".join(f"{count} {status}" for status, count in left.items())
    below = f"and {sum(left.values())} more operators, all in the JSON result: {kinds}" if left else ""
    return Table("The operators furthest off", columns, rows, below, 3, ranks)


def _of_tolerance(found: float | None) -> Cell:
    """A share of what is tolerated; far beyond it as so many times.

    >>> _of_tolerance(0.999), _of_tolerance(314573.2)
    (Number(text='99.9 %', value=0.999, path=''), Number(text='314573x', value=314573.2, path=''))
    """
    if found is None or math.isinf(found):
        return ""
    return Number(f"{found:.0f}x" if found >= _MANY_TIMES else f"{100 * found:.3g} %", found)


def _path(row: Row, result: Result) -> str:
    return f"rows/{result.rows.index(row)}"


def _figure(row: Row, name: str, path: str) -> Cell:
    return number_cell(row.value(name), "{:.3g}".format, f"{path}/figures/{name}/value", absent="")


def _status(row: Row, answer: str) -> Cell:
    """With its reason; one that the ``answer`` has as well is not repeated."""
    why = row.texts.get("why", "")
    said = ", as the answer says" if why in answer else f": {why}"
    text = f"{row.texts['status']}{said if why else ''}"
    return (
        text if row.texts["status"] in _ORDINARY else Word(text, "open" if row.texts["status"] == "unclear" else "bad")
    )


def _compared(result: Result) -> Table:
    """What the search for a fault has no columns for: nothing is tolerated."""
    operators = operators_of(result)
    computed = [row for row in operators if row.texts["status"] != "computes from constants"]
    shown = sorted(sorted(computed, key=_growth)[:_MOST_ROWS], key=index_of)
    more = ("by itself", "weights", "in float") if _have(operators, IN_FLOAT) else ("by itself", "weights")
    names = ("single_sqnr_db", "weights_sqnr_db", IN_FLOAT)[: len(more)]
    ran_singly = _have(operators, SINGLE)
    rows: list[Sequence[Cell]] = []
    for row in shown:
        path, status = _path(row, result), row.texts["status"]
        rows.append(
            [
                number_cell(index_of(row), path=f"{path}/counts/index"),
                row.texts["operator"],
                shortened(row.texts["tensor"], _LONGEST_NAME),
                _error(row, ACCUMULATED, path),
                _figure(row, "gain", path),
                _decibels(row, "accumulated_sqnr_db", path),
                *(_decibels(row, name, path) for name in names if ran_singly),
                "" if status == "compared" else row.texts.get("why", status),
            ]
        )
    columns = ("#", "operator", "tensor", "largest error", "growth", "SQNR", *(more if ran_singly else ()))
    left = len(computed) - len(shown)
    below = f"and {left} more operators, where it grows less, in the JSON result" if left else ""
    return Table("Operators where the error grows most", (*columns, "why not compared"), rows, below, 3)


def _growth(row: Row) -> tuple[bool, bool, float]:
    """First what is no number, then what is to be kept in float, then where the error grows most."""
    return not is_endless(row, ACCUMULATED), RANK not in row.counts, -(row.value("gain") or 0.0)


def _decibels(row: Row, name: str, path: str) -> Cell:
    return number_cell(row.value(name), "{:.1f} dB".format, f"{path}/figures/{name}/value", absent="")


def _error(row: Row, name: str, path: str) -> Cell:
    text = error_in_words(row, name)
    if name not in row.figures or is_endless(row, name):
        return text
    return Number(text, row.value(name), f"{path}/figures/{name}/value")


def _standing_out(operators: Sequence[Row]) -> list[Row]:
    """The operators that are not right, then of the others those furthest off, the worst first."""
    ranked = sorted(operators, key=lambda row: -(share(row) or 0.0))
    strange = [row for row in ranked if row.texts["status"] not in _ORDINARY]
    others = [row for row in ranked if row.texts["status"] in _ORDINARY]
    return strange[:_MOST_ROWS] + others[: 0 if strange else _MOST_ORDINARY]
