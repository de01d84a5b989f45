"""The sections of an inference diff on a page: how far outputs are apart, and the inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.output_difference import OutputDifference
from evaltools.metrics.proportions import wilson_interval
from evaltools.metrics.words import ends
from evaltools.report.content import first_lines, sentences, some_of
from evaltools.report.words.facts import counted
from evaltools.report.words.numbers import figure, milliseconds, percent
from evaltools.result.figure import Figure
from evaltools.result.section import (
    Axis,
    Block,
    Cell,
    Chart,
    Lines,
    Mark,
    Note,
    Number,
    Section,
    Table,
    Tone,
    number_cell,
)
from evaltools.result.verdict import OF_OUTPUTS, Verdict, kind_in_words
from evaltools.tasks.inference_diff.output_kinds import KINDS
from evaltools.tasks.inference_diff.output_order import other_order_in_words
from evaltools.tasks.inference_diff.result import DiffComparison, InferenceDiff

_TOLERANCE: Final = "As a tolerance the largest would do, absolute, or relative to the reference"
_MOST_OUTPUTS: Final = 12
_VARIANTS: Final = "CPU variants"
_QUANTA: Final[Mapping[str, Tone]] = {"equal": "good", "off by 1": "near", "by 2": "open", "by more": "bad"}


def sections(
    diff: InferenceDiff, outputs: Sequence[str], other_outputs: Sequence[str], times: Mapping[str, WithReading]
) -> list[Section]:
    """Inputs and broken limits for the first screen; outputs beside the noise floor, what else was seen, times.

    ``outputs`` are the names of the model's outputs, ``other_outputs`` those of the reference's model.
    """
    found = [comparison for comparison in diff.comparisons if comparison.outputs]
    blocks: list[Block] = [_outputs(diff, found)] if found else []
    drawn, quanta = _floor(diff, found), _quanta(found)
    blocks += [] if quanta is None else [quanta]
    lines = [*_boxes(diff, found), *_by_inputs(found), *_repeated(diff), *_native_errors(diff, outputs)]
    blocks += [Lines(lines)] if lines else []
    other_order = other_order_in_words(diff.output_order, outputs, other_outputs)
    first: list[str | Note] = [*_inputs_in_short(diff), *([other_order] if other_order else [])]
    first += _broken_limits(diff)
    return [
        Section("Inputs in short", [Lines(first)] if first else [], "first"),
        Section("Beside the noise floor", [] if drawn is None else [drawn], "glance"),
        Section("Outputs", blocks, "numerics", _about_the_floor(diff)),
        Section("Inputs", [_inputs(diff)] if diff.inputs else []),
        Section("Times with reading", [_times(times)] if times else []),
    ]


class WithReading(Struct, frozen=True):
    """The median time of a configuration until its outputs are copied, and the time of its very first run."""

    median_us: float | None
    first_us: float | None


def _inputs_in_short(diff: InferenceDiff) -> list[str]:
    sources = list(dict.fromkeys(used.source for used in diff.inputs))
    if not sources:
        return []
    more = f" and {counted(len(sources) - 1, 'other source')}" if len(sources) > 1 else ""
    return [f"{counted(diff.num_runs, 'run')} on {sources[0]}{more}"]


def _broken_limits(diff: InferenceDiff) -> list[Note]:
    return [
        Note(
            comparison.configuration,
            f"LIMIT BROKEN {check.limit}: {check.output} has {figure(Figure(check.found))}",
            "bad",
        )
        for comparison in diff.comparisons
        for check in comparison.limits
        if not check.kept
    ]


def _about_the_floor(diff: InferenceDiff) -> str:
    measured = [variant.name for variant in diff.noise_floor if variant.outputs]
    if not measured:
        return "No noise floor was measured (--noise_floor_runs)."
    names = ", ".join(measured)
    return f"The noise floor is how far apart right CPU kernels are: {names}; over {diff.noise_floor_runs} runs."


def _outputs(diff: InferenceDiff, compared: Sequence[DiffComparison]) -> Table:
    """The outputs that differ most of each configuration, each above the worst of the noise floor."""
    rows: list[Sequence[Cell]] = []
    total = shown = 0
    for comparison in compared:
        judged = [(number, each) for number, each in enumerate(comparison.outputs) if not each.in_boxes]
        worst = sorted(judged, key=lambda entry: -entry[1].difference.size)[:_MOST_OUTPUTS]
        total, shown = total + len(judged), shown + len(worst)
        for number, each in sorted(worst, key=lambda entry: entry[0]):
            found = each.difference
            meaning = "" if found.of_kind is None else KINDS[found.of_kind.kind].in_words(found.of_kind)
            name = f"{found.output} ({found.dtype})"
            grade = kind_in_words(each.verdict.grade)
            rows.append([comparison.configuration, name, grade, *_figures([found]), meaning])
            floor = [
                variant.outputs[number]
                for variant in diff.noise_floor
                if variant.outputs and variant.name in each.compared_with
            ]
            if floor:
                rows.append([f"noise floor, {counted(floor[0].runs, 'run')}", "", "", *_figures(floor), ""])
    columns = (
        "configuration", "output", "verdict", "relative RMS", "largest", "largest relative", "differ", "same best",
        "cosine", "SNR", "quanta off 0/1/2/more", "top-5", "mean", "p99", "what it means",
    )  # fmt: skip
    ranks = (0, 0, 1, 0, 3, 4, 2, 5, 6, 7, 8, 9, 10, 11, 12)
    below = sentences(_TOLERANCE, some_of(shown, total, "differences")) if rows else ""
    return Table("Difference of each output from the reference", columns, rows, below, 2, ranks)


def _same_best(differences: Sequence[OutputDifference]) -> Cell:
    """The smallest share of answers with the same best class; with its 95 % interval where each run has one answer."""
    scores = [(each.scores, each.runs) for each in differences if each.scores is not None]
    if not scores:
        return ""
    least, runs = min(scores, key=lambda each: each[0].share)
    text = percent(least.share, digits=1)
    if least.positions == runs:
        interval = wilson_interval(least.same_best, runs)
        text = f"{text} {ends(f'{100 * interval.low:.1f}', f'{100 * interval.high:.1f}')}"
    return Number(text, least.share)


def _figures(differences: Sequence[OutputDifference]) -> list[Cell]:
    """The worst figures of some differences of the same output."""

    def number(name: str, show: Callable[[float], str] = "{:.2g}".format, best: Callable[..., float] = max) -> Cell:
        known = [value for each in differences if (value := getattr(each, name)) is not None]
        return number_cell(best(known) if known else None, show)

    if differences[0].kind == "exact":
        share = max(each.different / max(1, each.elements) for each in differences)
        return ["", "", "", Number(f"{100 * share:.3g} %", share), *[""] * 7]
    scores = [each.scores for each in differences if each.scores is not None]
    overlaps = [score.top5_overlap for score in scores if score.top5_overlap is not None]
    quanta = [each.quanta for each in differences if each.quanta is not None]
    shares = max(quanta, key=lambda each: each.rms).shares if quanta else ()
    return [
        number("relative_rms"),
        number("max"),
        number("max_relative"),
        "",
        _same_best(differences),
        number("cosine", "{:.7f}".format, min),
        number("snr_db", "{:.1f} dB".format, min),
        f"{' / '.join(f'{100 * share:.3g}' for share in shares)} %" if shares else "",
        number_cell(min(overlaps, default=None), partial(percent, digits=1), absent=""),
        number("mean"),
        number("p99"),
    ]


def _boxes(diff: InferenceDiff, compared: Sequence[DiffComparison]) -> list[Note]:
    """How boxes were matched, of configurations and of the CPU variants that count."""
    counting = {name for entry in compared for judged in entry.outputs for name in judged.compared_with}
    found = [(entry.configuration, entry.boxes) for entry in compared]
    found += [(f"noise floor, {one.name}", one.boxes) for one in diff.noise_floor if one.name in counting]
    return [Note(name, f"boxes: {boxes_in_words(boxes)}") for name, boxes in found if boxes is not None]


def boxes_in_words(boxes: BoxAgreement) -> str:
    """How many boxes both sides have, how well they fit, and how many only one side has."""
    iou = "-" if boxes.mean_iou is None else f"{boxes.mean_iou:.4f}"
    return (
        f"{boxes.matched} matched (mean IoU {iou}, score shift at most {boxes.score_shift:.2g}), {boxes.lost} lost, "
        f"{boxes.new} new, {boxes.class_changes} of another class"
    )


def _by_inputs(compared: Sequence[DiffComparison]) -> list[Note]:
    """The largest relative RMS and the boxes over the runs on noise, and over those on photos."""
    notes = []
    for comparison in compared:
        in_boxes = [judged.in_boxes for judged in comparison.outputs]
        for found in comparison.by_kind:
            outputs = [output for output, is_box in zip(found.outputs, in_boxes, strict=True) if not is_box]
            sizes = [output.relative_rms for output in outputs if output.relative_rms is not None]
            texts = [f"relative RMS at most {max(sizes):.3g}"] if sizes else []
            texts += [boxes_in_words(found.boxes)] if found.boxes is not None else []
            name = f"{comparison.configuration}, {found.kind} ({counted(found.runs, 'run')})"
            notes += [Note(name, ", ".join(texts))] if texts else []
    return notes


def _repeated(diff: InferenceDiff) -> list[Note]:
    notes = []
    for comparison in diff.comparisons:
        repeated = comparison.repeatability
        if repeated is not None and repeated.identical:
            text = f"repeatable, {counted(repeated.runs, 'run')} gave the same outputs a second time"
            notes.append(Note(comparison.configuration, text))
        elif repeated is not None and repeated.reason is not None:
            notes.append(Note(comparison.configuration, f"could not be run a second time: {repeated.reason}", "open"))
    return notes


def _native_errors(diff: InferenceDiff, outputs: Sequence[str]) -> list[Note]:
    """What a native tool states about each output, in raw numbers."""
    notes = []
    for comparison in diff.comparisons:
        for number, error in enumerate(comparison.native_errors):
            figures = (("avg_error", error.avg_error), ("between runs", error.std_dev), ("largest", error.max_error))
            text = ", ".join(f"{name} {figure(Figure(value))}" for name, value in figures)
            name = " ".join(outputs[number : number + 1])
            notes.append(Note(f"{comparison.configuration}, output {number} {name}".rstrip(), text))
    return notes


def _times(times: Mapping[str, WithReading]) -> Table:
    rows: list[Sequence[Cell]] = [
        [name, number_cell(each.median_us, milliseconds), number_cell(each.first_us, milliseconds)]
        for name, each in times.items()
    ]
    return Table("Times of runs with reading their outputs, and of the first run", ("configuration", "with reading",
                 "first run"), rows)  # fmt: skip


def _floor(diff: InferenceDiff, compared: Sequence[DiffComparison]) -> Chart | None:
    """The worst run of each output, beside that of CPU variants: the only output's by configuration, else by output."""
    outputs = [output.difference.output for output in (compared[0].outputs if compared else ())]
    shown = outputs[:_MOST_OUTPUTS]
    is_single = len(outputs) == 1
    floors = [found for variant in diff.noise_floor for found in variant.outputs if found.output in shown]
    others = [
        (judged, comparison.configuration)
        for comparison in compared
        for judged in comparison.outputs
        if judged.difference.output in shown and not judged.in_boxes
    ]
    if not others:
        return None
    marks = [
        Mark(_drawn(found.size), *((_VARIANTS, "") if is_single else (found.output, _VARIANTS)), "missing", beside=True)
        for found in floors
    ]
    marks += [
        Mark(_drawn(judged.difference.size), name, tone=Verdict(judged.verdict.grade, OF_OUTPUTS).tone)
        if is_single
        else Mark(_drawn(judged.difference.size), judged.difference.output, name)
        for judged, name in others
    ]
    others.sort(key=lambda each: -each[0].difference.size)
    lines = [
        f"{name}{'' if is_single else f', {judged.difference.output}'}: {_size_in_words(judged.difference.size)}"
        for judged, name in others
    ]
    largest = max((found.size for found in floors), default=None)
    floor = "No noise floor was measured" if largest is None else f"CPU variants: up to {_size_in_words(largest)}"
    note = "Identical outputs stand at the left edge"
    sizes = [*(found.size for found in floors), *(judged.difference.size for judged, _ in others)]
    note += ", those without a relative size at the right" if math.inf in sizes else ""
    text = sentences(floor, note, some_of(len(shown), len(outputs), "outputs"))
    axis = Axis("relative RMS of the worst run", "log")
    names = [comparison.configuration for comparison in diff.comparisons]
    caption = "The worst run, beside CPU variants"
    return Chart(caption, "points", marks, text, axis, lines=first_lines(lines), names=names)


