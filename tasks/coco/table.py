"""The figures of a detection evaluation, for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.metrics.boxes import BoxAgreement
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, metric_columns, speed_columns
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.task_kind import Detail
from evaltools.tasks.coco.changes import is_clear
from evaltools.tasks.coco.metrics import METRICS
from evaltools.tasks.coco.result import (
    BoxComparison,
    CategoryChange,
    CocoData,
    CocoDetection,
    DetectionFigures,
    StatChange,
    describe_mapping,
)
from evaltools.text import printable

_NAMES: Final = {metric.name: metric.heading or metric.name.replace("ar_", "AR ") for metric in METRICS}
_MOST_CATEGORIES: Final = 5


def print_figures(result: EvaluationResult, console: Console, detail: Detail) -> None:
    """Print how outputs were read, accuracy, agreement of boxes, speed, and the categories that changed most."""
    coco: CocoDetection = result.part
    measured = [entry for entry in result.configurations if entry.status == "measured"]
    if measured:
        _print_data(coco.data, detail, console)
        if coco.data.ground_truth is not None:
            _print_accuracy(result, coco.figures, console)
            _print_clear_changes(coco, console)
            _print_changes(coco, console)
            console.print()
        _print_boxes_and_speed(result, coco, console)
        _print_other_comparisons(coco, console)


def _print_data(data: CocoData, detail: Detail, console: Console) -> None:
    """Print how outputs were read: with all detail, or where there is little evidence that it is right."""
    truth = data.ground_truth
    if truth is None:
        console.print(f"{data.example_count} pictures without ground truth")
    else:
        crowds = f", {truth.crowd_regions} crowd regions among them" if truth.crowd_regions else ""
        console.print(
            f"{data.example_count} pictures, {truth.objects} annotated objects of {truth.categories} categories{crowds}"
        )
    mapping = data.class_mapping
    is_short = detail != "all" and data.head is None and mapping is not None and not mapping.is_doubtful
    if is_short and data.output_map is not None and mapping is not None:
        console.print(printable(f"outputs: {data.output_map}; category = {describe_mapping(mapping.name)}"))
        return
    if data.output_map is not None:
        console.print(printable(f"outputs: {data.output_map} ({data.output_map.source})"))
    if data.head is not None:
        console.print(data.head.describe())
        suppression = "suppressed in the model" if data.nms_iou is None else f"NMS at IoU {data.nms_iou:g} by class"
        console.print(
            f"pictures: {data.resize}, {data.normalization}, {data.channel_order}; "
            f"boxes: scores from {data.score_threshold:g}, {suppression}"
        )
    if mapping is not None:
        console.print(mapping.describe())


def _print_accuracy(result: EvaluationResult, figures: Sequence[DetectionFigures], console: Console) -> None:
    """Print accuracies in percent, with the number of pictures where configurations finished different ones."""
    of = {entry.configuration: entry for entry in figures}

    def native(configuration: ConfigurationResult) -> str:
        found = of[configuration.name].native
        return "-" if found is None or found.overall is None else f"{100 * found.overall:.2f}"

    def pictures(configuration: ConfigurationResult) -> str:
        return str(of[configuration.name].pictures)

    columns = [*metric_columns(METRICS, result, percent=""), Column("native mAP", native)]
    if len({entry.pictures for entry in figures}) > 1:
        columns.append(Column("pictures", pictures))
    rows = [entry for entry in result.configurations if entry.name in of]
    print_columns([replace(NAMES, heading="%")], ranked(columns), rows, console)


def _print_boxes_and_speed(result: EvaluationResult, coco: CocoDetection, console: Console) -> None:
    configurations = result.configurations
    baseline = coco.comparisons[0].baseline if coco.comparisons else None
    reference = next((entry for entry in configurations if entry.name == baseline), None)
    against = {entry.other: entry for entry in coco.comparisons if entry.baseline == baseline}
    found = {entry.configuration: str(entry.detections) for entry in coco.figures}
    matched, *others = _changes_of_boxes(against)
    boxes = Column[ConfigurationResult]("boxes", lambda configuration: found.get(configuration.name, "-"))
    columns = [boxes, matched, *speed_columns(result, reference), *others]
    print_columns([NAMES], ranked(columns), configurations, console)


def _changes_of_boxes(against: Mapping[str, BoxComparison]) -> list[Column[ConfigurationResult]]:
    """The cells about changed boxes; empty where there is nothing to compare with."""

    def column(heading: str, cell: Callable[[BoxAgreement], str]) -> Column[ConfigurationResult]:
        def of(configuration: ConfigurationResult) -> str:
            comparison = against.get(configuration.name)
            return "" if comparison is None else cell(comparison.boxes)

        return Column(heading, of)

    return [
        column("matched", lambda boxes: str(boxes.matched)),
        column("lost", lambda boxes: str(boxes.lost)),
        column("new", lambda boxes: str(boxes.new)),
        column("other class", lambda boxes: str(boxes.class_changes)),
        column("mean IoU", lambda boxes: "-" if boxes.mean_iou is None else f"{boxes.mean_iou:.4f}"),
        column("score shift", _score_shift),
    ]


def _score_shift(boxes: BoxAgreement) -> str:
    mean = boxes.mean_score_shift
    return "-" if mean is None else f"{mean:.2g}, max {boxes.score_shift:.2g}"


def _print_clear_changes(coco: CocoDetection, console: Console) -> None:
    """Print the changes of figures other than mAP that chance alone does not explain."""
    for comparison in coco.comparisons:
        clear = [_change(entry) for entry in comparison.changes if entry.stat != "ap" and is_clear(entry)]
        if clear and comparison.baseline == coco.comparisons[0].baseline:
            console.print(f"{comparison.other}: changed more than chance explains: {', '.join(clear)}")


def _change(found: StatChange) -> str:
    """A change in percentage points with its interval."""
    low, high = 100 * found.interval.low, 100 * found.interval.high
    return f"{_NAMES[found.stat]} {100 * found.change:+.2f} [{low:+.2f}, {high:+.2f}]"


def _print_changes(coco: CocoDetection, console: Console) -> None:
    """Print the categories whose AP differs most from the first baseline's, if chance does not explain it."""
    for comparison in coco.comparisons:
        clear = [entry for entry in comparison.categories if is_clear(entry)]
        if comparison.baseline == coco.comparisons[0].baseline and clear:
            most = sorted(clear, key=lambda entry: -abs(entry.after - entry.before))[:_MOST_CATEGORIES]
            shown = ", ".join(_category(entry) for entry in most)
            console.print(f"AP changed most, {comparison.other} against {comparison.baseline}: {shown}")


def _category(found: CategoryChange) -> str:
    objects = f"{found.objects} object{'' if found.objects == 1 else 's'}"
    return f"{printable(found.name)} {100 * found.before:.1f} -> {100 * found.after:.1f} ({objects})"


def _print_other_comparisons(coco: CocoDetection, console: Console) -> None:
    for comparison in coco.comparisons:
        if comparison.baseline == coco.comparisons[0].baseline:
            continue
        boxes = comparison.boxes
        console.print(
            f"{comparison.other} against {comparison.baseline}: {boxes.matched} boxes matched, {boxes.lost} lost, "
            f"{boxes.new} new, {boxes.class_changes} of another class"
        )
