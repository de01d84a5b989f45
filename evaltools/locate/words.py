"""The sentences about what a search found, below its answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from evaltools.locate.findings import (
    COMPARED_BY_NAME,
    FLOAT_LAYER,
    Evidence,
    Findings,
    InFloat,
    KeepInFloat,
    Suspect,
)
from evaltools.text import shortened, steps

_MOST_NAMED: Final = 4
_MOST_EXPLAINED: Final = 4
_MOST_IN_FLOAT: Final = 5
_LONGEST_QUOTED: Final = 60
_QUOTED: Final = re.compile(f"(?<!\\w)'([^']{{{_LONGEST_QUOTED},}})'")
_STATUS: Final = {
    "confirmed": "confirmed: wrong by itself and in the model",
    "confirmed in context": "confirmed: its operators are right one by one and wrong together (fusion or memory)",
    "only in context": "only in context: its operators are right one by one and wrong together (fusion or memory)",
    "only by itself": "only by itself: in the model it is right, so that the delegate does something else there",
    "not confirmed": "not confirmed: only one method shows it",
    "crashes by itself": "by itself it ends in a crash, a hang or an error",
    "crashes in context": "together they end in a crash, a hang or an error; one by one they do not",
}


def answer_lines(findings: Findings) -> list[str]:
    """The answer, and what it rests on."""
    is_by_name = findings.answer.kind == COMPARED_BY_NAME
    lines = [findings.answer.text]
    looked_at = [operator for operator in findings.operators if operator.local is not None]
    if looked_at and not is_by_name:
        within = sum(operator.status in ("right", "precision") for operator in looked_at)
        on_cpu = sum(operator.status == "stays on the CPU" for operator in looked_at)
        stays = f", {on_cpu} stay on the CPU" if on_cpu else ""
        lines.append(
            f"{len(looked_at)} of {_all_operators(findings)} were run one by one: {within} within their tolerance"
            f"{stays}; {findings.num_inputs} inputs, {findings.compiles} compiles, "
            f"{findings.environment.elapsed_s:.0f} s"
        )
    if is_by_name:
        lines.append(_of_comparison(findings))
        lines += [] if findings.keep_in_float is None else _in_float(findings.keep_in_float)
        lines += _copy_in_float(findings)
    lines += [_of_output(findings)] if findings.outputs else []
    if findings.assumed:
        lines.append(f"precision assumed: {findings.assumed}; --delegate_precision states it")
    lines += [f"stopped early: {findings.stopped}"] if findings.stopped else []
    return lines + list(findings.warnings)


def suspect_lines(findings: Findings) -> list[str]:
    """How far off, how sure, why and what to do, for the first suspects; of others how sure."""
    lines = [line for suspect in findings.suspects[:_MOST_EXPLAINED] for line in of_suspect(suspect)]
    return lines + [_head(suspect) for suspect in findings.suspects[_MOST_EXPLAINED:]]


def _of_comparison(findings: Findings) -> str:
    count = findings.num_inputs
    return (
        f"{count} input{'' if count == 1 else 's'}, {findings.environment.elapsed_s:.0f} s; errors add up from layer "
        "to layer, so that a large one accuses nobody: look where it grows"
    )


def _in_float(found: KeepInFloat) -> list[str]:
    """The layers that are worth keeping in float, and how much that is measured to gain."""
    names = ", ".join(map(repr, found.measured_in[:_MOST_NAMED]))
    others = f" and {len(found.measured_in) - _MOST_NAMED} more" if len(found.measured_in) > _MOST_NAMED else ""
    where = f"SQNR at {names}{others}: {found.sqnr_db:.1f} dB"
    how = f"{len(found.layers)} of {found.candidates} quantised layers tried, one at a time"
    if not found.layers:
        return [f"{where}; none of {found.candidates} quantised layers was tried in float"]
    if not found.operators:
        return [f"{where}; no single layer in float makes it clearly better ({how})"]
    lines = [f"{where}; keep these in float, best first ({how}):"]
    layers = {layer.index: layer for layer in found.layers}
    lines += [_of_layer(layers[index]) for index in found.operators[:_MOST_IN_FLOAT]]
    more = len(found.operators) - _MOST_IN_FLOAT
    return lines + ([f"  and {more} more, which gain less"] if more > 0 else [])


def _of_layer(layer: InFloat) -> str:
    known = layer.interval
    how_sure = "" if known is None else f" (95 %: {known.low:.1f} to {known.high:.1f})"
    gain = f"{layer.sqnr_db:.1f} dB, {layer.gain_db:.1f} dB better{how_sure}"
    return f"  #{layer.index} {layer.name} -> {layer.tensor!r}: {gain}"


def _copy_in_float(findings: Findings) -> list[str]:
    """Where the copy of the model is that has a layer in float."""
    best = None if findings.keep_in_float is None else findings.keep_in_float.best
    if findings.bundle is None or best is None:
        return []
    return [f"{Path(findings.bundle.folder) / FLOAT_LAYER}: the model with #{best.index} {best.name} in float"]


def _all_operators(findings: Findings) -> str:
    """How many operators there were to be run, and of how many in the model where these are not all."""
    count, all_of_them = len(findings.operators), findings.model.node_count
    return f"{count} operators" + (f" (the model has {all_of_them})" if count < all_of_them else "")


def _of_output(findings: Findings) -> str:
    worst = max(findings.outputs, key=lambda output: output.errors.relative)
    in_words = steps if worst.unit == "steps" else str
    text = f"output {worst.name!r}: off by up to {in_words(f'{worst.errors.worst:.3g}')}"
    if worst.explained is not None and worst.errors.worst:
        text += f"; its operators one by one give {in_words(f'{worst.explained:.3g}')}"
    return text


def _head(suspect: Suspect) -> str:
    place = suspect.first if suspect.first == suspect.last else f"{suspect.first}-{suspect.last}"
    return f"#{place} {suspect.name} -> {suspect.tensor!r}: {_STATUS[suspect.status]}"


def of_suspect(suspect: Suspect) -> list[str]:
    """Everything that is said of one suspect, below an empty line."""
    lines = ["", _head(suspect), *(f"  {_of_evidence(each)}" for each in suspect.evidence)]
    if suspect.reaches_output is not None:
        reaches = "reaches" if suspect.reaches_output else "does not reach"
        lines.append(f"  its error {reaches} the model's outputs")
    for option in suspect.sweep:
        lines.append(f"  with {option.setting}: {'still wrong' if option.wrong else 'right'} ({option.meaning})")
    for cause in suspect.causes:
        lines.append(f"  cause: {cause.name}: {cause.shown_by}")
        lines.append(f"  what to do: {cause.remedy}{f' ({cause.link})' if cause.link else ''}")
    return lines


def _of_evidence(evidence: Evidence) -> str:
    where = f"operator {evidence.part}" if "-" not in evidence.part else f"operators {evidence.part}"
    found = f"{evidence.beyond} of {evidence.runs} runs beyond the tolerance" if evidence.runs else "could not be run"
    return f"{evidence.method}, {where}: {found}{f' ({evidence.note})' if evidence.note else ''}"


def with_short_names(line: str) -> str:
    """A line in which long names, which stand in quotes, are shortened."""
    return _QUOTED.sub(lambda quoted: f"'{shortened(quoted[1], _LONGEST_QUOTED)}'", line)
