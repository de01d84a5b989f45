"""The operators that a search looked at: those that stand out as a table, and how to read it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.locate.findings import COMPARED_BY_NAME, Errors, Findings, Operator, Unit
from evaltools.result.section import Cell, Number, Table, number_cell
from evaltools.text import shortened, steps

_MOST_ROWS: Final = 24
_LONGEST_NAME: Final = 40
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


def operators_table(findings: Findings) -> Table | None:
    """The operators that stand out; None where none was looked at."""
    if not findings.operators:
        return None
    return _compared(findings) if findings.answer.kind == COMPARED_BY_NAME else _suspects(findings)


def how_to_read(findings: Findings) -> str:
    """What the columns of the table are; empty where there is none."""
    if not findings.operators:
        return ""
    is_by_name = findings.answer.kind == COMPARED_BY_NAME
    intro = _INTRO_BY_NAME if is_by_name else _INTRO
    if is_by_name and were_run_singly(findings):
        intro += _INTRO_OF_TWO + (_INTRO_IN_FLOAT if gains_in_float(findings) else "")
    return intro


def _suspects(findings: Findings) -> Table:
    rows: list[Sequence[Cell]] = []
    places = {operator.index: place for place, operator in enumerate(findings.operators, 1)}
    shown = shown_operators(findings)
    for operator in shown:
        path = f"rows/{places[operator.index]}"
        rows.append(
            [
                number_cell(operator.index, path=f"{path}/counts/index"),
                operator.name,
                shortened(operator.tensor, _LONGEST_NAME),
                operator.ran_on,
                _error(operator.local, operator.unit, f"{path}/figures/single/value"),
                number_cell(operator.size, "{:.3g}".format, f"{path}/figures/size/value", absent=""),
                number_cell(operator.tolerance, "{:.3g}".format, f"{path}/figures/tolerance/value", absent=""),
                _error(operator.accumulated, operator.unit, f"{path}/figures/accumulated/value"),
                number_cell(operator.gain, "{:.3g}".format, f"{path}/figures/gain/value", absent=""),
                _status(operator, findings.answer.text),
            ]
        )
    columns = ("#", "operator", "tensor", "ran on", "single", "size", "tolerance", "in the model", "gain", "status")
    ranks = (0, 0, 5, 4, 1, 3, 2, 6, 7, 0)
    return Table("Operators that stand out", columns, rows, _left_out(findings, shown), 3, ranks)


def _status(operator: Operator, answer: str) -> str:
    """With its reason; one that the ``answer`` has as well is not repeated."""
    if not operator.reason:
        return operator.status
    return f"{operator.status}{', as the answer says' if operator.reason in answer else f': {operator.reason}'}"


def _left_out(findings: Findings, shown: Sequence[Operator]) -> str:
    places = {operator.index for operator in shown}
    left = Counter(operator.status for operator in findings.operators if operator.index not in places)
    kinds = ", ".join(f"{count} {status}" for status, count in left.items())
    return f"and {sum(left.values())} more operators, all in the JSON result: {kinds}" if left else ""


def _compared(findings: Findings) -> Table:
    """What the search for a fault has no columns for: nothing is tolerated."""
    shown, left = compared_operators(findings)
    ran_singly, gains = were_run_singly(findings), gains_in_float(findings)
    places = {operator.index: place for place, operator in enumerate(findings.operators, 1)}
    rows: list[Sequence[Cell]] = []
    for operator in shown:
        path, found = f"rows/{places[operator.index]}", operator.accumulated
        rows.append(
            [
                number_cell(operator.index, path=f"{path}/counts/index"),
                operator.name,
                shortened(operator.tensor, _LONGEST_NAME),
                _error(found, "absolute", f"{path}/figures/accumulated/value"),
                number_cell(operator.gain, "{:.3g}".format, f"{path}/figures/gain/value", absent=""),
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


def shown_operators(findings: Findings) -> list[Operator]:
    """The operators that are not right, and of the others those furthest off, in the order of the model."""
    strange = [operator for operator in findings.operators if operator.status not in _ORDINARY]
    others = [operator for operator in findings.operators if operator.status in _ORDINARY]
    others.sort(key=lambda operator: -(operator.share or 0.0))
    chosen = strange[:_MOST_ROWS] + others[: max(0, _MOST_ROWS - len(strange))]
    return sorted(chosen, key=lambda operator: operator.index)


def compared_operators(findings: Findings) -> tuple[list[Operator], int]:
    """The operators at which the error grows most, in the order of the model, and how many others there are.

    Those that are to be kept in float are among them.
    """
    computed = [operator for operator in findings.operators if operator.status != "computes from constants"]
    keep = findings.keep_in_float.operators if findings.keep_in_float is not None else ()

    def rank(operator: Operator) -> tuple[bool, bool, float]:
        return not is_endless(operator.accumulated), operator.index not in keep, -(operator.gain or 0.0)

    ranked = sorted(computed, key=rank)
    shown = sorted(ranked[:_MOST_ROWS], key=lambda operator: operator.index)
    return shown, len(computed) - len(shown)


def were_run_singly(findings: Findings) -> bool:
    """Whether layers were also run one at a time, as those of two models are."""
    return any(operator.local is not None for operator in findings.operators)


def gains_in_float(findings: Findings) -> Mapping[int, float]:
    """What was measured to be gained by a layer in float, by the number of the operator."""
    layers = findings.keep_in_float.layers if findings.keep_in_float is not None else ()
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
