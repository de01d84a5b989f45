"""The binary protobuf that ``benchmark_model --result_file_path`` writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evaltools.metrics.latency import summarise_latency, whole_us
from evaltools.native.lines.benchmark import footprint_growth
from evaltools.native.lines.stat_line import stat_figures
from evaltools.proto import BENCHMARK, message_class
from evaltools.result.benchmark import BenchmarkRow, Memory, StatFigures


def native_benchmark_proto(row: BenchmarkRow, model_size_bytes: int, input_bytes: int) -> bytes:
    """``BenchmarkResult`` of a row that was measured, serialised; times are in ms.

    ``input_bytes`` is the size of all inputs of one run. Of several rounds all runs count, init and first inference are
    the mean, each footprint is the largest. Field presence is the native tool's: no ``name``, memory only where the
    platform tells it, ``peak_mem_mb`` only where it was monitored. Without runs the native tool writes the limits of
    int64 as ``min_ms`` and ``max_ms``; here they are 0.
    """
    warm_ups = [each.warm_up.invokes_us for each in row.rounds]
    values_us = [whole_us(value) for each in row.rounds for value in each.regular.invokes_us]
    warm_up = stat_figures([value for values in warm_ups for value in values])
    regular = stat_figures(values_us)
    message = message_class("BenchmarkResult", BENCHMARK)()
    latency = message.latency_metrics
    latency.init_ms = _mean([each.opening.total_us for each in row.rounds]) / 1e3
    latency.first_inference_ms = _mean([whole_us(values[0]) for values in warm_ups if values]) / 1e3
    latency.average_warm_up_ms = warm_up.avg_us / 1e3
    _fill_inference(latency, regular)
    _fill_memory(message, [each.memory for each in row.rounds])
    misc = message.misc_metrics
    misc.model_size_mb = model_size_bytes / 1e6
    misc.num_runs = regular.count
    misc.num_warmup_runs = warm_up.count
    misc.model_throughput_in_mb_per_sec = _throughput(input_bytes * regular.count, sum(values_us))
    data: bytes = message.SerializeToString()
    return data


def _fill_inference(latency: Any, regular: StatFigures) -> None:
    assert regular.p5_us is not None
    assert regular.median_us is not None
    assert regular.p95_us is not None
    latency.avg_ms = regular.avg_us / 1e3
    latency.min_ms = regular.min_us / 1e3
    latency.max_ms = regular.max_us / 1e3
    latency.stddev_ms = regular.std_us / 1e3
    latency.median_ms = regular.median_us / 1e3
    latency.p5_ms = regular.p5_us / 1e3
    latency.p95_ms = regular.p95_us / 1e3


def _fill_memory(message: Any, memories: Sequence[Memory]) -> None:
    growths = [growth for growth in map(footprint_growth, memories) if growth is not None]
    if not growths:
        return
    message.memory_metrics.init_footprint_kb = max(init_kb for init_kb, _ in growths)
    message.memory_metrics.overall_footprint_kb = max(overall_kb for _, overall_kb in growths)
    monitored = [memory.monitored_peak_kb for memory in memories if memory.monitored_peak_kb]
    if monitored:
        message.memory_metrics.peak_mem_mb = max(monitored) / 1024


def _mean(values_us: Sequence[int]) -> float:
    return summarise_latency(values_us).avg_us


def _throughput(read_bytes: int, total_us: int) -> float:
    """Bytes of input read per second, in units of 1024 * 1024; no number without runs, as in the native tool."""
    if total_us == 0:
        return math.inf if read_bytes else math.nan
    return read_bytes * 1e6 / total_us / (1024 * 1024)
