"""A search for the operator at fault, for a person: the operators that stand out, then the answer in a few lines."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from evaltools.report.words.locate import answer_lines, culprit_lines
from evaltools.result.locate import Errors, LocateResult, Operator, Unit
from evaltools.text import printable, shortened, steps

_MOST_ROWS: Final = 24
_LONGEST_IN_TABLE: Final = 40
_LONGEST_QUOTED: Final = 60
_QUOTED: Final = re.compile(f"(?<!\\w)'([^']{{{_LONGEST_QUOTED},}})'")
BY_NAME: Final = "compared by name"
"""The verdict where tensors were held against others of the same name, and no operator was run alone."""
_ORDINARY: Final = ("right", "stays on the CPU", "computes from constants", "precision")


def print_operators(result: LocateResult, console: Console) -> None:
    """The operators that are not right, and of the others those that are furthest off."""
    if not result.operators:
        return
    if result.verdict.kind == BY_NAME:
        _print_compared(result, console)
        return
    shown = shown_operators(result)
    rows = [_cells(operator, result.verdict.reason) for operator in shown]
    _print_table(
        ("#", "operator", "tensor", "ran on"), ("alone", "size", "tolerance", "in the model", "gain"), rows, console
    )
    places = {operator.index for operator in shown}
    left = Counter(operator.status for operator in result.operators if operator.index not in places)
    if left:
        kinds = ", ".join(f"{count} {status}" for status, count in left.items())
        console.print(f"and {sum(left.values())} more operators: {kinds}; --output_file_path=FILE.json has them all")
    console.print(
        "alone: largest error with the CPU's inputs; size: its relative root mean square, 0 within one step; in the "
        "model: with all errors before it"
    )
    for text in dict.fromkeys(result.inputs.described):
        console.print(printable(f"inputs: the first {result.inputs.count} of evaltools diff: {text}"))


def _print_compared(result: LocateResult, console: Console) -> None:
    """The operators at which the error grows most, in the order of the model, and why others were not compared."""
    for warning in result.warnings:
        console.print(printable(f"warning: {warning}"))
    shown, left = compared_operators(result)
    gains = gains_in_float(result)
    rows = [_cells_compared(operator, gains.get(operator.index)) for operator in shown]
    figures = ("error", "gain", "SQNR dB", "alone dB", "weights dB", "in float dB")
    _print_table(("#", "operator", "tensor"), figures, rows, console)
    if left:
        console.print(f"and {left} more operators, where it grows less; --output_file_path=FILE.json has them all")
    console.print(
        "error: largest difference in real numbers; gain: relative error out, divided by the one that came in"
    )
    if were_run_alone(result):
        console.print(
            "SQNR: signal to noise, the more the better; alone: of the layer, fed with the other model's numbers; "
            "weights: of what is stored"
        )
    if gains:
        console.print("in float: dB that the model gains where this layer alone computes in float")


def were_run_alone(result: LocateResult) -> bool:
    """Whether layers were also run one at a time, as those of two models are."""
    return any(operator.local is not None for operator in result.operators)


def gains_in_float(result: LocateResult) -> Mapping[int, float]:
    """What was measured to be gained by a layer in float, by the number of the operator."""
    layers = result.keep_in_float.layers if result.keep_in_float is not None else ()
    return {layer.index: layer.gain_db for layer in layers if layer.gain_db is not None}


def _print_table(names: Sequence[str], figures: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Columns of names and figures, then the status; those in which nothing stands are left out."""
    table = Table(box=None, pad_edge=False)
    headings = [*names, *figures, "status"]
    shown = [place for place in range(len(headings)) if any(row[place] for row in rows)]
    for heading in [headings[place] for place in shown]:
        if heading in figures:
            table.add_column(heading, justify="right", no_wrap=True)
        else:
            table.add_column(heading, no_wrap=heading not in ("tensor", "status"), overflow="fold")
    for row in rows:
        table.add_row(*(row[place] for place in shown))
    console.print(table)


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


def is_endless(found: Errors | None) -> bool:
    """Whether a tensor has NaN or infinite values, so that no number says how far off it is."""
    return found is not None and (found.first_not_finite is not None or not math.isfinite(found.worst))


def _cells_compared(operator: Operator, gain_in_float: float | None) -> list[str]:
    found, local = operator.accumulated, operator.local
    decibels = (
        None if found is None else found.sqnr_db,
        None if local is None else local.sqnr_db,
        operator.weights_sqnr_db,
        gain_in_float,
    )
    return [
        str(operator.index),
        printable(operator.name),
        printable(shortened(operator.tensor, _LONGEST_IN_TABLE)),
        error_in_words(found, "absolute"),
        "" if operator.gain is None else f"{operator.gain:.2g}",
        *("" if figure is None else f"{round(figure, 1) + 0.0:.1f}" for figure in decibels),
        printable(why_not_compared(operator)),
    ]


def why_not_compared(operator: Operator) -> str:
    """Empty for one that was compared."""
    return "" if operator.status == "compared" else operator.reason or operator.status


def print_answer(result: LocateResult, console: Console) -> None:
    """What was found, how sure that is, and what to do next."""
    for line in [*answer_lines(result), *culprit_lines(result)]:
        console.print(printable(with_short_names(line)))


def shown_operators(result: LocateResult) -> list[Operator]:
    """The operators that are not right, and of the others those furthest off, in the order of the model."""
    strange = [operator for operator in result.operators if operator.status not in _ORDINARY]
    others = [operator for operator in result.operators if operator.status in _ORDINARY]
    others.sort(key=lambda operator: -(operator.share or 0.0))
    chosen = strange[:_MOST_ROWS] + others[: max(0, _MOST_ROWS - len(strange))]
    return sorted(chosen, key=lambda operator: operator.index)


def _cells(operator: Operator, answer: str) -> list[str]:
    """A row; an operator with the reason that ``answer``, which stands below the table, has as well refers to it."""
    reason = ", as said below" if operator.reason == answer else f": {operator.reason}"
    return [
        str(operator.index),
        printable(operator.name),
        printable(shortened(operator.tensor, _LONGEST_IN_TABLE)),
        operator.ran_on,
        error_in_words(operator.local, operator.unit),
        "" if operator.size is None else f"{operator.size:.2g}",
        "" if operator.tolerance is None else f"{operator.tolerance:.2g}",
        error_in_words(operator.accumulated, operator.unit),
        "" if operator.gain is None else f"{operator.gain:.2g}",
        printable(operator.status + (reason if operator.reason else "")),
    ]


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
