"""The sections of an inference diff on a page: how far outputs are apart, and what would have been noticed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from evaltools.gates.verdict import size_of
from evaltools.report.page.charts.numerics import QUANTA, Apart, floor_chart
from evaltools.report.page.charts.shares import shares_chart
from evaltools.report.words.verdicts import kind_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Chart, Number, Section, Table
from evaltools.tasks.inference_diff.output_kinds import KINDS
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, JudgedOutput

_MOST_OUTPUTS: Final = 12


def sections(result: EvaluationResult) -> list[Section]:
    """Outputs beside the noise floor, quanta, planted faults, inputs."""
    diff: InferenceDiff = result.part
    compared = [(place, comparison) for place, comparison in enumerate(diff.comparisons) if comparison.outputs]
    found = [comparison for _, comparison in compared]
    outputs: list[Block] = [_outputs(compared)] if compared else []
    outputs += [drawn for drawn in (_floor(diff, found), _quanta(found)) if drawn is not None]
    return [
        Section("Outputs", outputs, "numerics", _about_the_floor(diff)),
        Section("What would have been noticed", _noticed(found), "numerics"),
        Section("Inputs", [_inputs(diff)] if diff.inputs else []),
    ]


def _about_the_floor(diff: InferenceDiff) -> str:
    measured = [variant.name for variant in diff.noise_floor if variant.outputs]
    if not measured:
        return "No noise floor was measured (--noise_floor_runs)."
    names = ", ".join(measured)
    return f"The noise floor is how far apart right CPU kernels are: {names}; over {diff.yardstick_runs} runs."


def _outputs(compared: Sequence[tuple[int, DiffComparison]]) -> Table:
    rows: list[Sequence[Cell]] = []
    left = 0
    for place, comparison in compared:
        judged = [(number, each) for number, each in enumerate(comparison.outputs) if not each.in_boxes]
        worst = sorted(judged, key=lambda entry: -size_of(entry[1].difference))[:_MOST_OUTPUTS]
        left += len(judged) - len(worst)
        rows += [
            [comparison.configuration, *_output(each, f"part/comparisons/{place}/outputs/{number}/difference")]
            for number, each in sorted(worst, key=lambda entry: entry[0])
        ]
    columns = ("configuration", "output", "verdict", "relative RMS", "largest", "p99", "SNR", "what it means")
    below = f"and {left} outputs with no larger differences, in the JSON result" if left else ""
    return Table("Difference of each output from the reference", columns, rows, below)


def _output(judged: JudgedOutput, path: str) -> list[Cell]:
    found = judged.difference
    meaning = "" if found.of_kind is None else KINDS[found.of_kind.kind].in_words(found.of_kind)
    return [
        f"{found.output} ({found.dtype})",
        kind_in_words(judged.verdict.grade),
        _number(found.relative_rms, f"{path}/relative_rms"),
        _number(found.max, f"{path}/max"),
        _number(found.p99, f"{path}/p99"),
        "-" if found.snr_db is None else Number(f"{found.snr_db:.1f} dB", found.snr_db, f"{path}/snr_db"),
        meaning,
    ]


def _number(value: float | None, path: str) -> Cell:
    return "-" if value is None else Number(f"{value:.2g}", value, path)


def _floor(diff: InferenceDiff, compared: Sequence[DiffComparison]) -> Chart | None:
    """The relative size of each output's difference, beside those of CPU variants."""
    shown = [output.difference.output for output in (compared[0].outputs if compared else ())][:_MOST_OUTPUTS]
    points = [
        Apart(found.output, "CPU variants", size_of(found), is_floor=True)
        for variant in diff.noise_floor
        for found in variant.outputs
        if found.output in shown
    ]
    points += [
        Apart(judged.difference.output, comparison.configuration, size_of(judged.difference), is_floor=False)
        for comparison in compared
        for judged in comparison.outputs
        if judged.difference.output in shown and not judged.in_boxes
    ]
    if all(point.is_floor for point in points):
        return None
    floors = [point.size for point in points if point.is_floor]
    told = [f"{point.output}, {point.name}: {_size_in_words(point.size)}" for point in points if not point.is_floor]
    told += [f"CPU variants up to {_size_in_words(max(floors))}"] if floors else ["no noise floor was measured"]
    note = "Grey ticks are CPU variants; identical outputs stand at the left edge"
    note += ", those without a relative size at the right." if any(point.size == math.inf for point in points) else "."
    return Chart("Differences beside the noise floor", floor_chart(points), f"{'; '.join(told)}. {note}")


def _size_in_words(size: float) -> str:
    return f"{size:.2g}" if math.isfinite(size) else "no relative size"


def _quanta(compared: Sequence[DiffComparison]) -> Chart | None:
    rows: dict[str, dict[str, float]] = {}
    for comparison in compared:
        for judged in comparison.outputs[:_MOST_OUTPUTS]:
            quanta = judged.difference.quanta
            if quanta is not None:
                name = comparison.configuration
                name += f": {judged.difference.output}" if len(comparison.outputs) > 1 else ""
                rows[name] = dict(zip(QUANTA, quanta.shares, strict=True))
    if not rows:
        return None
    told = "; ".join(
        f"{name}: {', '.join(f'{part} {100 * share:.3g} %' for part, share in shares.items())}"
        for name, shares in rows.items()
    )
    spec = shares_chart(rows, QUANTA, "share of the elements", as_shares=True)
    return Chart("Elements by quanta that they are off", spec, f"{told}.")


def _noticed(compared: Sequence[DiffComparison]) -> list[Block]:
    """A table of the planted faults, with whether each was noticed in each configuration."""
    known = {entry.configuration: entry.sensitivity for entry in compared if entry.sensitivity is not None}
    words = {True: "noticed", False: "not noticed", None: "changes nothing here"}
    names = dict.fromkeys(fault.name for found in known.values() for fault in found.faults)
    by_name = {name: {fault.name: words[fault.noticed] for fault in found.faults} for name, found in known.items()}
    rows = [[fault, *(by_name[name].get(fault, "-") for name in known)] for fault in names]
    noise = [
        "-" if found.smallest_noise is None else f"from {100 * found.smallest_noise:.3g} % of the output on"
        for found in known.values()
    ]
    if not rows:
        return []
    below = "Faults planted in the reference's outputs, judged like those of the configuration."
    return [Table("Sensitivity of the verdict", ["fault", *known], [*rows, ["normal noise", *noise]], below)]


def _inputs(diff: InferenceDiff) -> Table:
    rows = [
        (used.name, f"{used.dtype}[{', '.join(map(str, used.shape))}]", used.source)
        for used in diff.inputs[:_MOST_OUTPUTS]
    ]
    left = len(diff.inputs) - len(rows)
    below = f"and {left} more inputs, in the JSON result" if left else ""
    return Table(f"Inputs of {diff.num_runs} runs, seed {diff.seed}", ("input", "type", "filled with"), rows, below)
