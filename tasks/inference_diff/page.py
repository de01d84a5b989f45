"""The sections of an inference diff on a page: how far outputs are apart, and the inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from evaltools.report.page.charts.figures import QUANTA, Apart, floor_chart
from evaltools.report.page.charts.times import shares_chart
from evaltools.report.page.content.page import first_few, sentences, some_of
from evaltools.report.words.verdicts import kind_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.section import Block, Cell, Chart, Number, Section, Table
from evaltools.tasks.inference_diff.output_kinds import KINDS
from evaltools.tasks.inference_diff.output_order import other_order_in_words
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff, JudgedOutput

_TOLERANCE: Final = "As a tolerance the largest would do, absolute, or relative to the reference"
_MOST_OUTPUTS: Final = 12


def sections(result: EvaluationResult) -> list[Section]:
    """Outputs beside the noise floor, quanta, inputs."""
    diff: InferenceDiff = result.part
    compared = [(place, comparison) for place, comparison in enumerate(diff.comparisons) if comparison.outputs]
    found = [comparison for _, comparison in compared]
    outputs: list[Block] = [_outputs(compared)] if compared else []
    outputs += [drawn for drawn in (_floor(diff, found), _quanta(found)) if drawn is not None]
    return [
        Section("Outputs", outputs, "numerics", sentences(_about_the_floor(diff), other_order_in_words(result))),
        Section("Inputs", [_inputs(diff)] if diff.inputs else []),
    ]


def _about_the_floor(diff: InferenceDiff) -> str:
    measured = [variant.name for variant in diff.noise_floor if variant.outputs]
    if not measured:
        return "No noise floor was measured (--noise_floor_runs)."
    names = ", ".join(measured)
    return f"The noise floor is how far apart right CPU kernels are: {names}; over {diff.noise_floor_runs} runs."


def _outputs(compared: Sequence[tuple[int, DiffComparison]]) -> Table:
    rows: list[Sequence[Cell]] = []
    total = 0
    for place, comparison in compared:
        judged = [(number, each) for number, each in enumerate(comparison.outputs) if not each.in_boxes]
        worst = sorted(judged, key=lambda entry: -entry[1].difference.size)[:_MOST_OUTPUTS]
        total += len(judged)
        rows += [
            [comparison.configuration, *_output(each, f"part/comparisons/{place}/outputs/{number}/difference")]
            for number, each in sorted(worst, key=lambda entry: entry[0])
        ]
    columns = (
        "configuration", "output", "verdict", "relative RMS", "largest", "largest relative", "p99", "SNR",
        "what it means",
    )  # fmt: skip
    below = sentences(_TOLERANCE, some_of(len(rows), total, "differences")) if rows else ""
    return Table("Difference of each output from the reference", columns, rows, below)


def _output(judged: JudgedOutput, path: str) -> list[Cell]:
    found = judged.difference
    meaning = "" if found.of_kind is None else KINDS[found.of_kind.kind].in_words(found.of_kind)
    return [
        f"{found.output} ({found.dtype})",
        kind_in_words(judged.verdict.grade),
        _number(found.relative_rms, f"{path}/relative_rms"),
        _number(found.max, f"{path}/max"),
        _number(found.max_relative, f"{path}/max_relative"),
        _number(found.p99, f"{path}/p99"),
        "-" if found.snr_db is None else Number(f"{found.snr_db:.1f} dB", found.snr_db, f"{path}/snr_db"),
        meaning,
    ]


def _number(value: float | None, path: str) -> Cell:
    return "-" if value is None else Number(f"{value:.2g}", value, path)


def _floor(diff: InferenceDiff, compared: Sequence[DiffComparison]) -> Chart | None:
    """The relative size of each output's difference, beside those of CPU variants."""
    outputs = [output.difference.output for output in (compared[0].outputs if compared else ())]
    shown = outputs[:_MOST_OUTPUTS]
    points = [
        Apart(found.output, "CPU variants", found.size, is_floor=True)
        for variant in diff.noise_floor
        for found in variant.outputs
        if found.output in shown
    ]
    points += [
        Apart(judged.difference.output, comparison.configuration, judged.difference.size, is_floor=False)
        for comparison in compared
        for judged in comparison.outputs
        if judged.difference.output in shown and not judged.in_boxes
    ]
    if all(point.is_floor for point in points):
        return None
    floors = [point.size for point in points if point.is_floor]
    told = [f"{point.output}, {point.name}: {_size_in_words(point.size)}" for point in points if not point.is_floor]
    floor = f"CPU variants up to {_size_in_words(max(floors))}" if floors else "no noise floor was measured"
    note = "Grey ticks are CPU variants; identical outputs stand at the left edge"
    note += ", those without a relative size at the right" if any(point.size == math.inf for point in points) else ""
    left = some_of(len(shown), len(outputs), "outputs")
    said = sentences(first_few(told, _MOST_OUTPUTS), floor, note, left)
    return Chart("Differences beside the noise floor", floor_chart(points), said)


def _size_in_words(size: float) -> str:
    return f"{size:.2g}" if math.isfinite(size) else "no relative size"


def _quanta(compared: Sequence[DiffComparison]) -> Chart | None:
    every: dict[str, dict[str, float]] = {}
    for comparison in compared:
        for judged in comparison.outputs:
            quanta = judged.difference.quanta
            if quanta is not None:
                name = comparison.configuration
                name += f": {judged.difference.output}" if len(comparison.outputs) > 1 else ""
                every[name] = dict(zip(QUANTA, quanta.shares, strict=True))
    if not every:
        return None
    rows = dict(list(every.items())[:_MOST_OUTPUTS])
    told = [
        f"{name}: {', '.join(f'{part} {100 * share:.3g} %' for part, share in shares.items())}"
        for name, shares in rows.items()
    ]
    spec = shares_chart(rows, QUANTA, "share of the elements", as_shares=True)
    said = sentences("; ".join(told), some_of(len(rows), len(every), "outputs"))
    return Chart("Elements by quanta that they are off", spec, said)


def _inputs(diff: InferenceDiff) -> Table:
    rows = [
        (used.name, f"{used.dtype}[{', '.join(map(str, used.shape))}]", used.source)
        for used in diff.inputs[:_MOST_OUTPUTS]
    ]
    below = some_of(len(rows), len(diff.inputs), "inputs")
    return Table(f"Inputs of {diff.num_runs} runs, seed {diff.seed}", ("input", "type", "filled with"), rows, below)
