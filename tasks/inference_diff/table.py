"""The figures of an inference diff, for a person."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from rich.console import Console

from evaltools.gates.verdict import GRADES
from evaltools.metrics.output_difference import OutputDifference
from evaltools.report.tables.cells import Said, median, milliseconds, print_said, speed
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, speed_columns
from evaltools.report.words.verdicts import outputs_in_words
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.places import reference_of
from evaltools.result.verdict import Verdict
from evaltools.task_kind import Detail
from evaltools.tasks.inference_diff.output_kinds import KINDS, SCORES, VALUES
from evaltools.tasks.inference_diff.output_order import other_order_in_words
from evaltools.tasks.inference_diff.result import (
    DiffComparison,
    InferenceDiff,
    JudgedOutput,
    RunTimes,
    Variant,
)
from evaltools.text import printable

_MOST_OUTPUTS: Final = 8
_QUANTA: Final = "quanta off 0/1/2/more %"
_NUMERIC: Final = ("mean", "p99", "max", "rel RMS", "SNR dB", "cosine")
_HEADINGS: Final = (*_NUMERIC, "differ", _QUANTA, "same best", "top-5")
_RANKS: Final = ("rel RMS", "differ", "max", "same best", "cosine", "SNR dB", _QUANTA, "top-5", "mean", "p99")
"""From the figure that is always shown to the one that is left out first."""


def print_figures(result: EvaluationResult, console: Console, detail: Detail) -> None:
    """Differences per output beside the noise floor, latency, why the verdicts are what they are, broken limits.

    With all detail the figures by kind of inputs, and tolerances.
    """
    diff: InferenceDiff = result.part
    compared = [comparison for comparison in diff.comparisons if comparison.outputs]
    for used in diff.inputs[:_MOST_OUTPUTS]:
        console.print(printable(f"input {used.name} {used.dtype}[{','.join(map(str, used.shape))}]: {used.source}"))
    if len(diff.inputs) > _MOST_OUTPUTS:
        console.print(f"... and {len(diff.inputs) - _MOST_OUTPUTS} more inputs, listed in the JSON result")
    if words := other_order_in_words(result):
        console.print(printable(words))
    if compared:
        shown = _outputs_shown(compared)
        if shown:
            _print_differences(diff, compared, shown, console)
        left_out = sum(not judged.in_boxes for judged in compared[0].outputs) - len(shown)
        if left_out:
            console.print(f"... and {left_out} outputs with no larger differences, listed in the JSON result")
        _print_boxes(diff, compared, console)
        _print_figures_of_kind(diff, compared, console)
        if detail == "all":
            _print_output_kinds(compared[0], shown, console)
            _print_kinds(compared, console)
            _print_tolerances(compared, shown, console)
    if any(entry.inference_latency for entry in result.configurations):
        console.print()
        _print_latencies(result, diff, console)
        console.print()
    for comparison in diff.comparisons:
        _print_native_errors(result, comparison, console)
    verdicts = {entry.name: entry.verdict for entry in result.configurations}
    print_said((said for entry in diff.comparisons for said in _said(entry, verdicts[entry.configuration])), console)


def _outputs_shown(compared: Sequence[DiffComparison]) -> list[int]:
    """The outputs with the worst verdicts and largest differences, in the model's order, but for those of boxes."""
    positions = [position for position, judged in enumerate(compared[0].outputs) if not judged.in_boxes]
    return sorted(sorted(positions, key=lambda position: _concern(compared, position), reverse=True)[:_MOST_OUTPUTS])


def _concern(compared: Sequence[DiffComparison], position: int) -> tuple[int, float, int]:
    judged = [comparison.outputs[position] for comparison in compared]
    grade = max(GRADES.index(entry.verdict.grade) for entry in judged)
    return grade, max(entry.difference.relative_rms or 0.0 for entry in judged), -position


class _Row(Struct, frozen=True):
    """The figures of one output in one configuration, or the worst of the noise floor."""

    output: str
    name: str
    cells: Mapping[str, str]
    is_floor: bool = False


