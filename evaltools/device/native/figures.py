"""Merges the figures of native runs, and converts them to our own types."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.metrics.classification import ClassificationMetrics, TopKAccuracy
from evaltools.metrics.latency import Latency
from evaltools.native.logs.run import ClassifierFigures, DetectorFigures, NativeLatency
from evaltools.result.evaluation import ConfigurationResult

NOTHING_TIMED: Final = NativeLatency(0, 0, 0, 0, 0, 0.0, None)


def whole_counts(accuracies: Sequence[float], runs: int) -> list[int]:
    """How many of ``runs`` pictures are behind each accuracy, a share in float32; raises :class:`DataError`.

    >>> whole_counts([0.545000016689300537109375], 200)
    [109]
    """
    counts = [round(accuracy * runs) for accuracy in accuracies]
    shares = [float(np.float32(count) / np.float32(runs)) if runs else 0.0 for count in counts]
    if shares != [*accuracies] or counts != sorted(counts) or any(count > runs for count in counts):
        listed = ", ".join(f"{accuracy:g}" for accuracy in accuracies)
        raise DataError(f"accuracies of {listed} cannot be those of {runs} pictures; take the files of one run")
    return counts


def merge_classifiers(parts: Sequence[ClassifierFigures]) -> ClassifierFigures:
    """The figures of one run over the pictures of all parts, in the order of the parts.

    Accuracies are exact: right answers are added up and divided as the native tool does. Times are those of
    :func:`merge_latencies`. Raises :class:`DataError` for accuracies that no number of pictures gives.
    """
    runs = sum(part.runs for part in parts)
    counts = [whole_counts(part.accuracies, part.runs) for part in parts if part.runs]
    if len({len(found) for found in counts}) > 1:
        raise DataError("the parts of a run have different numbers of accuracies; take the files of one run")
    totals = [sum(column) for column in zip(*counts, strict=True)]
    return ClassifierFigures(
        runs=runs,
        preprocessing=merge_latencies([part.preprocessing for part in parts]),
        inference=merge_latencies([part.inference for part in parts]),
        accuracies=tuple(float(np.float32(total) / np.float32(runs)) for total in totals),
    )


def merge_latencies(parts: Sequence[NativeLatency]) -> NativeLatency:
    """Several series of times as one, in microseconds; all 0 where there is none.

    Count, sum, smallest, largest, last and average are exact. The standard deviation is exact or 1 too small: those of
    the parts were cut to whole numbers, and with less than 1 missing in each, less than 1 is missing in the whole.

    >>> merge_latencies([NativeLatency(2, 3, 1, 3, 4, 2.0, 1), NativeLatency(1, 8, 8, 8, 8, 8.0, 0)])
    NativeLatency(count=3, last_us=8, min_us=1, max_us=8, sum_us=12, avg_us=4.0, std_us=2)
    """
    timed = [part for part in parts if part.count]
    if not timed:
        return NOTHING_TIMED
    if len(timed) == 1:
        return timed[0]
    count = sum(part.count for part in timed)
    sum_us = sum(part.sum_us for part in timed)
    average = sum_us / count
    squares = sum(part.count * ((part.std_us or 0) ** 2 + (part.avg_us - average) ** 2) for part in timed)
    return NativeLatency(
        count=count,
        last_us=timed[-1].last_us,
        min_us=min(part.min_us for part in timed),
        max_us=max(part.max_us for part in timed),
        sum_us=sum_us,
        avg_us=average,
        std_us=None if any(part.std_us is None for part in timed) else math.isqrt(int(squares / count)),
    )


def as_latency(found: NativeLatency) -> Latency:
    """A latency of which no single times are known, so that it has no first time and no median.

    Smallest, largest, last, sum, average and standard deviation are the native tool's.
    """
    return Latency(
        count=found.count,
        first_us=None,
        last_us=found.last_us,
        min_us=found.min_us,
        max_us=found.max_us,
        sum_us=found.sum_us,
        avg_us=found.avg_us,
        std_us=found.std_us or 0,
        p50_us=None,
        p90_us=None,
    )


def with_times(
    described: ConfigurationResult, found: ClassifierFigures | DetectorFigures | None
) -> ConfigurationResult:
    """The configuration with the latency and the number of examples of its figures, where it has such."""
    if found is None:
        return described
    return replace(described, inference_latency=as_latency(found.inference), finished_examples=found.runs)


def as_classification(found: ClassifierFigures) -> ClassificationMetrics:
    """Accuracies of a native run, which says nothing about NaN scores and the number of different answers."""
    counts = whole_counts(found.accuracies, found.runs)
    return ClassificationMetrics(TopKAccuracy(found.runs, tuple(count / found.runs for count in counts)), None, None)


def first_measured(configurations: Sequence[ConfigurationResult]) -> str | None:
    """The configuration whose preprocessing stands in the result, which has one for all.

    The first test, else the reference.
    """
    measured = [entry for entry in configurations if entry.status == "measured"]
    tests = [entry.name for entry in measured if entry.role == "test"]
    return next(iter([*tests, *(entry.name for entry in measured)]), None)
