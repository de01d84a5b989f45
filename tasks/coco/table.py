"""The figures of a detection evaluation, for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from evaltools.gates.accuracy_verdict import LEVEL
from evaltools.report.tables.cells import delegated, median, one_line, print_not_measured, speed, speed_heading
from evaltools.report.words.verdicts import change_in_words
from evaltools.result.evaluation import EvaluationResult
from evaltools.tasks.coco.result import (
    BoxComparison,
    CategoryChange,
    CocoData,
    CocoDetection,
    DetectionFigures,
    StatChange,
)

_STATS: Final = {
    "mAP": "ap",
    "AP50": "ap50",
    "AP75": "ap75",
    "small": "ap_small",
    "medium": "ap_medium",
    "large": "ap_large",
    "AR@1": "ar_1",
    "AR@10": "ar_10",
    "AR@100": "ar_100",
}
_NAMES: Final = {stat: name for name, stat in _STATS.items()} | {
    "ar_small": "AR small",
    "ar_medium": "AR medium",
    "ar_large": "AR large",
}
_MOST_CATEGORIES: Final = 5


def print_figures(result: EvaluationResult, console: Console) -> None:
    """What was read how, accuracy, agreement of boxes and speed, the categories that changed most."""
    coco: CocoDetection = result.part
    measured = [entry for entry in result.configurations if entry.status == "measured"]
    if measured:
        _print_data(coco.data, console)
        if coco.data.ground_truth is not None:
            console.print(_accuracy(coco.figures))
            _print_verdicts(result, coco, console)
            _print_changes(coco, console)
            console.print()
        console.print(_boxes_and_speed(result, coco))
        _print_other_comparisons(coco, console)
    print_not_measured(result.configurations, console)


def _print_data(data: CocoData, console: Console) -> None:
    truth = data.ground_truth
    if truth is None:
        console.print(f"{data.example_count} pictures without ground truth")
    else:
        crowds = f", {truth.crowd_regions} crowd regions among them" if truth.crowd_regions else ""
        console.print(
            f"{data.example_count} pictures, {truth.objects} annotated objects of {truth.categories} categories{crowds}"
        )
    if data.output_map is not None:
        console.print(f"outputs: {data.output_map} ({data.output_map.source})")
    if data.class_mapping is not None:
        console.print(data.class_mapping.describe())


def _accuracy(figures: Sequence[DetectionFigures]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("%", overflow="fold")
    unequal = len({entry.pictures for entry in figures}) > 1
    for heading in (*_STATS, "native mAP", *(["pictures"] if unequal else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in figures:
        stats = entry.evaluation.stats if entry.evaluation else None
        cells = [_percent(getattr(stats, name) if stats else None) for name in _STATS.values()]
        cells.append(_percent(entry.native.overall if entry.native else None))
        table.add_row(entry.configuration, *cells, *([str(entry.pictures)] if unequal else []))
    return table


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}"


def _boxes_and_speed(result: EvaluationResult, coco: CocoDetection) -> Table:
    configurations = result.configurations
    baseline = coco.comparisons[0].baseline if coco.comparisons else None
    reference = next((entry for entry in configurations if entry.name == baseline), None)
    against = {entry.other: entry for entry in coco.comparisons if entry.baseline == baseline}
    found = {entry.configuration: entry for entry in coco.figures}
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", overflow="fold")
    columns = ("boxes", "matched", "lost", "new", "other class", "mean IoU", "score shift", "p50", "vs", "delegated")
    for heading in columns:
        table.add_column(speed_heading(reference) if heading == "vs" else heading, justify="right", no_wrap=True)
    for configuration in configurations:
        figures = found.get(configuration.name)
        if figures is None or configuration.inference_latency is None:
            table.add_row(configuration.name, *["-"] * len(columns))
            continue
        table.add_row(
            configuration.name,
            str(figures.detections),
            *_agreement(against.get(configuration.name)),
            median(configuration.inference_latency),
            speed(configuration, reference, result.latency_comparisons),
            delegated(configuration),
        )
    return table


def _agreement(comparison: BoxComparison | None) -> list[str]:
    if comparison is None:
        return [""] * 6
    boxes = comparison.boxes
    mean_iou, mean_shift = boxes.mean_iou, boxes.mean_score_shift
    return [
        str(boxes.matched),
        str(boxes.lost),
        str(boxes.new),
        str(boxes.class_changes),
        "-" if mean_iou is None else f"{mean_iou:.4f}",
        "-" if mean_shift is None else f"{mean_shift:.2g}, max {boxes.score_shift:.2g}",
    ]


def _print_verdicts(result: EvaluationResult, coco: CocoDetection, console: Console) -> None:
    """The verdict on mAP, then the other figures of which chance alone does not explain the change."""
    configurations = {entry.name: entry for entry in result.configurations}
    for comparison in coco.comparisons:
        verdicts = configurations[comparison.other].verdicts
        verdict = next((entry for entry in verdicts if entry.against == comparison.baseline), None)
        if comparison.baseline != coco.comparisons[0].baseline or verdict is None:
            continue
        console.print(f"{comparison.other}: mAP {change_in_words(verdict)}")
        clear = [_change(entry) for entry in comparison.changes if entry.stat != "ap" and entry.p_value_holm <= LEVEL]
        if clear:
            console.print(f"{comparison.other}: changed more than chance explains: {', '.join(clear)}")


def _change(found: StatChange) -> str:
    """In percentage points with its interval."""
    low, high = 100 * found.interval.low, 100 * found.interval.high
    return f"{_NAMES[found.stat]} {100 * found.change:+.2f} [{low:+.2f}, {high:+.2f}]"


def _print_changes(coco: CocoDetection, console: Console) -> None:
    """The categories whose AP differs most from the first baseline's, of those where chance does not explain it."""
    for comparison in coco.comparisons:
        clear = [entry for entry in comparison.categories if entry.p_value_holm <= LEVEL]
        if comparison.baseline == coco.comparisons[0].baseline and clear:
            most = sorted(clear, key=lambda entry: -abs(entry.after - entry.before))[:_MOST_CATEGORIES]
            shown = ", ".join(_category(entry) for entry in most)
            console.print(f"AP changed most, {comparison.other} against {comparison.baseline}: {shown}")


def _category(found: CategoryChange) -> str:
    objects = f"{found.objects} object{'' if found.objects == 1 else 's'}"
    return f"{one_line(found.name)} {100 * found.before:.1f} -> {100 * found.after:.1f} ({objects})"


def _print_other_comparisons(coco: CocoDetection, console: Console) -> None:
    for comparison in coco.comparisons:
        if comparison.baseline == coco.comparisons[0].baseline:
            continue
        boxes = comparison.boxes
        console.print(
            f"{comparison.other} against {comparison.baseline}: {boxes.matched} boxes matched, {boxes.lost} lost, "
            f"{boxes.new} new, {boxes.class_changes} of another class"
        )
