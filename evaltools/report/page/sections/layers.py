"""What ``evaltools locate`` found, operator by operator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from evaltools.report.content import First
from evaltools.report.page.charts.figures import (
    MOST_BARS,
    Layer,
    local_chart,
    strip_chart,
    worst_in_a_row,
)
from evaltools.report.page.sections.operators import BY_NAME, how_to_read, operators_table, with_short_names
from evaltools.report.words.facts import describe_configuration
from evaltools.report.words.locate import answer_lines, suspect_lines
from evaltools.result.locate import LocateResult, Operator
from evaltools.result.section import (
    Block,
    Chart,
    Lines,
    Note,
    Section,
    Sentence,
    Tone,
)

_LONGEST_NAME: Final = 40
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
    causes = [cause for suspect in result.suspects for cause in suspect.causes]
    return tuple(dict.fromkeys(f"{cause.name}: {cause.remedy}" for cause in causes))


def layers(result: LocateResult, source: str = "") -> Section:
    """The answer with its suspects; bars and strip over all operators, and those that stand out as a table.

    ``source`` names its JSON result among those of an evaluation.
    """
    lines = [with_short_names(line.strip()) for line in [*answer_lines(result), *suspect_lines(result)] if line]
    blocks: list[Block] = [Lines(lines), *_charts(result)]
    table = operators_table(result)
    blocks += [] if table is None else [table]
    title = f"Layer by layer: {result.configuration.name}"
    return Section(title, blocks, intro=how_to_read(result), source=source)


def _layer(operator: Operator) -> Layer:
    local = operator.share if operator.status != "compared" else None
    return Layer(operator.index, local, _tone(operator), operator.ran_on)


def _tone(operator: Operator) -> Tone:
    if operator.status in ("wrong", "crashes by itself", "refused by itself"):
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
        charts.append(Chart("Error of each operator by itself", local_chart(by_local), text))
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
