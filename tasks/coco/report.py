"""How a detection evaluation is shown: native lines and protobuf, the table for a person, detections in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.errors import OutputError, UsageError
from evaltools.metrics.boxes import BoxAgreement
from evaltools.metrics.latency import Latency
from evaltools.metrics.native_average_precision import IOU_THRESHOLDS
from evaltools.metrics.native_numbers import widened
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.report.files.evaluation import file_per_configuration, files_read
from evaltools.report.files.output_file import require_output_file, write_measured
from evaltools.report.tables.columns import Column, print_columns, ranked
from evaltools.report.tables.figures import NAMES, metric_columns, speed_columns
from evaltools.request import Request, require_apart
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.json_file import encode_json
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
from evaltools.tasks.shared.showing import next_steps
from evaltools.text import printable

if TYPE_CHECKING:
    from evaltools.result.section import Section


__all__ = ["fill", "lines", "next_steps", "print_figures", "sections"]

WITHOUT_TRUTH: Final = "WARN: mAP metrics are meaningless w/o ground truth."
_RULE: Final = "=" * 54
_NAMES: Final = {metric.name: metric.heading or metric.name.replace("ar_", "AR ") for metric in METRICS}
_MOST_CATEGORIES: Final = 5


def sections(result: EvaluationResult) -> list[Section]:
    """Those of a page; what draws them is imported for a page only."""
    from evaltools.tasks.coco import page

    return page.sections(result)


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``; the preprocessing ``std_dev`` is always 0.

    Without ground truth the native tool still prints ``Overall mAP: 0``; here only with ``--compat=native``.
    """
    coco = _coco(result)
    printed = [] if coco.data.ground_truth else [WITHOUT_TRUTH]
    printed += [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={_preprocessing(coco, configuration).avg_us:g}(us), std_dev=0(us)",
        latency_line("Inference", configuration.inference_latency),
    ]
    precision = _figures(coco, configuration).native
    if precision is None:
        return [*printed, "Overall mAP: 0"] if coco.data.native else printed
    printed += [
        f"Average Precision [IOU Threshold={threshold:g}]: {widened(value):g}"
        for threshold, value in zip(IOU_THRESHOLDS, precision.thresholds, strict=False)
    ]
    return [*printed, f"Overall mAP: {widened(precision.overall):g}"]


def debug_lines(result: EvaluationResult, configuration: str) -> list[str]:
    """What ``--debug_mode`` prints of each picture."""
    printed = []
    for picture in _coco(result).pictures or []:
        if configuration not in picture.detections:
            continue
        printed.append(f"Image: {printable(picture.example)}\n")
        for number, detection in enumerate(picture.detections[configuration]):
            top, left, bottom, right = detection.box
            printed += [
                f"Object [{number}]",
                f"  Score: {detection.score:g}",
                f"  Class-ID: {detection.category_id}",
                "  Bounding Box:",
                f"    Normalized Top: {top:g}",
                f"    Normalized Bottom: {bottom:g}",
                f"    Normalized Left: {left:g}",
                f"    Normalized Right: {right:g}",
            ]
        printed.append(f"{_RULE}\n")
    return printed


def fill(message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
    """Fill an ``EvaluationStageMetrics``; field presence is the native tool's."""
    coco = _coco(result)
    message.num_runs = configuration.finished_examples
    metrics = message.process_metrics.object_detection_metrics
    fill_latency(metrics.pre_processing_latency, _preprocessing(coco, configuration), with_std=False)
    fill_latency(metrics.inference_latency, configuration.inference_latency)
    metrics.inference_metrics.num_inferences = configuration.finished_examples
    precision = _figures(coco, configuration).native
    if precision is not None:
        averages = metrics.average_precision_metrics
        for threshold, value in zip(IOU_THRESHOLDS, precision.thresholds, strict=False):
            averages.individual_average_precisions.add(iou_threshold=float(threshold), average_precision=value)
        averages.overall_mean_average_precision = precision.overall


def _coco(result: EvaluationResult) -> CocoDetection:
    detection: CocoDetection = result.part
    return detection


def _preprocessing(coco: CocoDetection, configuration: ConfigurationResult) -> Latency:
    return configuration.preprocessing_latency or coco.data.preprocessing_latency


def _figures(coco: CocoDetection, configuration: ConfigurationResult) -> DetectionFigures:
    return next(figures for figures in coco.figures if figures.configuration == configuration.name)


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


def lines_of_detections(result: EvaluationResult) -> list[str]:
    """Every detection of the test configurations, as the native tool logs them."""
    tests = [entry for entry in result.configurations if entry.role == "test"]
    lines: list[str] = []
    for entry in tests:
        if entry.status == "measured":
            lines += [f"Configuration: {entry.name}"] if len(tests) > 1 else []
            lines += debug_lines(result, entry.name)
    return [f"INFO: {line}" for line in lines]


def plan_detections(request: Request, outputs: Iterable[Path]) -> dict[str, Path]:
    """A file for each configuration, checked before any long work; ``outputs`` are written too."""
    path = request.options.path("detections_path")
    if path is None:
        return {}
    if path.suffix.lower() != ".json":
        raise UsageError(f"--detections_path={path}: the COCO results format is JSON; give a name that ends in .json")
    names = [entry.name for entry in request.tests]
    names += [request.reference.name] if request.reference else []
    detections = file_per_configuration(path, names)
    read = files_read(request)
    for file in detections.values():
        require_output_file(file, "--detections_path", read)
    asked = [("--detections_path", file) for file in detections.values()]
    require_apart([*(("--output_file_path", output) for output in outputs), *asked])
    return detections


def write_detections(result: EvaluationResult, files: Mapping[str, Path], console: Console) -> list[OutputError]:
    """Write what was measured; returns what could not be written."""
    part: CocoDetection = result.part
    measured = [entry.configuration for entry in part.figures]
    contents = {name: coco_results(part, name) for name in files if name in measured}
    return write_measured(contents, files, console)


def coco_results(coco: CocoDetection, configuration: str) -> bytes:
    """Detections in the COCO results format, which pycocotools' ``loadRes`` reads.

    A JSON list with image_id, category_id, bbox [x, y, width, height] in pixels, and score of each detection.
    """
    return encode_json(
        [
            {
                "image_id": picture.image_id,
                "category_id": found.category_id,
                "bbox": found.pixel_box(picture.width, picture.height),
                "score": found.score,
            }
            for picture in coco.pictures or []
            if picture.image_id is not None
            for found in picture.detections.get(configuration, [])
        ]
    )
