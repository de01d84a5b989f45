"""The operators that a search looked at: those that stand out as a table, and how to read it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.result.locate import Errors, LocateResult, Operator, Unit
from evaltools.result.section import Cell, Number, Table, number_cell
from evaltools.text import shortened, steps

_MOST_ROWS: Final = 24
_LONGEST_NAME: Final = 40
_LONGEST_QUOTED: Final = 60
_QUOTED: Final = re.compile(f"(?<!\\w)'([^']{{{_LONGEST_QUOTED},}})'")
BY_NAME: Final = "compared by name"
"""The verdict where tensors were compared with others of the same name, and no operator was run by itself."""
_ORDINARY: Final = ("right", "stays on the CPU", "computes from constants", "precision")
_INTRO: Final = (
    "Single: the largest error of an operator by itself, with the CPU's inputs; size: its relative root mean square, 0 "
    "within one step. In the model: with all errors before it."
)
_INTRO_BY_NAME: Final = (
    "Each tensor compared with the one of that name elsewhere, in real numbers and with all errors before it: a gain "
    "far above 1 shows where the error grows."
)
_INTRO_OF_TWO: Final = " Single: a layer by itself, fed with the other model's numbers."
_INTRO_IN_FLOAT: Final = " In float: what the model gains where only this layer is computed in float."


def operators_table(result: LocateResult) -> Table | None:
    """The operators that stand out; None where none was looked at."""
    if not result.operators:
        return None
    return _compared(result) if result.verdict.kind == BY_NAME else _suspects(result)


def how_to_read(result: LocateResult) -> str:
    """What the columns of the table are; empty where there is none."""
    if not result.operators:
        return ""
    is_by_name = result.verdict.kind == BY_NAME
    intro = _INTRO_BY_NAME if is_by_name else _INTRO
    if is_by_name and were_run_singly(result):
        intro += _INTRO_OF_TWO + (_INTRO_IN_FLOAT if gains_in_float(result) else "")
    return intro


def _suspects(result: LocateResult) -> Table:
    rows: list[Sequence[Cell]] = []
    places = {operator.index: place for place, operator in enumerate(result.operators)}
    shown = shown_operators(result)
    for operator in shown:
        path = f"operators/{places[operator.index]}"
        rows.append(
            [
                number_cell(operator.index, path=f"{path}/index"),
                operator.name,
                shortened(operator.tensor, _LONGEST_NAME),
                operator.ran_on,
                _error(operator.local, operator.unit, f"{path}/local/worst"),
                number_cell(operator.size, "{:.3g}".format, f"{path}/size", absent=""),
                number_cell(operator.tolerance, "{:.3g}".format, f"{path}/tolerance", absent=""),
                _error(operator.accumulated, operator.unit, f"{path}/accumulated/worst"),
                number_cell(operator.gain, "{:.3g}".format, f"{path}/gain", absent=""),
                _status(operator, result.verdict.reason),
            ]
        )
    columns = ("#", "operator", "tensor", "ran on", "single", "size", "tolerance", "in the model", "gain", "status")
    ranks = (0, 0, 5, 4, 1, 3, 2, 6, 7, 0)
    return Table("Operators that stand out", columns, rows, _left_out(result, shown), 3, ranks)


def _status(operator: Operator, answer: str) -> str:
    """With its reason; one that the ``answer`` has as well is not repeated."""
    if not operator.reason:
        return operator.status
    return f"{operator.status}{', as the answer says' if operator.reason == answer else f': {operator.reason}'}"


def _left_out(result: LocateResult, shown: Sequence[Operator]) -> str:
    places = {operator.index for operator in shown}
    left = Counter(operator.status for operator in result.operators if operator.index not in places)
    kinds = ", ".join(f"{count} {status}" for status, count in left.items())
    return f"and {sum(left.values())} more operators, all in the JSON result: {kinds}" if left else ""


def _compared(result: LocateResult) -> Table:
    """What the search for a fault has no columns for: nothing is tolerated."""
    shown, left = compared_operators(result)
    ran_singly, gains = were_run_singly(result), gains_in_float(result)
    places = {operator.index: place for place, operator in enumerate(result.operators)}
    rows: list[Sequence[Cell]] = []
    for operator in shown:
        path, found = f"operators/{places[operator.index]}", operator.accumulated
        rows.append(
            [
                number_cell(operator.index, path=f"{path}/index"),
                operator.name,
                shortened(operator.tensor, _LONGEST_NAME),
                _error(found, "absolute", f"{path}/accumulated/worst"),
                number_cell(operator.gain, "{:.3g}".format, f"{path}/gain", absent=""),
                number_cell(None if found is None else found.sqnr_db, "{:.1f} dB".format, absent=""),
                *(_of_layer(operator, gains) if ran_singly else ()),
                why_not_compared(operator),
            ]
        )
    more = (("single", "weights", "in float") if gains else ("single", "weights")) if ran_singly else ()
    columns = ("#", "operator", "tensor", "largest error", "gain", "SQNR", *more, "why not compared")
    below = f"and {left} more operators, where it grows less, in the JSON result" if left else ""
    return Table("Operators where the error grows most", columns, rows, below, 3)


def _of_layer(operator: Operator, gains: Mapping[int, float]) -> list[Cell]:
    single = None if operator.local is None else operator.local.sqnr_db
    figures = (single, operator.weights_sqnr_db, *((gains.get(operator.index),) if gains else ()))
    return [number_cell(figure, "{:.1f} dB".format, absent="") for figure in figures]


def _error(found: Errors | None, unit: Unit, path: str) -> Cell:
    text = error_in_words(found, unit)
    return text if found is None or is_endless(found) else Number(text, found.worst, path)


def shown_operators(result: LocateResult) -> list[Operator]:
    """The operators that are not right, and of the others those furthest off, in the order of the model."""
    strange = [operator for operator in result.operators if operator.status not in _ORDINARY]
    others = [operator for operator in result.operators if operator.status in _ORDINARY]
    others.sort(key=lambda operator: -(operator.share or 0.0))
    chosen = strange[:_MOST_ROWS] + others[: max(0, _MOST_ROWS - len(strange))]
    return sorted(chosen, key=lambda operator: operator.index)


def compared_operators(result: LocateResult) -> tuple[list[Operator], int]:
    """The operators at which the error grows most, in the order of the model, and how many others there are.

    Those that are to be kept in float are among them.
    """
    computed = [operator for operator in result.operators if operator.status != "computes from constants"]
    keep = result.keep_in_float.operators if result.keep_in_float is not None else ()

    def rank(operator: Operator) -> tuple[bool, bool, float]:
        return not is_endless(operator.accumulated), operator.index not in keep, -(operator.gain or 0.0)

    ranked = sorted(computed, key=rank)
    shown = sorted(ranked[:_MOST_ROWS], key=lambda operator: operator.index)
    return shown, len(computed) - len(shown)


def were_run_singly(result: LocateResult) -> bool:
    """Whether layers were also run one at a time, as those of two models are."""
    return any(operator.local is not None for operator in result.operators)


def gains_in_float(result: LocateResult) -> Mapping[int, float]:
    """What was measured to be gained by a layer in float, by the number of the operator."""
    layers = result.keep_in_float.layers if result.keep_in_float is not None else ()
    return {layer.index: layer.gain_db for layer in layers if layer.gain_db is not None}


def why_not_compared(operator: Operator) -> str:
    """Empty for one that was compared."""
    return "" if operator.status == "compared" else operator.reason or operator.status


def is_endless(found: Errors | None) -> bool:
    """Whether a tensor has NaN or infinite values, so that no number says how far off it is."""
    return found is not None and (found.first_not_finite is not None or not math.isfinite(found.worst))


def error_in_words(found: Errors | None, unit: Unit) -> str:
    """The largest error with its unit, empty where nothing was compared."""
    if found is None:
        return ""
    if is_endless(found):
        return "NaN or inf"
    worst = f"{found.worst:.3g}"
    return steps(worst) if unit == "steps" else worst


def with_short_names(line: str) -> str:
    """A line in which long names, which stand in quotes, are shortened."""
    return _QUOTED.sub(lambda quoted: f"'{shortened(quoted[1], _LONGEST_QUOTED)}'", line)