def _print_differences(
    diff: InferenceDiff, compared: Sequence[DiffComparison], shown: Sequence[int], console: Console
) -> None:
    rows = []
    for position in shown:
        first = compared[0].outputs[position].difference
        label = f"{first.output} ({first.dtype})"
        floors = _floors(diff, compared, position)
        for comparison in compared:
            found = comparison.outputs[position].difference
            is_told_apart = any(floor[0].runs != found.runs for floor in floors.values())
            name = f"{comparison.configuration}, {_runs(found.runs)}" if is_told_apart else comparison.configuration
            rows.append(_Row(label, name, _cells([found])))
            label = ""
        for name, floor in floors.items():
            rows.append(_Row("", f"{name}, {_runs(floor[0].runs)}", _cells(floor), is_floor=True))
    names = [Column[_Row]("output", lambda row: row.output), Column[_Row]("configuration", lambda row: row.name)]
    columns = [_column(heading) for heading in _columns(compared)]
    print_columns(names, columns, rows, console, lambda row: "dim" if row.is_floor else None)


def _floors(
    diff: InferenceDiff, compared: Sequence[DiffComparison], position: int
) -> dict[str, list[OutputDifference]]:
    """The CPU variants that one output is compared with, by the row's name.

    There is one row if all configurations share them.
    """
    measured = {entry.name: entry.outputs[position] for entry in diff.noise_floor if entry.outputs}
    sharing: dict[tuple[str, ...], list[str]] = {}
    for comparison in compared:
        names = tuple(name for name in comparison.outputs[position].held_against if name in measured)
        sharing.setdefault(names, []).append(comparison.configuration)
    floors = {}
    for names, configurations in sharing.items():
        if names:
            of = "" if len(sharing) == 1 else f" of {', '.join(configurations)}"
            floors[f"noise floor{of}"] = [measured[name] for name in names]
    return floors


def _column(heading: str) -> Column[_Row]:
    return Column(heading, lambda row: row.cells[heading], _RANKS.index(heading))


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def _columns(compared: Sequence[DiffComparison]) -> list[str]:
    """The columns that some output has."""
    found = [judged.difference for comparison in compared for judged in comparison.outputs if not judged.in_boxes]
    left_out = set()
    if all(difference.kind == "exact" for difference in found):
        left_out |= set(_NUMERIC)
    if not any(difference.kind == "exact" for difference in found):
        left_out.add("differ")
    if not any(difference.quanta for difference in found):
        left_out.add(_QUANTA)
    if not any(difference.scores for difference in found):
        left_out.add("same best")
    if not any(difference.scores and difference.scores.top5_overlap is not None for difference in found):
        left_out.add("top-5")
    return [heading for heading in _HEADINGS if heading not in left_out]


def _cells(differences: Sequence[OutputDifference]) -> dict[str, str]:
    """The worst figures of some differences of the same output."""
    if differences[0].kind == "exact":
        share = max(entry.different / max(1, entry.elements) for entry in differences)
        return dict.fromkeys(_HEADINGS, "") | dict.fromkeys(_NUMERIC, "-") | {"differ": f"{100 * share:.3g} %"}
    scores = [entry.scores for entry in differences if entry.scores is not None]
    overlaps = [score.top5_overlap for score in scores if score.top5_overlap is not None]
    return {
        "mean": _largest(differences, lambda entry: entry.mean),
        "p99": _largest(differences, lambda entry: entry.p99),
        "max": _largest(differences, lambda entry: entry.max),
        "rel RMS": _largest(differences, lambda entry: entry.relative_rms),
        "SNR dB": _smallest((entry.snr_db for entry in differences), ".1f"),
        "differ": "",
        "cosine": _smallest((entry.cosine for entry in differences), ".7f"),
        _QUANTA: _quanta(differences),
        "same best": f"{100 * min(score.share for score in scores):.1f} %" if scores else "",
        "top-5": f"{100 * min(overlaps):.1f} %" if overlaps else "",
    }


