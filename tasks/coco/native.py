"""What the native tool prints of a detection evaluation, and its protobuf."""

from __future__ import annotations

from typing import Any, Final

from evaltools.metrics.native_average_precision import IOU_THRESHOLDS
from evaltools.metrics.native_numbers import widened
from evaltools.native.lines.evaluation import fill_of_pictures, lines_of_pictures
from evaltools.result.result import Result, Row
from evaltools.tasks.coco.conclude import NATIVE_MAP, pictures_of
from evaltools.text import printable

WITHOUT_TRUTH: Final = "WARN: mAP metrics are meaningless w/o ground truth."
_RULE: Final = "=" * 54
_MOST_CATEGORIES: Final = 5


def lines(result: Result, configuration: Row) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``.

    Without ground truth the native tool still prints ``Overall mAP: 0``; here only with ``--compat=native``.
    """
    has_truth = result.given.get("ground truth") != "none"
    printed = [] if has_truth else [WITHOUT_TRUTH]
    printed += lines_of_pictures(configuration)
    if NATIVE_MAP not in configuration.series:
        return printed
    *precisions, overall = configuration.series[NATIVE_MAP]
    printed += [
        f"Average Precision [IOU Threshold={threshold:g}]: {widened(value):g}"
        for threshold, value in zip(IOU_THRESHOLDS, precisions, strict=False)
    ]
    return [*printed, f"Overall mAP: {widened(overall):g}"]


def debug_lines(result: Result, configuration: Row) -> list[str]:
    """Every detection, as the native tool logs them."""
    printed = []
    for picture in pictures_of(result, configuration.name):
        printed.append(f"Image: {printable(picture.example)}\n")
        for number, detection in enumerate(picture.detections):
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


def fill(message: Any, _result: Result, configuration: Row) -> None:
    """Fill an ``EvaluationStageMetrics``; field presence is the native tool's."""
    metrics = message.process_metrics.object_detection_metrics
    fill_of_pictures(message, metrics, configuration)
    *precisions, overall = configuration.series.get(NATIVE_MAP, [0.0])
    if precisions:
        averages = metrics.average_precision_metrics
        for threshold, value in zip(IOU_THRESHOLDS, precisions, strict=False):
            averages.individual_average_precisions.add(iou_threshold=float(threshold), average_precision=value)
        averages.overall_mean_average_precision = overall
