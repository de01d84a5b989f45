"""The figures of a native evaluation: read from the protobuf of ``--output_file_path``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from google.protobuf.message import DecodeError
from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.metrics.latency import Latency
from evaltools.metrics.native_numbers import NativeError
from evaltools.native.logs.evaluation import NativeTask
from evaltools.proto import message_class

INVOCATIONS: Final = 3
"""Of inference_diff per run, of the reference and of the test each."""
NOTHING_TIMED: Final = Latency(0, None, 0, 0, 0, 0, 0.0, 0, None, None)
_ADVICE: Final = "take the file as the native tool wrote it"


class NativeFigures(Struct, frozen=True):
    """What a run measured, of which there are no single times; ``inference`` is of the test configuration.

    imagenet and coco have ``preprocessing``. Of imagenet, ``right[k - 1]`` pictures have their label among the k best
    classes. Of coco, ``precisions`` are by IoU threshold, and ``overall`` is None without a ground truth.
    inference_diff has its ``reference`` inside, and an error for each output.
    """

    task: NativeTask
    runs: int
    inference: Latency
    preprocessing: Latency = NOTHING_TIMED
    right: tuple[int, ...] = ()
    precisions: tuple[tuple[float, float], ...] = ()
    overall: float | None = None
    reference: Latency = NOTHING_TIMED
    errors: tuple[NativeError, ...] = ()


def read_figures(data: bytes) -> NativeFigures:
    r"""Read an ``EvaluationStageMetrics`` of imagenet, coco or inference_diff; raises :class:`DataError`.

    >>> read_figures(b"\x08\x03")  # doctest: +ELLIPSIS
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
    kind = metrics.WhichOneof("stage_metrics")
    if kind == "image_classification_metrics":
        return _classifier(runs, metrics.image_classification_metrics)
    if kind == "object_detection_metrics":
        return _detector(runs, metrics.object_detection_metrics)
    if kind == "inference_profiler_metrics":
        return _difference(runs, metrics.inference_profiler_metrics)
    raise DataError(f"the result file holds no figures of a native evaluation; {_ADVICE}")


def _classifier(runs: int, metrics: Any) -> NativeFigures:
    accuracies = metrics.topk_accuracy_metrics.topk_accuracies
    if not all(0 <= accuracy <= 1 for accuracy in accuracies):
        raise DataError(f"the result file has an accuracy that is not a share, 0..1; {_ADVICE}")
    return NativeFigures(
        task="imagenet",
        runs=runs,
        inference=_latency(metrics.inference_latency, runs),
        preprocessing=_latency(metrics.pre_processing_latency, runs),
        right=tuple(round(accuracy * runs) for accuracy in accuracies),
    )


def _detector(runs: int, metrics: Any) -> NativeFigures:
    found = metrics.average_precision_metrics
    return NativeFigures(
        task="coco",
        runs=runs,
        inference=_latency(metrics.inference_latency, runs),
        preprocessing=_latency(metrics.pre_processing_latency, runs),
        precisions=tuple(
            (entry.iou_threshold, entry.average_precision) for entry in found.individual_average_precisions
        ),
        overall=found.overall_mean_average_precision if metrics.HasField("average_precision_metrics") else None,
    )


def _difference(runs: int, metrics: Any) -> NativeFigures:
    """Errors are NaN where outputs are. Without a run their limits are those of float32."""
    limits = [(each.min_value, each.max_value) if runs else (math.nan, math.nan) for each in metrics.output_errors]
    means = [(each.avg_value, each.std_deviation) for each in metrics.output_errors]
    return NativeFigures(
        task="inference_diff",
        runs=runs,
        inference=_latency(metrics.test_latency, runs * INVOCATIONS),
        reference=_latency(metrics.reference_latency, runs * INVOCATIONS),
        errors=tuple(NativeError(*map(_finite, (*mean, *ends))) for mean, ends in zip(means, limits, strict=True)),
    )


def _finite(figure: float) -> float | None:
    return figure if math.isfinite(figure) else None


def _latency(message: Any, count: int) -> Latency:
    """Of ``count`` times; without any, the native tools write the limits of int64 as the smallest and the largest.

    They compute no standard deviation of preprocessing: it is 0.
    """
    if count == 0:
        return NOTHING_TIMED
    return Latency(
        count=count,
        first_us=None,
        last_us=message.last_us,
        min_us=message.min_us,
        max_us=message.max_us,
        sum_us=message.sum_us,
        avg_us=message.avg_us,
        std_us=message.std_deviation_us,
        p50_us=None,
        p90_us=None,
    )


def merge_latencies(parts: Sequence[Latency]) -> Latency:
    """Several series of times as one, in microseconds; all 0 where there is none.

    Count, sum, smallest, largest, last and average are exact. The standard deviation is exact or 1 too small: those of
    the parts were cut to whole numbers, and with less than 1 missing in each, less than 1 is missing in the whole.

    >>> one, other = Latency(2, None, 3, 1, 3, 4, 2.0, 1, None, None), Latency(1, None, 8, 8, 8, 8, 8.0, 0, None, None)
    >>> merged = merge_latencies([one, other])
    >>> merged.count, merged.last_us, merged.min_us, merged.max_us, merged.sum_us, merged.avg_us, merged.std_us
    (3, 8, 1, 8, 12, 4.0, 2)
    """
    timed = [part for part in parts if part.count]
    if len(timed) < 2:
        return timed[0] if timed else NOTHING_TIMED
    count = sum(part.count for part in timed)
    sum_us = sum(part.sum_us for part in timed)
    average = sum_us / count
    squares = sum(part.count * (part.std_us**2 + (part.avg_us - average) ** 2) for part in timed)
    return replace(
        timed[-1],
        count=count,
        min_us=min(part.min_us for part in timed),
        max_us=max(part.max_us for part in timed),
        sum_us=sum_us,
        avg_us=average,
        std_us=math.isqrt(int(squares / count)),
    )