def _largest(differences: Sequence[OutputDifference], figure: Callable[[OutputDifference], float | None]) -> str:
    values = [value for value in map(figure, differences) if value is not None]
    return f"{max(values):.3g}" if values else "-"


def _smallest(values: Iterable[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(min(known), form) if known else "-"


def _quanta(differences: Sequence[OutputDifference]) -> str:
    quanta = [entry.quanta for entry in differences if entry.quanta is not None]
    if not quanta:
        return ""
    worst = max(quanta, key=lambda entry: entry.rms)
    return " / ".join(f"{100 * share:.3g}" for share in worst.shares)


def _print_boxes(diff: InferenceDiff, compared: Sequence[DiffComparison], console: Console) -> None:
    counting = {name for entry in compared for judged in entry.outputs for name in judged.held_against}
    entries: list[DiffComparison | Variant] = [*compared, *(one for one in diff.noise_floor if one.name in counting)]
    for entry in entries:
        boxes = entry.boxes
        if boxes is None:
            continue
        name = entry.configuration if isinstance(entry, DiffComparison) else f"noise floor, {entry.name}"
        iou = "-" if boxes.mean_iou is None else f"{boxes.mean_iou:.4f}"
        console.print(
            f"boxes, {name}: {boxes.matched} matched (mean IoU {iou}, score shift at most {boxes.score_shift:.2g}), "
            f"{boxes.lost} lost, {boxes.new} new, {boxes.class_changes} of another class"
        )


def _print_figures_of_kind(diff: InferenceDiff, compared: Sequence[DiffComparison], console: Console) -> None:
    """Keypoints, segmentation, embeddings: of each configuration, and of the CPU variant that differs most."""
    for position, output in enumerate(compared[0].outputs[:_MOST_OUTPUTS]):
        named = [(entry.configuration, entry.outputs[position].difference) for entry in compared]
        counting = {name for entry in compared for name in entry.outputs[position].held_against}
        floor = [
            (entry.name, entry.outputs[position])
            for entry in diff.noise_floor
            if entry.outputs and entry.name in counting
        ]
        if floor:
            name, farthest = max(floor, key=lambda entry: entry[1].size)
            named.append((f"noise floor ({name})", farthest))
        for name, difference in named:
            found = difference.of_kind
            if found is not None:
                words = KINDS[found.kind].in_words(found)
                console.print(f"{found.kind}, {name}, {output.difference.output}: {words}")


def _print_output_kinds(comparison: DiffComparison, shown: Sequence[int], console: Console) -> None:
    """Print the kind that each output is compared as."""
    kinds = [(found.output, _output_kind(found)) for found in (comparison.outputs[one].difference for one in shown)]
    if kinds:
        console.print(
            f"kind of output: {', '.join(f'{name} {kind}' for name, kind in kinds)} (--output_kind states it)"
        )


def _output_kind(found: OutputDifference) -> str:
    if found.of_kind is not None:
        return found.of_kind.kind
    return SCORES if found.scores is not None else VALUES


def _print_kinds(compared: Sequence[DiffComparison], console: Console) -> None:
    """The worst figures over the runs on noise and over those on photos."""
    for comparison in compared:
        in_boxes = [judged.in_boxes for judged in comparison.outputs]
        for found in comparison.by_kind:
            shown = [output for output, is_box in zip(found.outputs, in_boxes, strict=True) if not is_box]
            cells = _worst_cells(shown)
            if found.boxes is not None:
                boxes = found.boxes
                cells.append(f"boxes {boxes.matched} matched, {boxes.lost} lost, {boxes.new} new")
            console.print(f"{comparison.configuration}, {found.kind} ({_runs(found.runs)}): {', '.join(cells)}")


def _worst_cells(outputs: Sequence[OutputDifference]) -> list[str]:
    """Each figure with its name, of the output where it is worst."""
    found = []
    numbers = [output for output in outputs if output.kind != "exact"]
    if numbers:
        cells = _cells(numbers)
        wanted = ("rel RMS", "max", "cosine", "same best")
        found += [f"{heading} {cells[heading]}" for heading in wanted if cells[heading] not in ("", "-")]
    others = [output for output in outputs if output.kind == "exact"]
    if others:
        found.append(f"differ {_cells(others)['differ']}")
    return found


def _print_tolerances(compared: Sequence[DiffComparison], shown: Sequence[int], console: Console) -> None:
    for comparison in compared:
        for position in shown:
            console.print(
                f"minimum required tolerance, {comparison.configuration}, {_required(comparison.outputs[position])}"
            )


def _required(judged: JudgedOutput) -> str:
    found = judged.difference
    sound = found.same_shape and not any(side.nan or side.infinite for side in (found.test, found.reference))
    if found.max is None or not sound:
        return f"{found.output}: {'0' if sound and found.identical else 'none would do'}"
    relative = " (no rel alone would do)" if found.max_relative is None else f" or rel={found.max_relative:.3g}"
    quanta = "" if found.quanta is None else f", {found.quanta.max} quanta"
    return f"{found.output}: abs={found.max:.3g}{relative}{quanta}"


def _print_latencies(result: EvaluationResult, diff: InferenceDiff, console: Console) -> None:
    """Print latencies; with two models, each beside the reference of its own model."""

    def of_times(cell: Callable[[RunTimes], str]) -> Callable[[ConfigurationResult], str]:
        return lambda entry: (
            cell(diff.times[entry.name]) if entry.inference_latency and entry.name in diff.times else "-"
        )

    def ratio(entry: ConfigurationResult) -> str:
        return speed(entry, reference_of(entry, result.configurations), result.latency_comparisons)

    def p90(entry: ConfigurationResult) -> str:
        latency = entry.inference_latency
        return "-" if latency is None or latency.p90_us is None else milliseconds(latency.p90_us)

    def first_run(times: RunTimes) -> str:
        return "-" if times.first_run_us is None else milliseconds(times.first_run_us)

    median_time, _, nodes = speed_columns(result, None)
    columns = [
        median_time,
        Column[ConfigurationResult]("vs ref", ratio),
        nodes,
        Column[ConfigurationResult]("p90", p90),
        Column("run+read p50", of_times(lambda times: median(times.run_and_read_latency))),
        Column("first run", of_times(first_run)),
    ]
    print_columns([replace(NAMES, heading="latency")], ranked(columns), result.configurations, console)


def _print_native_errors(result: EvaluationResult, comparison: DiffComparison, console: Console) -> None:
    """Print what a native tool states about each output, in raw numbers."""
    for number, error in enumerate(comparison.native_errors[:_MOST_OUTPUTS]):
        names = [tensor.name for tensor in result.model.outputs[number : number + 1]]
        figures = (("avg_error", error.avg_error), ("between runs", error.std_dev), ("largest", error.max_error))
        listed = ", ".join(f"{name} {'no number' if value is None else f'{value:.4g}'}" for name, value in figures)
        console.print(f"{comparison.configuration}, output {number} {' '.join(names)}: {listed}")
    left_out = len(comparison.native_errors) - _MOST_OUTPUTS
    if left_out > 0:
        console.print(f"... and {left_out} more outputs, listed in the JSON result")


def _said(comparison: DiffComparison, verdict: Verdict | None) -> Iterator[Said]:
    """Verdict, repeatability and broken limits."""
    name = comparison.configuration
    if verdict is not None and verdict.kind != "not measured":
        yield Said(name, outputs_in_words(verdict))
    repeated = comparison.repeatability
    if repeated is not None and repeated.identical:
        yield Said(name, f"repeatable, {_runs(repeated.runs)} gave the same outputs a second time")
    elif repeated is not None and repeated.reason is not None:
        yield Said(name, f"could not be run a second time: {repeated.reason}")
    for check in comparison.limits:
        if not check.kept:
            found = "no number" if check.found is None else f"{check.found:.4g}"
            yield Said(name, f"LIMIT BROKEN {check.limit}: {check.output} has {found}", "bold red")
