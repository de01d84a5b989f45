"""What ``coco_object_detection/run_eval`` prints and writes."""

from __future__ import annotations

from typing import Any

from evaltools.metrics.latency import Latency
from evaltools.metrics.native_average_precision import IOU_THRESHOLDS, NativeAveragePrecision
from evaltools.metrics.shortest import widened
from evaltools.native.lines.latency import fill_latency
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
from evaltools.tasks.coco.result import CocoDetection, DetectionFigures
from evaltools.text import printable

WITHOUT_TRUTH = "WARN: mAP metrics are meaningless w/o ground truth."
_RULE = "=" * 54


def lines(result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
    """Numbers are printed as C++ streams print them, ``%g``; the preprocessing ``std_dev`` is always 0.

    Without ground truth the native tool still prints ``Overall mAP: 0``; here only with ``--compat=native``.
    """
    coco = _coco(result)
    inference = configuration.inference_latency
    assert inference is not None
    printed = [] if coco.data.ground_truth else [WITHOUT_TRUTH]
    printed += [
        f"Num evaluation runs: {configuration.finished_examples}",
        f"Preprocessing latency: avg={_preprocessing(coco, configuration).avg_us:g}(us), std_dev=0(us)",
        f"Inference latency: avg={inference.avg_us:g}(us), std_dev={inference.std_us}(us)",
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
    inference = configuration.inference_latency
    assert inference is not None
    message.num_runs = configuration.finished_examples
    metrics = message.process_metrics.object_detection_metrics
    fill_latency(metrics.pre_processing_latency, _preprocessing(coco, configuration), with_std=False)
    fill_latency(metrics.inference_latency, inference)
    metrics.inference_metrics.num_inferences = configuration.finished_examples
    precision = _figures(coco, configuration).native
    if precision is not None:
        _fill_precision(metrics.average_precision_metrics, precision)


def _fill_precision(message: Any, precision: NativeAveragePrecision) -> None:
    for threshold, value in zip(IOU_THRESHOLDS, precision.thresholds, strict=False):
        message.individual_average_precisions.add(iou_threshold=float(threshold), average_precision=value)
    message.overall_mean_average_precision = precision.overall


def _coco(result: EvaluationResult) -> CocoDetection:
    detection: CocoDetection = result.part
    return detection


def _preprocessing(coco: CocoDetection, configuration: ConfigurationResult) -> Latency:
    return configuration.preprocessing_latency or coco.data.preprocessing_latency


def _figures(coco: CocoDetection, configuration: ConfigurationResult) -> DetectionFigures:
    return next(figures for figures in coco.figures if figures.configuration == configuration.name)