def _drawn(size: float) -> float | None:
    """None for what no number says: it is beyond all others."""
    return size if math.isfinite(size) else None


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
                every[name] = dict(zip(_QUANTA, quanta.shares, strict=True))
    if not every:
        return None
    rows = dict(list(every.items())[:_MOST_OUTPUTS])
    worst_first = sorted(rows.items(), key=lambda each: list(each[1].values())[::-1], reverse=True)
    lines = [
        f"{name}: {', '.join(f'{part} {100 * share:.3g} %' for part, share in shares.items())}"
        for name, shares in worst_first
    ]
    marks = [Mark(share, name, part, _QUANTA[part]) for name, shares in rows.items() for part, share in shares.items()]
    text = sentences(some_of(len(rows), len(every), "outputs"))
    axis = Axis("share of the elements")
    return Chart("Elements by quanta that they are off", "shares", marks, text, axis, lines=first_lines(lines))


def _inputs(diff: InferenceDiff) -> Table:
    rows = [
        (used.name, f"{used.dtype}[{', '.join(map(str, used.shape))}]", used.source)
        for used in diff.inputs[:_MOST_OUTPUTS]
    ]
    below = some_of(len(rows), len(diff.inputs), "inputs")
    return Table(f"Inputs of {diff.num_runs} runs, seed {diff.seed}", ("input", "type", "filled with"), rows, below)
