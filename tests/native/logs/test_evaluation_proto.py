"""Result files of native evaluations: read field by field, damaged, and held against the text of the same run."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evaltools.errors import DataError
from evaltools.metrics.latency import summarise_latency
from evaltools.native.lines.latency import fill_latency
from evaltools.native.logs.evaluation import parse_evaluation_log
from evaltools.native.logs.evaluation_proto import read_evaluation_proto
from evaltools.native.logs.run import (
    ClassifierFigures,
    DetectorFigures,
    DiffFigures,
    NativeDifference,
    NativeLatency,
    require_agreement,
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
        (lambda found: setattr(_latency(found), "max_us", 5), "cannot be that of 4 times"),
        (lambda found: setattr(_latency(found), "min_us", -1), "cannot be that of 4 times"),
        (lambda found: setattr(_latency(found), "sum_us", 10**12), "cannot be that of 4 times"),
        (lambda found: setattr(_latency(found), "avg_us", 6.001), "cannot be that of 4 times"),
        (lambda found: setattr(_latency(found), "avg_us", math.nan), "avg nan"),
        (lambda found: setattr(_latency(found), "std_deviation_us", 6), "std_dev 6"),
        (lambda found: setattr(_latency(found), "std_deviation_us", -1), "std_dev -1"),
        (
            lambda found: (
                found.process_metrics.image_classification_metrics.topk_accuracy_metrics.topk_accuracies.append(2)
            ),
            "the accuracy 2, which is no share",
        ),
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


def test_bytes_that_are_no_message_are_refused() -> None:
    with pytest.raises(DataError, match="is no EvaluationStageMetrics of 3 bytes"):
        read_evaluation_proto(b"\xff\xff\xff")


CLASSIFIER_TEXT = """\
Num evaluation runs: 4
Preprocessing latency: avg=60(us), std_dev=0(us)
Inference latency: avg=6(us), std_dev=1(us)
Top-1 Accuracy: 0.25
Top-2 Accuracy: 0.75
"""
DETECTOR_TEXT = """\
Num evaluation runs: 4
Inference latency: avg=6(us), std_dev=1(us)
Average Precision [IOU Threshold=0.5]: 0.2
Average Precision [IOU Threshold=0.55]: 0.1
Overall mAP: 0.15
"""
DIFF_TEXT = """\
Num evaluation runs: 2
Reference run latency: avg=3.5(us), std_dev=1(us)
Test run latency: avg=7.16667(us), std_dev=0(us)
OutputDiff[0]: avg_error=0.375, std_dev=0.125
OutputDiff[1]: avg_error=nan, std_dev=-nan
"""
PAIRS = {
    "imagenet": (CLASSIFIER_TEXT, imagenet()),
    "coco": (DETECTOR_TEXT, coco()),
    "inference_diff": (DIFF_TEXT, diff()),
}


@pytest.mark.parametrize(("text", "message"), PAIRS.values(), ids=PAIRS)
def test_text_and_file_of_one_run_agree_also_where_the_text_is_cut(text: str, message: Any) -> None:
    figures = read(message)
    for end in range(len(text) + 1):
        require_agreement(figures, parse_evaluation_log(text[:end]))


@pytest.mark.parametrize(
    ("task", "old", "new", "said"),
    [
        ("imagenet", "runs: 4", "runs: 5", "the text says Num evaluation runs 5, the result file 4"),
        ("imagenet", "avg=60(", "avg=60.0001(", r"Preprocessing latency avg 60\.0001, the result file 60"),
        ("imagenet", "std_dev=1(", "std_dev=2(", "Inference latency std_dev 2, the result file 1"),
        (
            "imagenet",
            "Top-2 Accuracy: 0.75",
            "Top-2 Accuracy: 0.750001",
            r"Top-2 Accuracy 0\.750001, the result file 0\.75",
        ),
        ("imagenet", "Top-2", "Top-3", r"Top-3 Accuracy 0\.75, the result file nothing"),
        (
            "imagenet",
            "Top-1 Accuracy: 0.25",
            "Overall mAP: 0",
            "the text is that of coco, the result file that of imagenet",
        ),
        ("coco", "0.55]: 0.1", "0.55]: 0.2", r"IoU 0\.55 0\.2, the result file 0\.1"),
        ("coco", "mAP: 0.15", "mAP: 0.16", r"Overall mAP 0\.16, the result file 0\.15"),
        ("inference_diff", "avg=7.16667", "avg=7.16666", "Test run latency avg"),
        (
            "inference_diff",
            "avg_error=0.375",
            "avg_error=nan",
            r"OutputDiff\[0\] avg_error nan, the result file 0\.375",
        ),
        ("inference_diff", "OutputDiff[1]", "OutputDiff[2]", r"OutputDiff\[2\] avg_error nan, the result file nothing"),
    ],
)
def test_a_text_that_says_something_else_is_refused(task: str, old: str, new: str, said: str) -> None:
    text, message = PAIRS[task]
    assert old in text
    with pytest.raises(DataError, match=said):
        require_agreement(read(message), parse_evaluation_log(text.replace(old, new)))


def test_the_map_of_no_ground_truth_is_no_contradiction() -> None:
    text = "WARN: mAP metrics are meaningless w/o ground truth.\nOverall mAP: 0\n"
    require_agreement(read(coco(truth=False)), parse_evaluation_log(text))
    with pytest.raises(DataError, match="the result file nothing"):
        require_agreement(read(coco(truth=False)), parse_evaluation_log("Overall mAP: 0\n"))
