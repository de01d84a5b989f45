"""A search concludes once: the rows that it found, and what there is to show of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.locate.rows import COMPARED_BY_NAME, SINGLE, index_of, present, share
from evaltools.locate.tables import operators_table
from evaltools.locate.words import (
    CAUSE,
    answer_lines,
    in_float_lines,
    is_by_name,
    operators_of,
    parts_of,
    suspect_lines,
    with_short_names,
)
from evaltools.operators.answer import FAULTS, Answer
from evaltools.report.words.facts import counted, describe_configuration
from evaltools.report.words.next_steps import HOW_FAST, next_command, search_command, stated
from evaltools.result.facts import Environment, Model
from evaltools.result.result import WARNING, Result, Row, next_step
from evaltools.result.section import Axis, Block, Chart, Lines, Mark, Note, Section, Sentence, Tone
from evaltools.result.verdict import Verdict
from evaltools.tasks.inference_diff.report import on_real_data

_CPU: Final = "CPU"
_INPUTS: Final = ("num_inputs",)
_MOST_BARS: Final = 120
_MOST_IN_FLOAT: Final = 3
"""Lines."""
_NEAR: Final = 0.9
"""Of its tolerance."""
_WIDE: Final = 3.0
"""Shares of the tolerance that are larger lie on a logarithmic axis."""


def found(
    configuration: Row,
    model: Model,
    environment: Environment,
    answer: Answer,
    operators: Sequence[Row],
    inputs: Sequence[str],
    stopped: str = "",
    warnings: Sequence[str] = (),
) -> Result:
    """What a search found: the row of the configuration with the answer, then those of the operators.

    ``inputs`` say in words where the inputs come from; their number is a count of the configuration.
    """
    names = {index_of(row): row.name for row in operators}
    at_fault = ", ".join(names[place] for place in answer.operators)
    verdict = Verdict(answer.kind, "operators", output=at_fault, texts=[answer.text])
    text = with_short_names(answer.short or answer.text)
    sentence = Sentence(f"{text[:1].upper()}{text[1:]}.", answer.tone)
    return Result(
        command="locate",
        environment=environment,
        models=[model],
        rows=[replace(configuration, texts=present(configuration.texts), verdicts=[verdict]), *operators],
        complete=not stopped,
        stopped=stopped,
        given={"inputs": f"{configuration.counts['inputs']}: {'; '.join(dict.fromkeys(inputs))}"},
        notes=[Note(WARNING, text, "open") for text in warnings],
        blocks=[Section("", [sentence], place="first")],
    )


def with_part(result: Result, part: Row) -> Result:
    """The result with one more part of the configuration, such as a bundle."""
    configuration, *operators = result.rows
    return replace(result, rows=[replace(configuration, rows=[*configuration.rows, part]), *operators])


def conclude(result: Result, inputs: Sequence[str]) -> Result:
    """The result with what there is to show of its rows."""
    operators, name = operators_table(result), result.rows[0].name
    shown: list[Block] = [*_charts(operators_of(result)), *([] if operators is None else [operators])]
    glance = Section(f"Layer by layer: {name}", shown, "glance")
    found = Section(f"How it was found: {name}", list(_details(result, inputs)))
    return replace(result, notes=list(_notes(result)), blocks=[*result.blocks, glance, found])


def _notes(result: Result) -> Iterator[Note]:
    """What the answer rests on, what ran, warnings, and what to do."""
    entry, kind = result.rows[0], "how to read it" if is_by_name(result) else "how sure"
    _, *lines = map(with_short_names, answer_lines(result))
    yield from (Note(kind, line) for line in lines[:1])
    yield from (Note("cause", line.removeprefix(CAUSE)) for line in lines if line.startswith(CAUSE))
    for tried in parts_of(entry, "in_float"):
        first, *layers = in_float_lines(tried, operators_of(result))[:_MOST_IN_FLOAT]
        yield Note("in float", " ".join(filter(None, (first, "; ".join(map(str.strip, layers))))))
    yield Note(entry.name, describe_configuration(entry))
    yield from result.notes
    causes = [cause for row in result.rows for cause in parts_of(row, "cause")]
    yield from map(next_step, dict.fromkeys(f"{each.name}: {each.texts['remedy']}" for each in causes))
    yield from _next(result, entry)


def _next(result: Result, entry: Row) -> Iterator[Note]:
    """What an answer leads to: a reproduction of a fault, real data, more inputs, or the speed."""
    kind, typed, model = entry.verdicts[0].kind, result.environment.command, result.model.file
    looked_at = any(SINGLE in row.figures for row in operators_of(result))
    if kind in (*FAULTS, "refused") and not parts_of(entry, "bundle"):
        command = search_command(model, entry, typed, ["--bundle=reproduction"])
        yield next_step("writes a reproduction that others can run", command)
    elif kind in ("precision", "small differences add up", COMPARED_BY_NAME):
        yield on_real_data(result)
    elif kind in ("suspected", "not decided") and looked_at and not result.stopped and not any(stated(typed, _INPUTS)):
        yield next_step("looks at more inputs", search_command(model, entry, typed, ["--num_inputs=20"]))
    elif kind == "no difference" and not entry.is_emulated and not entry.place:
        yield next_step(HOW_FAST, next_command("benchmark", model, entry.flags, typed))


def _details(result: Result, inputs: Sequence[str]) -> Iterator[Block]:
    """The answer with its suspects, and what it was found on."""
    yield Lines([with_short_names(line) for line in [*answer_lines(result), *suspect_lines(result)]])
    if operators_of(result) and not is_by_name(result):
        first = f"the first {result.rows[0].counts['inputs']} of evaltools diff"
        yield Lines([f"inputs: {first}: {text}" for text in dict.fromkeys(inputs)])


def _tone(row: Row) -> Tone:
    """Of what is right, but near its tolerance, that it is open."""
    status = row.texts["status"]
    if status in ("wrong", "crashes by itself", "refused by itself"):
        return "bad"
    if status in ("right", "precision"):
        return "open" if (share(row) or 0.0) > _NEAR else "good"
    return "open" if status == "unclear" else "missing"


def _own_error(row: Row) -> float | None:
    """As a multiple of what is tolerated, infinite where the output is NaN or infinite; None where it is not known."""
    return share(row) if row.texts["status"] != "compared" else None


def _charts(operators: Sequence[Row]) -> list[Chart]:
    """The error of each operator by itself, or of each tensor; who ran it; of many, a mark is the worst of several."""
    size = max(1, -(-len(operators) // _MOST_BARS))
    groups = [operators[start : start + size] for start in range(0, len(operators), size)]
    worst = [max(group, key=lambda row: _own_error(row) or 0.0) for group in groups]
    each = "" if size == 1 else f" A bar is the worst of {size} operators in a row."
    charts = []
    local = [(error, index_of(row)) for row in operators if (error := _own_error(row)) is not None]
    if local:
        beyond = sum(error > 1 for error, _ in local)
        text = f"{beyond} of {len(local)} are beyond what is tolerated, the line at 1; {_largest(local)}"
        text += f" times its tolerance.{each}" if max(local)[0] < math.inf else f".{each}"
        marks = [
            Mark(index_of(row), None if error == math.inf else error, tone=_tone(row))
            for row in worst
            if (error := _own_error(row)) is not None
        ]
        axis = Axis("error / tolerance", "symlog" if max(local)[0] > _WIDE else "", at=1.0)
        charts.append(Chart("Error of each operator by itself", "bars", marks, text, Axis("operator"), axis))
    charts += _by_tensor(operators)
    ran_on = [row.texts.get("ran_on", "") for row in operators]
    if len(set(ran_on)) > 1:
        counts = Counter(name or _CPU for name in ran_on)
        whose = [f"{name}: {counted(count, 'operator')}" for name, count in counts.items()]
        text = f"{', '.join(whose)}.{each}"
        names = [(index_of(row), row.texts.get("ran_on") or _CPU) for row in worst]
        marks = [Mark(index, 0.0, name, "missing" if name == _CPU else "") for index, name in names]
        charts.append(Chart("Who ran each operator", "strip", marks, text, Axis("operator")))
    return charts


def _by_tensor(operators: Sequence[Row]) -> list[Chart]:
    """How near each tensor is to that of the other model, with all errors before it, and alone where that was run."""
    kinds = {"with all errors before it": "accumulated_sqnr_db", "by itself": "single_sqnr_db"}
    marks = [
        Mark(index_of(row), value, kind)
        for kind, name in kinds.items()
        for row in operators
        if row.texts["status"] == "compared" and (value := row.value(name)) is not None
    ]
    if not marks:
        return []
    number, least = min(((mark.x, mark.y) for mark in marks), key=lambda each: float(each[1] or 0))
    text = f"{len({mark.x for mark in marks})} operators; the lowest is #{number} with {least:.1f} dB."
    return [
        Chart(
            "How near each tensor is to the other model's", "lines", marks, text, Axis("operator"), Axis("SQNR in dB")
        )
    ]


def _largest(errors: Sequence[tuple[float, int]]) -> str:
    """The largest error with its operator, or which operators give no number."""
    endless = [index for error, index in errors if error == math.inf]
    if endless:
        more = f", as do {len(endless) - 1} others" if len(endless) > 1 else ""
        return f"operator {endless[0]} gives NaN or inf{more}"
    error, index = max(errors, key=lambda entry: entry[0])
    return f"the largest is operator {index} with {error:.3g}"
