"""What the page of an inference diff has: outputs, and what the verdicts would have noticed."""

from __future__ import annotations

from evaltools.gates.verdict import size_of
from evaltools.report.words.verdicts import kind_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Section
from evaltools.tasks.inference_diff.output_kinds import KINDS
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, JudgedOutput


def sections(result: EvaluationResult) -> list[Section]:
    """Tables with a row per output and configuration, and a row per planted fault."""
    diff: InferenceDiff = result.part
    compared = [comparison for comparison in diff.comparisons if comparison.outputs]
    return [_outputs(compared), _noticed(compared)]


def _outputs(compared: list[DiffComparison]) -> Section:
    rows = [
        [comparison.configuration, *_output(judged)]
        for comparison in compared
        for judged in comparison.outputs
        if not judged.in_boxes
    ]
    columns = ["configuration", "output", "verdict", "relative size", "largest difference", "what it means"]
    return Section("Outputs", columns, rows)


def _output(judged: JudgedOutput) -> list[str]:
    found = judged.difference
    meaning = "" if found.of_kind is None else KINDS[found.of_kind.kind].in_words(found.of_kind)
    largest = "-" if found.max is None else f"{found.max:.3g}"
    name = f"{found.output} ({found.dtype})"
    return [name, kind_in_words(judged.verdict.grade), f"{size_of(found):.2g}", largest, meaning]


def _noticed(compared: list[DiffComparison]) -> Section:
    """Faults are the same for all configurations, but for those that outputs cannot have."""
    known = {entry.configuration: entry.sensitivity for entry in compared if entry.sensitivity is not None}
    words = {True: "noticed", False: "not noticed", None: "changes nothing here"}
    names = dict.fromkeys(fault.name for found in known.values() for fault in found.faults)
    by_name = {name: {fault.name: words[fault.noticed] for fault in found.faults} for name, found in known.items()}
    rows = [[fault, *(by_name[name].get(fault, "-") for name in known)] for fault in names]
    noise = [
        "-" if found.smallest_noise is None else f"from {100 * found.smallest_noise:.3g} % of the output on"
        for found in known.values()
    ]
    rows += [["normal noise", *noise]] if rows else []
    below = "Faults planted in the reference's outputs, judged like those of the configuration."
    return Section("What would have been noticed", ["fault", *known], rows, below)
