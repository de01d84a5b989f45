"""What a search found as a result: a row for the configuration and for each operator, and what there is to show."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from evaltools.locate.findings import COMPARED_BY_NAME, Errors, Findings, InFloat, Operator, Suspect, Unit
from evaltools.locate.tables import how_to_read, operators_table
from evaltools.locate.words import answer_lines, of_suspect, suspect_lines, with_short_names
from evaltools.metrics.interval import Interval
from evaltools.report.page.charts.figures import MOST_BARS, Layer, local_chart, strip_chart, worst_in_a_row
from evaltools.report.page.sections.proof import proof
from evaltools.report.page.sections.run import origin
from evaltools.report.words.facts import describe_configuration
from evaltools.result.figure import Figure
from evaltools.result.result import NEXT, WARNING, Result, Row
from evaltools.result.section import Block, Chart, Lines, Note, Section, Sentence, Tone
from evaltools.result.verdict import Verdict


def conclude(findings: Findings) -> Result:
    """The result of a search."""
    return Result(
        command="locate",
        environment=findings.environment,
        models=[findings.model],
        rows=[_configuration(findings), *_operators(findings)],
        complete=not findings.stopped,
        stopped=findings.stopped,
        given={"inputs": f"{findings.num_inputs}: {'; '.join(dict.fromkeys(findings.inputs))}"},
        notes=list(_notes(findings)),
        blocks=_blocks(findings),
    )


def _configuration(findings: Findings) -> Row:
    entry, answer, keep, bundle = findings.configuration, findings.answer, findings.keep_in_float, findings.bundle
    names = {operator.index: _name(operator.index, operator.name) for operator in findings.operators}
    at_fault = ", ".join(names[place] for place in answer.operators)
    texts = {"precision": findings.precision, "assumed": findings.assumed}
    counts = {"inputs": findings.num_inputs, "compiles": findings.compiles}
    figures = {}
    if keep is not None:
        texts["measured_in"] = ", ".join(keep.measured_in)
        counts |= {"in_float_candidates": keep.candidates, "in_float_tried": len(keep.layers)}
        figures["sqnr_db"] = _figure(keep.sqnr_db, "dB")
    if bundle is not None:
        texts |= {"bundle": bundle.folder, "bundle_files": ", ".join(bundle.files), "bundle_printed": bundle.printed}
        counts["bundle_reproduced"] = int(bundle.reproduced)
    return Row(
        entry.name,
        status=entry.status,
        reason=entry.reason or "",
        fallback=entry.fallback or "",
        cannot_exist=entry.cannot_exist,
        flags=entry.flags,
        num_threads=entry.num_threads,
        runtime=entry.runtime,
        delegates=entry.delegates,
        delegation=entry.delegation,
        counts=counts,
        texts=_present(texts),
        figures=figures,
        verdicts=[Verdict(answer.kind, "operators", output=at_fault, texts=[answer.text])],
        rows=[
            Row(
                output.name,
                "output",
                figures=_errors("accumulated", output.errors, output.unit)
                | _figures(output.unit, explained=output.explained)
                | _figures(tolerance=output.tolerance),
            )
            for output in findings.outputs
        ],
    )


def _operators(findings: Findings) -> Iterator[Row]:
    suspects = {suspect.place: suspect for suspect in findings.suspects}
    keep = findings.keep_in_float
    layers = {} if keep is None else {layer.index: layer for layer in keep.layers}
    ranks = {} if keep is None else {place: {"keep_in_float": rank} for rank, place in enumerate(keep.operators, 1)}
    for operator in findings.operators:
        layer, suspect = layers.get(operator.index), suspects.get(operator.index)
        texts = {"operator": operator.name, "tensor": operator.tensor, "status": operator.status}
        texts |= {"ran_on": operator.ran_on, "why": operator.reason, "not_in_float": layer.reason if layer else ""}
        if operator.weights is not None:
            texts["weights"] = "rounded" if operator.weights.is_rounding else "others"
        is_measured = operator.local is not None or operator.accumulated is not None
        row = Row(
            _name(operator.index, operator.name),
            "operator",
            "measured" if is_measured else "not measured",
            "" if is_measured else operator.reason or operator.status,
            counts={"index": operator.index, **ranks.get(operator.index, {}), **_first_not_finite(operator)},
            texts=_present(texts),
            figures=_of_operator(operator) | ({} if layer is None else _in_float(layer)),
        )
        yield row if suspect is None else _suspected(row, suspect)


def _name(place: int, operator: str) -> str:
    return f"#{place} {operator}"


def _first_not_finite(operator: Operator) -> dict[str, int]:
    """The first run that gives NaN or infinity where the reference does not, by itself and in the model."""
    found = {"single_first_not_finite": operator.local, "accumulated_first_not_finite": operator.accumulated}
    runs = {name: None if errors is None else errors.first_not_finite for name, errors in found.items()}
    return {name: run for name, run in runs.items() if run is not None}


def _of_operator(operator: Operator) -> dict[str, Figure]:
    local, accumulated, weights = operator.local, operator.accumulated, operator.weights
    return {
        **({} if local is None else _errors("single", local, operator.unit)),
        **({} if accumulated is None else _errors("accumulated", accumulated, operator.unit)),
        **_figures(gain=operator.gain, size=operator.size, tolerance=operator.tolerance),
        **_figures("dB", single_sqnr_db=local.sqnr_db if local else None),
        **_figures("dB", sqnr_db=accumulated.sqnr_db if accumulated else None),
        **({} if weights is None else _figures(weights_relative=weights.relative)),
        **_figures("dB", weights_sqnr_db=operator.weights_sqnr_db),
    }


def _in_float(layer: InFloat) -> dict[str, Figure]:
    """What the model has where the layer computes in float, and how much more that is."""
    found = _figures("dB", in_float_sqnr_db=layer.sqnr_db)
    if layer.gain_db is not None:
        found["in_float_gain_db"] = _figure(layer.gain_db, "dB", layer.interval)
    return found


def _errors(name: str, errors: Errors, unit: Unit) -> dict[str, Figure]:
    """The largest error of the worst and of the median run, and the relative one; null where a value is not finite."""
    unit_of, beyond = "steps" if unit == "steps" else "", errors.beyond / errors.runs if errors.runs else None
    return {
        name: replace(_figure(errors.worst, unit_of), better="lower", count=errors.runs),
        f"{name}_median": _figure(errors.median, unit_of),
        f"{name}_relative": _figure(errors.relative),
        f"{name}_beyond": Figure(beyond, count=errors.runs, is_share=True),
    }


def _figures(unit: str = "", **values: float | None) -> dict[str, Figure]:
    return {name: _figure(value, unit) for name, value in values.items() if value is not None}


def _figure(value: float, unit: str = "", interval: Interval | None = None) -> Figure:
    return Figure(value if math.isfinite(value) else None, unit, interval=interval)


def _present(texts: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in texts.items() if text}


def _suspected(row: Row, suspect: Suspect) -> Row:
    """The row with how sure it is that the operator is at fault, the evidence, causes, and other settings."""
    evidence = [
        Row(
            each.method,
            "evidence",
            counts={"beyond": each.beyond, "runs": each.runs},
            texts=_present({"part": each.part, "agrees": "yes" if each.agrees else "no", "note": each.note}),
        )
        for each in suspect.evidence
    ]
    causes = [
        Row(each.name, "cause", texts=_present({"shown_by": each.shown_by, "remedy": each.remedy, "link": each.link}))
        for each in suspect.causes
    ]
    settings = [
        Row(each.setting, "setting", texts={"found": "still wrong" if each.wrong else "right", "meaning": each.meaning})
        for each in suspect.sweep
    ]
    reaches = {None: {}, True: {"reaches_output": "yes"}, False: {"reaches_output": "no"}}[suspect.reaches_output]
    texts = [line.strip() for line in of_suspect(suspect)[1:]]
    return replace(
        row,
        counts={**row.counts, "first": suspect.first, "last": suspect.last},
        texts={**row.texts, **reaches},
        verdicts=[Verdict(suspect.status, "operators", texts=texts)],
        rows=[*evidence, *causes, *settings],
    )


def _notes(findings: Findings) -> Iterator[Note]:
    """What the answer rests on, what ran, warnings, and what to do."""
    entry, by_name = findings.configuration, findings.answer.kind == COMPARED_BY_NAME
    rests_on = answer_lines(findings)[1:2]
    yield from (Note("how to read it" if by_name else "how sure", with_short_names(line)) for line in rests_on)
    yield Note(entry.name, describe_configuration(entry))
    yield from (Note(WARNING, text, "open") for text in findings.warnings)
    causes = [cause for suspect in findings.suspects for cause in suspect.causes]
    yield from (Note(NEXT, text) for text in dict.fromkeys(f"{cause.name}: {cause.remedy}" for cause in causes))


def _blocks(findings: Findings) -> list[Section]:
    entry, answer = findings.configuration, findings.answer
    lines = [with_short_names(line) for line in [*answer_lines(findings), *suspect_lines(findings)]]
    table = operators_table(findings)
    found: list[Block] = [Lines(lines), *_charts(findings), *([] if table is None else [table])]
    if table is not None and answer.kind != COMPARED_BY_NAME:
        first = f"the first {findings.num_inputs} of evaltools diff"
        found.append(Lines([f"inputs: {first}: {text}" for text in dict.fromkeys(findings.inputs)]))
    first_sentence = Sentence(f"{with_short_names(answer.text)}.", answer.tone)
    return [
        Section("", [first_sentence], place="first"),
        proof([entry], [entry.name], ["rows/0"], [findings.model]),
        Section(f"Layer by layer: {entry.name}", found, intro=how_to_read(findings)),
        origin(findings.environment),
    ]


def _layer(operator: Operator) -> Layer:
    local = operator.share if operator.status != "compared" else None
    return Layer(operator.index, local, _tone(operator), operator.ran_on)


def _tone(operator: Operator) -> Tone:
    if operator.status in ("wrong", "crashes by itself", "refused by itself"):
        return "bad"
    return "good" if operator.status in ("right", "precision") else ""


def _charts(findings: Findings) -> list[Chart]:
    """The error of each operator by itself, and who ran it."""
    layers = [_layer(operator) for operator in findings.operators]
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
    if any(operator.ran_on for operator in findings.operators):
        counts: dict[str, int] = {}
        for operator in findings.operators:
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
