"""What ``evaltools locate`` found, operator by operator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.report.page.charts.figures import (
    MOST_BARS,
    Layer,
    local_chart,
    strip_chart,
    worst_in_a_row,
)
from evaltools.report.page.content.page import First, some_of
from evaltools.report.tables.locate import (
    BY_NAME,
    compared_operators,
    error_in_words,
    gains_in_float,
    is_endless,
    shown_operators,
    were_run_alone,
    why_not_compared,
    with_short_names,
)
from evaltools.report.words.facts import describe_configuration
from evaltools.report.words.locate import answer_lines, culprit_lines
from evaltools.result.locate import Errors, LocateResult, Operator, Unit
from evaltools.result.section import (
    Block,
    Cell,
    Chart,
    Lines,
    Note,
    Number,
    Section,
    Sentence,
    Table,
    Tone,
    number_cell,
)
from evaltools.text import shortened

_LONGEST_NAME: Final = 40
_LEAD: Final = "Alone: an operator with the CPU's inputs. In the model: with all errors before it."
_LEAD_BY_NAME: Final = (
    "Each tensor beside the one of the same name elsewhere, in real numbers and with all errors before it: a gain far "
    "above 1 shows where the error grows."
)
_LEAD_OF_TWO: Final = (
    " Alone: a layer fed with the other model's numbers. In float: what the model gains where this layer alone is "
    "computed in float."
)
_GOOD: Final = ("no difference", "precision", "small differences add up")
_OPEN: Final = ("suspected", "not decided", "the reference is the odd one out", BY_NAME)


def answer(name: str, result: LocateResult) -> First:
    """The answer in a sentence, what it rests on, and what to do about it."""
    entry, by_name = result.configuration, result.verdict.kind == BY_NAME
    text, *rests_on = map(with_short_names, answer_lines(result))
    notes = [Note("how to read it" if by_name else "how sure", line) for line in rests_on[:1]]
    notes.append(Note(entry.name, describe_configuration(entry)))
    return First("layer by layer", (Sentence(f"{text}."),), tuple(notes), _remedies(result), name)


def faults(located: Sequence[LocateResult]) -> list[Note]:
    """What was found to be wrong in the model of an evaluation, for the first screen of that."""
    notes = []
    for result in located:
        if result.verdict.kind not in (*_GOOD, *_OPEN):
            name = f"{result.configuration.name}, layer by layer"
            notes.append(Note(name, with_short_names(answer_lines(result)[0]), "bad"))
            notes += [Note(name, step) for step in _remedies(result)]
    return notes


def _remedies(result: LocateResult) -> tuple[str, ...]:
    causes = [cause for culprit in result.culprits for cause in culprit.causes]
    return tuple(dict.fromkeys(f"{cause.name}: {cause.remedy}" for cause in causes))


def layers(result: LocateResult, source: str = "") -> Section:
    """The answer with its culprits; bars and strip over all operators, and those that stand out as a table.

    ``source`` names its JSON result among those of an evaluation.
    """
    lines = [with_short_names(line.strip()) for line in [*answer_lines(result), *culprit_lines(result)] if line]
    blocks: list[Block] = [Lines(lines), *_charts(result)]
    is_by_name = result.verdict.kind == BY_NAME
    if result.operators:
        blocks.append(_table_by_name(result) if is_by_name else _table(result))
    lead = (_LEAD_BY_NAME if is_by_name else _LEAD) if result.operators else ""
    lead += _LEAD_OF_TWO if is_by_name and were_run_alone(result) else ""
    return Section(f"Layer by layer: {result.configuration.name}", blocks, lead=lead, source=source)


def _layer(operator: Operator) -> Layer:
    local = operator.share if operator.status != "compared" else None
    return Layer(operator.index, local, _tone(operator), operator.ran_on)


def _tone(operator: Operator) -> Tone:
    if operator.status in ("wrong", "crashes alone", "refused alone"):
        return "bad"
    return "good" if operator.status in ("right", "precision") else ""


def _charts(result: LocateResult) -> list[Chart]:
    layers = [_layer(operator) for operator in result.operators]
    per_bar = -(-len(layers) // MOST_BARS)
    each = "" if per_bar == 1 else f" A bar is the worst of {per_bar} operators in a row."
    charts = []
    by_local = worst_in_a_row(layers)
    local = [(layer.local, layer.index) for layer in layers if layer.local is not None]
    if local:
        beyond = sum(error > 1 for error, _ in local)
        text = f"{beyond} of {len(local)} are beyond what is tolerated, the line at 1; {_largest(local)}"
        text += f" times its tolerance.{each}" if max(local)[0] < math.inf else f".{each}"
        charts.append(Chart("Error of each operator alone", local_chart(by_local), text))
    if any(operator.ran_on for operator in result.operators):
        counts: dict[str, int] = {}
        for operator in result.operators:
            counts[operator.ran_on or "CPU"] = counts.get(operator.ran_on or "CPU", 0) + 1
        text = f"{', '.join(f'{name}: {count} operators' for name, count in counts.items())}.{each}"
        charts.append(Chart("Who ran each operator", strip_chart(by_local), text))
    return charts


def _largest(errors: Sequence[tuple[float, int]]) -> str:
    """The largest error with its operator, or which operators give no number."""
    endless = [index for error, index in errors if error == math.inf]
    if endless:
        more = f", as do {len(endless) - 1} others" if len(endless) > 1 else ""
        return f"operator {endless[0]} gives NaN or inf{more}"
    error, index = max(errors, key=lambda entry: entry[0])
    return f"the largest is operator {index} with {error:.3g}"


def _table(result: LocateResult) -> Table:
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
                operator.status + (f": {operator.reason}" if operator.reason else ""),
            ]
        )
    columns = ("#", "operator", "tensor", "ran on", "alone", "size", "tolerance", "in the model", "gain", "status")
    return Table("Operators that stand out", columns, rows, some_of(len(shown), len(result.operators), "operators"))


def _table_by_name(result: LocateResult) -> Table:
    """What the search for a fault has no columns for: nothing is tolerated."""
    shown, left = compared_operators(result)
    alone, gains = were_run_alone(result), gains_in_float(result)
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
                *(_of_layer(operator, gains) if alone else ()),
                why_not_compared(operator),
            ]
        )
    more = (("alone", "weights", "in float") if gains else ("alone", "weights")) if alone else ()
    columns = ("#", "operator", "tensor", "largest error", "gain", "SQNR", *more, "why not compared")
    below = f"and {left} more operators, where it grows less, in the JSON result" if left else ""
    return Table("Operators where the error grows most", columns, rows, below)


def _of_layer(operator: Operator, gains: Mapping[int, float]) -> list[Cell]:
    alone = None if operator.local is None else operator.local.sqnr_db
    figures = (alone, operator.weights_sqnr_db, *((gains.get(operator.index),) if gains else ()))
    return [number_cell(figure, "{:.1f} dB".format, absent="") for figure in figures]


def _error(found: Errors | None, unit: Unit, path: str) -> Cell:
    text = error_in_words(found, unit)
    return text if found is None or is_endless(found) else Number(text, found.worst, path)
