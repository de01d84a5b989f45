"""The figures of native evaluations: read from their result files, whole or damaged, and added up over parts."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.metrics.latency import Latency, summarise_latency
from evaltools.metrics.native_numbers import NativeError
from evaltools.native.lines.evaluation import fill_latency
from evaltools.native.logs.figures import NOTHING_TIMED, NativeFigures, merge_latencies, read_figures
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


def read(message: Any) -> NativeFigures:
    return read_figures(message.SerializeToString())


def test_the_figures_of_imagenet() -> None:
    found = read(imagenet())
    assert (found.task, found.runs, found.right) == ("imagenet", 4, (1, 3))
    assert found.preprocessing == Latency(4, None, 60, 40, 90, 240, 60.0, 0, None, None)
    assert found.inference == Latency(4, None, 6, 4, 9, 24, 6.0, 1, None, None)


def test_the_figures_of_coco() -> None:
    found = read(coco())
    assert (found.task, found.precisions) == ("coco", ((0.5, FLOATS[0]), (FLOATS[1], FLOATS[2])))
    assert found.overall == FLOATS[3]
    assert read(coco(truth=False)).overall is None


def test_the_figures_of_inference_diff() -> None:
    found = read(diff())
    assert (found.runs, found.reference.count, found.reference.sum_us, found.inference.last_us) == (2, 6, 21, 8)
    assert found.errors == (NativeError(0.375, 0.125, 0.25, 0.5), NativeError(None, None, 0.0, None))


def test_of_no_runs_everything_is_nothing() -> None:
    message = imagenet([])
    latency = message.process_metrics.image_classification_metrics.inference_latency
    latency.min_us, latency.max_us = LIMIT - 1, -LIMIT
    assert (read(message).inference, read(message).right) == (NOTHING_TIMED, ())
    empty = diff()
    empty.num_runs = 0
    empty.process_metrics.inference_profiler_metrics.output_errors[0].max_value = 1e-38
    assert read(empty).errors[0].max_error is None


def test_an_accuracy_that_is_no_share_is_refused() -> None:
    message = imagenet()
    accuracies = message.process_metrics.image_classification_metrics.topk_accuracy_metrics.topk_accuracies
    accuracies.append(math.nan)
    with pytest.raises(DataError, match="has an accuracy that is not a share"):
        read(message)


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
            read_figures(content)
        except DataError:
            refused += 1
    assert refused
    with pytest.raises(DataError, match="is not an EvaluationStageMetrics of 3 bytes"):
        read_figures(b"\xff\xff\xff")


@pytest.mark.parametrize("seed", range(20))
def test_series_of_times_give_what_one_series_of_all_gives(seed: int) -> None:
    """Exactly, but for the standard deviation, which is what it should be or 1 less."""
    chance = random.Random(seed)
    sizes = [chance.choice([0, 1, 2, 7, 50, 333]) for _ in range(chance.randrange(1, 6))] + [1]
    series = []
    for size in sizes:
        middle = chance.choice([3, 900, 40_000])
        series.append([max(0, round(chance.gauss(middle, chance.choice([0, 1, middle / 5])))) for _ in range(size)])
    whole = read(imagenet([time for times in series for time in times])).inference
    merged = merge_latencies([read(imagenet(times)).inference for times in series])
    assert whole.std_us - merged.std_us in (0, 1)
    assert replace(merged, std_us=whole.std_us) == whole
