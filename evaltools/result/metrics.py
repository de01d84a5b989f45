"""The metrics of any configuration, whatever the task."""

from __future__ import annotations

from typing import Final

from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult


def _latency_ms(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    latency = configuration.inference_latency
    if latency is None or not latency.count or latency.p50_us is None:
        return ABSENT
    return latency.p50_us / 1000


def _peak_memory_mb(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    return ABSENT if configuration.peak_memory_mb is None else configuration.peak_memory_mb


def _delegated_nodes(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    proof = configuration.delegation
    return proof.delegated_nodes / proof.total_nodes if proof is not None and proof.total_nodes else ABSENT


def _partitions(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
    """Not known where a delegate took nodes and does not say in how many partitions."""
    taken = [delegate.partitions for delegate in configuration.delegates if delegate.nodes]
    if None in taken or configuration.delegation is None or not configuration.delegation.total_nodes:
        return ABSENT
    return float(sum(filter(None, taken)))


METRICS: Final = (
    Metric("latency_ms", "median time of invoke, ms", _latency_ms, unit="ms", better="lower"),
    Metric(
        "latency",
        "only as `latency ratio`: time by that of the reference, on the same examples",
        lambda _result, _configuration: ABSENT,
        is_ratio=True,
    ),
    Metric(
        "peak_memory_mb",
        "largest resident memory of the configuration's process (Python, runtime, model, delegate), MB",
        _peak_memory_mb,
        unit="MB",
        better="lower",
    ),
    Metric(
        "delegated_nodes",
        "share of the model's nodes that ran on delegates, 0..1",
        _delegated_nodes,
        better="higher",
        is_share=True,
        against_baseline="number",
    ),
    Metric("partitions", "number of partitions of all delegates", _partitions, better="lower"),
    Metric(
        "failed_examples",
        "examples without an answer",
        lambda _result, configuration: float(configuration.failed_examples),
        better="lower",
        against_baseline="number",
    ),
)
