"""Result files of native evaluations: read field by field, and damaged."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evaltools.errors import DataError
from evaltools.metrics.latency import summarise_latency
from evaltools.native.lines.evaluation import fill_latency
from evaltools.native.logs.evaluation_proto import read_evaluation_proto
from evaltools.native.logs.run import (
    ClassifierFigures,
    DetectorFigures,
    DiffFigures,
    NativeDifference,
    NativeLatency,
)
from evaltools.proto import message_class

TIMES = [5, 9, 4, 6]
FLOATS = [float(np.float32(value)) for value in (0.2, 0.55, 0.1, 0.15)]
LIMIT = 2**63
"""Of int64, which the native tools write as the smallest of no times."""


def imagenet(times: list[int] | None = None) -> Any:
    times = TIMES if times is None else times
    message = message_class("EvaluationStageMetrics")(num_runs=len(times))
    metrics = message.process_metrics.image_classification_metrics
    fill_latency(metrics.pre_processing_latency, summarise_latency([time * 10 for time in times]), with_std=False)
    fill_latency(metrics.inference_latency, summarise_latency(times))
    metrics.inference_metrics.num_inferences = len(times)
    metrics.topk_accuracy_metrics.topk_accuracies.extend([0.25, 0.75] if times else [])
    return message


def coco(truth: bool = True) -> Any:
    message = message_class("EvaluationStageMetrics")(num_runs=len(TIMES))
    metrics = message.process_metrics.object_detection_metrics
    fill_latency(metrics.pre_processing_latency, summarise_latency(TIMES), with_std=False)
    fill_latency(metrics.inference_latency, summarise_latency(TIMES))
    if truth:
        precision = metrics.average_precision_metrics
        precision.individual_average_precisions.add(iou_threshold=0.5, average_precision=0.2)
        precision.individual_average_precisions.add(iou_threshold=0.55, average_precision=0.1)
        precision.overall_mean_average_precision = 0.15
    return message


def diff() -> Any:
    message = message_class("EvaluationStageMetrics")(num_runs=2)
    metrics = message.process_metrics.inference_profiler_metrics
    fill_latency(metrics.reference_latency, summarise_latency([1, 2, 3, 4, 5, 6]))
    fill_latency(metrics.test_latency, summarise_latency([7, 7, 7, 7, 7, 8]))
    metrics.output_errors.add(max_value=0.5, min_value=0.25, avg_value=0.375, std_deviation=0.125)
    metrics.output_errors.add(max_value=math.nan, min_value=0, avg_value=math.nan, std_deviation=math.nan)
    return message


def read(message: Any) -> Any:
    return read_evaluation_proto(message.SerializeToString())


def test_the_figures_of_imagenet() -> None:
    assert read(imagenet()) == ClassifierFigures(
        runs=4,
        preprocessing=NativeLatency(4, 60, 40, 90, 240, 60.0, None),
        inference=NativeLatency(4, 6, 4, 9, 24, 6.0, 1),
        accuracies=(0.25, 0.75),
    )


def test_the_figures_of_coco() -> None:
    found = read(coco())
    assert isinstance(found, DetectorFigures)
    assert found.precisions == ((0.5, FLOATS[0]), (FLOATS[1], FLOATS[2]))
    assert found.overall == FLOATS[3]
    assert read(coco(truth=False)).overall is None


def test_the_figures_of_inference_diff() -> None:
    found = read(diff())
    assert isinstance(found, DiffFigures)
    assert (found.runs, found.reference.count, found.reference.sum_us, found.test.last_us) == (2, 6, 21, 8)
    assert found.differences[0] == NativeDifference(0.375, 0.125, 0.25, 0.5)
    assert math.isnan(found.differences[1].avg_error)


def test_of_no_runs_everything_is_nothing() -> None:
    message = imagenet([])
    latency = message.process_metrics.image_classification_metrics.inference_latency
    latency.min_us, latency.max_us = LIMIT - 1, -LIMIT
    assert read(message).inference == NativeLatency(0, 0, 0, 0, 0, 0.0, 0)
    assert read(message).accuracies == ()
    empty = diff()
    empty.num_runs = 0
    empty.process_metrics.inference_profiler_metrics.output_errors[0].max_value = 1e-38
    assert math.isnan(read(empty).differences[0].max_error)


Damage = Callable[[Any], object]


def _latency(message: Any) -> Any:
    return message.process_metrics.image_classification_metrics.inference_latency


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda found: setattr(found, "num_runs", -1), "is of -1 runs"),
        (lambda found: setattr(found, "num_runs", 5), "inference latency|preprocessing latency"),
        (lambda found: setattr(_latency(found), "min_us", 7), "cannot be that of 4 times: min 7, last 6"),
        (lambda found: setattr(_latency(found), "sum_us", 10**12), "cannot be that of 4 times"),
        (lambda found: setattr(_latency(found), "avg_us", 6.001), "cannot be that of 4 times"),
        (lambda found: setattr(_latency(found), "avg_us", math.nan), "avg nan"),
        (lambda found: setattr(_latency(found), "std_deviation_us", 6), "std_dev 6"),
        (lambda found: setattr(_latency(found), "std_deviation_us", -1), "std_dev -1"),
        (
            lambda found: (
                found.process_metrics.image_classification_metrics.topk_accuracy_metrics.topk_accuracies.append(
                    math.nan
                )
            ),
            "the accuracy nan",
        ),
        (
            lambda found: found.process_metrics.image_classification_metrics.topk_accuracy_metrics.Clear(),
            "has no accuracies of its 4 runs",
        ),
        (lambda found: found.process_metrics.Clear(), "holds no figures of a native evaluation"),
    ],
)
def test_numbers_that_cannot_be_are_refused(damage: Damage, said: str) -> None:
    message = imagenet()
    read(message)
    damage(message)
    with pytest.raises(DataError, match=said):
        read(message)


def test_a_map_above_1_and_an_error_below_0_are_refused() -> None:
    detection = coco()
    detection.process_metrics.object_detection_metrics.average_precision_metrics.overall_mean_average_precision = 1.5
    with pytest.raises(DataError, match=r"the mAP 1\.5"):
        read(detection)
    difference = diff()
    difference.process_metrics.inference_profiler_metrics.output_errors[1].min_value = -0.5
    with pytest.raises(DataError, match="a negative error for output 1"):
        read(difference)


@pytest.mark.parametrize("made", [imagenet(), coco(), diff()], ids=["imagenet", "coco", "inference_diff"])
def test_a_file_that_is_cut_or_damaged_gives_figures_or_an_error_for_users(made: Any) -> None:
    data = made.SerializeToString()
    chance = random.Random(1)
    damaged = [data[:end] for end in range(len(data))]
    for _ in range(2000):
        changed = bytearray(data)
        changed[chance.randrange(len(data))] = chance.randrange(256)
        damaged.append(bytes(changed))
    refused = 0
    for content in damaged:
        try:
            read_evaluation_proto(content)
        except DataError:
            refused += 1
    assert refused > len(damaged) // 4
    with pytest.raises(DataError, match="is not an EvaluationStageMetrics of 3 bytes"):
        read_evaluation_proto(b"\xff\xff\xff")
