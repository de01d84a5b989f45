"""The metrics of any configuration, whatever the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.result.evaluation import ConfigurationResult, DelegateUsed, DelegationProof, EvaluationResult

RUNS_FOR_P90: Final = 10
RUNS_FOR_P99: Final = 100
"""With fewer, such a percentile is the longest time."""


def _latency_ms(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    latency = configuration.inference_latency
    if latency is None or not latency.count or latency.p50_us is None:
        return ABSENT
    return latency.p50_us / 1000


def _latency_p90_ms(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    latency = configuration.inference_latency
    if latency is None or latency.count < RUNS_FOR_P90 or latency.p90_us is None:
        return ABSENT
    return latency.p90_us / 1000


def _latency_p99_ms(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    latency = configuration.inference_latency
    if latency is None or latency.count < RUNS_FOR_P99 or latency.p99_us is None:
        return ABSENT
    return latency.p99_us / 1000


def _peak_memory_mb(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    return ABSENT if configuration.peak_memory_mb is None else configuration.peak_memory_mb


def _latency_cpu_ratio(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    return ABSENT if configuration.latency_cpu_ratio is None else configuration.latency_cpu_ratio


def share_delegated(proof: DelegationProof | None) -> Figure:
    """The share of the nodes that delegates took."""
    return proof.delegated_nodes / proof.total_nodes if proof is not None and proof.total_nodes else ABSENT


def partitions_of(delegates: Sequence[DelegateUsed], proof: DelegationProof | None) -> Figure:
    """Of all delegates; not known where one took nodes and does not say in how many partitions."""
    taken = [delegate.partitions for delegate in delegates if delegate.nodes]
    if None in taken or proof is None or not proof.total_nodes:
        return ABSENT
    return float(sum(filter(None, taken)))


def _absent(_result: EvaluationResult, _configuration: ConfigurationResult) -> Figure:
    return ABSENT


METRICS: Final = (
    Metric(
        "examples",
        "examples with an answer, which the figures are of",
        lambda _result, configuration: float(configuration.finished_examples),
        better="higher",
    ),
    Metric("latency_ms", "median time of invoke, ms", _latency_ms, unit="ms", better="lower"),
    Metric(
        "latency_p90_ms",
        f"time within which 90 % of invokes ended, of {RUNS_FOR_P90} or more, ms",
        _latency_p90_ms,
        unit="ms",
        better="lower",
    ),
    Metric(
        "latency_p99_ms",
        f"time within which 99 % of invokes ended, of {RUNS_FOR_P99} or more, ms",
        _latency_p99_ms,
        unit="ms",
        better="lower",
    ),
    Metric(
        "load_ms",
        "time to load the model and create its delegates, ms",
        lambda _result, configuration: ABSENT if configuration.load_ms is None else configuration.load_ms,
        unit="ms",
        better="lower",
    ),
    Metric(
        "model_mb",
        "size of the model file, MB (1024 * 1024 bytes)",
        lambda result, _configuration: result.model.size_bytes / 2**20,
        unit="MB",
        better="lower",
    ),
    Metric(
        "latency_ratio",
        "time by that of the reference, on the same examples",
        _absent,
        better="lower",
        is_ratio=True,
    ),
    Metric(
        "latency_cpu_ratio",
        "time by that of the fastest configuration of the run on the CPU",
        _latency_cpu_ratio,
        better="lower",
    ),
    Metric(
        "peak_memory_mb",
        "largest resident memory of the configuration's process (Python, runtime, model, delegate), MB",
        _peak_memory_mb,
        unit="MB",
        better="lower",
    ),
    Metric(
        "delegated_share",
        "share of the model's nodes that ran on delegates, 0..1",
        lambda _result, configuration: share_delegated(configuration.delegation),
        better="higher",
        is_share=True,
    ),
    Metric(
        "partitions",
        "number of partitions of all delegates",
        lambda _result, configuration: partitions_of(configuration.delegates, configuration.delegation),
        better="lower",
    ),
    Metric(
        "failed_examples",
        "examples without an answer",
        lambda _result, configuration: float(configuration.failed_examples),
        better="lower",
    ),
    Metric(
        "nan_outputs",
        "outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)",
        lambda _result, configuration: float(configuration.nan_outputs),
        better="lower",
    ),
    Metric(
        "crashes",
        "how often a process of the configuration crashed, or hung and was ended",
        lambda _result, configuration: float(configuration.crashes),
        better="lower",
    ),
)
