"""A search concludes once: the rows that it found, and what there is to show of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from evaltools.locate.answer import Answer
from evaltools.locate.rows import index_of, present, share
from evaltools.locate.tables import how_to_read, operators_table
from evaltools.locate.words import (
    answer_lines,
    is_by_name,
    operators_of,
    parts_of,
    suspect_lines,
    with_short_names,
)
from evaltools.report.page.charts.figures import MOST_BARS, Layer, local_chart, strip_chart, worst_in_a_row
from evaltools.report.page.sections.proof import proof
from evaltools.report.page.sections.run import origin
from evaltools.report.words.facts import describe_configuration
from evaltools.result.facts import Environment, Model
from evaltools.result.result import NEXT, WARNING, Result, Row
from evaltools.result.section import Block, Chart, Lines, Note, Section, Sentence, Tone
from evaltools.result.verdict import Verdict


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
    sentence = Sentence(f"{with_short_names(answer.text)}.", answer.tone)
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
    entry = result.rows[0]
    details = Section(f"Layer by layer: {entry.name}", list(_details(result, inputs)), intro=how_to_read(result))
    ran = proof([entry], [entry.name], ["rows/0"], result.models)
    blocks = [*result.blocks, ran, details, origin(result.environment)]
    return replace(result, notes=list(_notes(result)), blocks=blocks)


def _notes(result: Result) -> Iterator[Note]:
    """What the answer rests on, what ran, warnings, and what to do."""
    entry, kind = result.rows[0], "how to read it" if is_by_name(result) else "how sure"
    yield from (Note(kind, with_short_names(line)) for line in answer_lines(result)[1:2])
    yield Note(entry.name, describe_configuration(entry))
    yield from result.notes
    causes = [cause for row in operators_of(result) for cause in parts_of(row, "cause")]
    yield from (Note(NEXT, text) for text in dict.fromkeys(f"{each.name}: {each.texts['remedy']}" for each in causes))


def _details(result: Result, inputs: Sequence[str]) -> Iterator[Block]:
    """The answer with its suspects; bars and strip over all operators; those that stand out as a table."""
    yield Lines([with_short_names(line) for line in [*answer_lines(result), *suspect_lines(result)]])
    yield from _charts(operators_of(result))
    table = operators_table(result)
    if table is None:
        return
    yield table
    if not is_by_name(result):
        first = f"the first {result.rows[0].counts['inputs']} of evaltools diff"
        yield Lines([f"inputs: {first}: {text}" for text in dict.fromkeys(inputs)])


def _layer(row: Row) -> Layer:
    local = share(row) if row.texts["status"] != "compared" else None
    return Layer(index_of(row), local, _tone(row.texts["status"]), row.texts.get("ran_on", ""))


def _tone(status: str) -> Tone:
    if status in ("wrong", "crashes by itself", "refused by itself"):
        return "bad"
    return "good" if status in ("right", "precision") else ""


def _charts(operators: Sequence[Row]) -> list[Chart]:
    """The error of each operator by itself, and who ran it."""
    layers = [_layer(operator) for operator in operators]
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
    if any(layer.ran_on for layer in layers):
        counts = Counter(layer.ran_on or "CPU" for layer in layers)
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
