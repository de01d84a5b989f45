"""How a detection evaluation is shown: native lines and protobuf, the table for a person, detections in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from rich.console import Console

from evaltools.errors import OutputError, UsageError
from evaltools.metrics.latency import Latency
from evaltools.metrics.native_average_precision import IOU_THRESHOLDS
from evaltools.metrics.native_numbers import widened
from evaltools.native.lines.evaluation import fill_latency, latency_line
from evaltools.report.files.evaluation import file_per_configuration, files_read
from evaltools.report.files.output_file import require_output_file, write_measured
from evaltools.request import Options, Request, require_apart
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.tasks.coco.result import BoxesPart, DetectionFigures, boxes_of
from evaltools.tasks.shared.showing import next_steps
from evaltools.text import printable

if TYPE_CHECKING:
    from evaltools.result.section import Section


__all__ = ["as_asked", "debug_lines", "fill", "lines", "more_files", "next_steps", "sections", "write_more"]

WITHOUT_TRUTH: Final = "WARN: mAP metrics are meaningless w/o ground truth."
_RULE: Final = "=" * 54
_MOST_CATEGORIES: Final = 5


def sections(result: EvaluationResult) -> list[Section]:
    """Those of a page; what draws them is imported for a page only."""
    from evaltools.tasks.coco import page

    return page.sections(result)


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``; the preprocessing ``std_dev`` is always 0.

    Without ground truth the native tool still prints ``Overall mAP: 0``; here only with ``--compat=native``.
    """
    coco = boxes_of(result)
    printed = [] if coco.data.ground_truth else [WITHOUT_TRUTH]
    printed += [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={_preprocessing(result, configuration).avg_us:g}(us), std_dev=0(us)",
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


def lines_of_detections(result: EvaluationResult, configuration: str) -> list[str]:
    """What ``--debug_mode`` prints of each picture."""
    printed = []
    for picture in boxes_of(result).pictures or []:
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
    coco = boxes_of(result)
    message.num_runs = configuration.finished_examples
    metrics = message.process_metrics.object_detection_metrics
    fill_latency(metrics.pre_processing_latency, _preprocessing(result, configuration), with_std=False)
    fill_latency(metrics.inference_latency, configuration.inference_latency)
    metrics.inference_metrics.num_inferences = configuration.finished_examples
    precision = _figures(coco, configuration).native
    if precision is not None:
        averages = metrics.average_precision_metrics
        for threshold, value in zip(IOU_THRESHOLDS, precision.thresholds, strict=False):
            averages.individual_average_precisions.add(iou_threshold=float(threshold), average_precision=value)
        averages.overall_mean_average_precision = precision.overall


def _preprocessing(result: EvaluationResult, configuration: ConfigurationResult) -> Latency:
    latency: Latency = configuration.preprocessing_latency or result.part.preprocessing_latency
    return latency


def _figures(boxes: BoxesPart, configuration: ConfigurationResult) -> DetectionFigures:
    return next(figures for figures in boxes.figures if figures.configuration == configuration.name)


def as_asked(result: EvaluationResult, options: Options) -> EvaluationResult:
    """The result without the detections that were kept only for other files."""
    if options.is_on("record_examples"):
        return result
    return replace(result, part=replace(result.part, boxes=replace(boxes_of(result), pictures=None)))


def debug_lines(result: EvaluationResult, options: Options) -> list[str]:
    """Every detection of the test configurations, as the native tool logs them, where that was asked for."""
    if not options.is_on("debug_mode"):
        return []
    tests = [entry for entry in result.configurations if entry.role == "test"]
    lines: list[str] = []
    for entry in tests:
        if entry.status == "measured":
            lines += [f"Configuration: {entry.name}"] if len(tests) > 1 else []
            lines += lines_of_detections(result, entry.name)
    return [f"INFO: {line}" for line in lines]


def more_files(request: Request, outputs: Iterable[Path]) -> Mapping[str, Path]:
    """A file of ``--detections_path`` for each configuration; raises :class:`UsageError`."""
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


def write_more(result: EvaluationResult, files: Mapping[str, Path], console: Console) -> list[OutputError]:
    """Write what was measured; returns what could not be written."""
    part = boxes_of(result)
    measured = [entry.configuration for entry in part.figures]
    contents = {name: coco_results(part, name) for name in files if name in measured}
    return write_measured(contents, files, console)


def coco_results(coco: BoxesPart, configuration: str) -> bytes:
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
