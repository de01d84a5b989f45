"""The binary protobuf that the native evaluations write to ``--output_file_path``."""

from __future__ import annotations

import math
from typing import Any, Final

from google.protobuf.message import DecodeError

from evaltools.errors import DataError
from evaltools.native.logs.run import (
    INVOCATIONS,
    ClassifierFigures,
    DetectorFigures,
    DiffFigures,
    NativeDifference,
    NativeFigures,
    NativeLatency,
)
from evaltools.proto import message_class

_ADVICE: Final = "take the file as the native tool wrote it"
_SLACK: Final = 1e-9


def read_evaluation_proto(data: bytes) -> NativeFigures:
    r"""Read an ``EvaluationStageMetrics`` of imagenet, coco or inference_diff; raises :class:`DataError`.

    The file may come from anywhere: numbers that cannot be, and such as contradict each other, are refused.

    >>> read_evaluation_proto(b"\x08\x03")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    evaltools.errors.DataError: the result file holds no figures of a native evaluation; ...
    """
    message = message_class("EvaluationStageMetrics")()
    try:
        message.ParseFromString(data)
    except DecodeError:
        raise DataError(f"the result file is not an EvaluationStageMetrics of {len(data)} bytes; {_ADVICE}") from None
    runs, metrics = message.num_runs, message.process_metrics
    if runs < 0:
        raise DataError(f"the result file is of {runs} runs; {_ADVICE}")
    kind = metrics.WhichOneof("stage_metrics")
    if kind == "image_classification_metrics":
        return _classifier(runs, metrics.image_classification_metrics)
    if kind == "object_detection_metrics":
        return _detector(runs, metrics.object_detection_metrics)
    if kind == "inference_profiler_metrics":
        return _diff(runs, metrics.inference_profiler_metrics)
    raise DataError(f"the result file holds no figures of a native evaluation; {_ADVICE}")


def _classifier(runs: int, metrics: Any) -> ClassifierFigures:
    if runs and not metrics.topk_accuracy_metrics.topk_accuracies:
        raise DataError(f"the result file has no accuracies of its {runs} runs; {_ADVICE}")
    return ClassifierFigures(
        runs=runs,
        preprocessing=_latency("preprocessing", metrics.pre_processing_latency, runs, with_std=False),
        inference=_latency("inference", metrics.inference_latency, runs),
        accuracies=tuple(_share("accuracy", value) for value in metrics.topk_accuracy_metrics.topk_accuracies),
    )


def _detector(runs: int, metrics: Any) -> DetectorFigures:
    found = metrics.average_precision_metrics if metrics.HasField("average_precision_metrics") else None
    precisions = found.individual_average_precisions if found is not None else ()
    return DetectorFigures(
        runs=runs,
        preprocessing=_latency("preprocessing", metrics.pre_processing_latency, runs, with_std=False),
        inference=_latency("inference", metrics.inference_latency, runs),
        precisions=tuple(
            (_share("IoU threshold", entry.iou_threshold), _share("average precision", entry.average_precision))
            for entry in precisions
        ),
        overall=None if found is None else _share("mAP", found.overall_mean_average_precision),
    )


def _diff(runs: int, metrics: Any) -> DiffFigures:
    return DiffFigures(
        runs=runs,
        reference=_latency("reference", metrics.reference_latency, runs * INVOCATIONS),
        test=_latency("test", metrics.test_latency, runs * INVOCATIONS),
        differences=tuple(_difference(number, entry, runs) for number, entry in enumerate(metrics.output_errors)),
    )


def _share(what: str, value: float) -> float:
    if not 0 <= value <= 1:
        raise DataError(f"the result file has the {what} {value:g}, which is not a share from 0 to 1; {_ADVICE}")
    return value


def _latency(what: str, message: Any, count: int, with_std: bool = True) -> NativeLatency:
    """Of ``count`` times; without any, the native tools write the limits of int64 as the smallest and the largest."""
    std_us = message.std_deviation_us if with_std else None
    if count == 0:
        return NativeLatency(0, 0, 0, 0, 0, 0.0, None if std_us is None else 0)
    smallest, largest, total = message.min_us, message.max_us, message.sum_us
    plausible = (
        0 <= smallest <= message.last_us <= largest
        and smallest * count <= total <= largest * count
        and math.isclose(message.avg_us, total / count, rel_tol=_SLACK)
        and 0 <= (std_us or 0) <= largest - smallest
    )
    if not plausible:
        raise DataError(
            f"the result file's {what} latency cannot be that of {count} times: min {smallest}, last "
            f"{message.last_us}, max {largest}, sum {total}, avg {message.avg_us:g}, std_dev {std_us or 0}; {_ADVICE}"
        )
    return NativeLatency(count, message.last_us, smallest, largest, total, message.avg_us, std_us)


def _difference(number: int, message: Any, runs: int) -> NativeDifference:
    """Errors are NaN where outputs are; an average of 0 has a largest of 0 whatever was seen, and no sign."""
    found = NativeDifference(message.avg_value, message.std_deviation, message.min_value, message.max_value)
    if any(value < 0 for value in (found.avg_error, found.std_dev, found.min_error, found.max_error)):
        raise DataError(f"the result file has a negative error for output {number}; {_ADVICE}")
    if runs == 0:
        return NativeDifference(math.nan, 0.0, math.nan, math.nan)
    return found
