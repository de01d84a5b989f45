"""The metrics of any configuration, whatever the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaltools.metrics.metric import Metric
from evaltools.result.evaluation import ConfigurationResult, DelegateUsed, DelegationProof, EvaluationResult
from evaltools.result.figure import Figure

RUNS_FOR_P90: Final = 10
RUNS_FOR_P99: Final = 100
"""With fewer, such a percentile is the longest time."""


def share_delegated(proof: DelegationProof | None) -> float | None:
    """The share of the nodes that delegates took; None where it is not known."""
    return proof.delegated_nodes / proof.total_nodes if proof is not None and proof.total_nodes else None


def partitions_of(delegates: Sequence[DelegateUsed], proof: DelegationProof | None) -> float | None:
    """Of all delegates; None where one took nodes and does not say in how many partitions."""
    taken = [delegate.partitions for delegate in delegates if delegate.nodes]
    if None in taken or proof is None or not proof.total_nodes:
        return None
    return float(sum(filter(None, taken)))


def common_figures(result: EvaluationResult, entry: ConfigurationResult) -> dict[str, Figure]:
    """The figures of a configuration that every task has, as far as they are known."""
    latency = entry.inference_latency
    count = 0 if latency is None else latency.count
    times_us = {} if latency is None else {
        "latency_ms": latency.p50_us if count else None,
        "latency_p90_ms": latency.p90_us if count >= RUNS_FOR_P90 else None,
        "latency_p99_ms": latency.p99_us if count >= RUNS_FOR_P99 else None,
    }  # fmt: skip
    known = {
        "examples": entry.finished_examples,
        **{name: None if time_us is None else time_us / 1000 for name, time_us in times_us.items()},
        "load_ms": entry.load_ms,
        "model_mb": result.model.size_bytes / 2**20,
        "latency_cpu_ratio": entry.latency_cpu_ratio,
        "peak_memory_mb": entry.peak_memory_mb,
        "delegated_share": share_delegated(entry.delegation),
        "partitions": partitions_of(entry.delegates, entry.delegation),
        "failed_examples": entry.failed_examples,
        "nan_outputs": entry.nan_outputs,
        "crashes": entry.crashes,
    }
    return figures_of({name: value for name, value in known.items() if value is not None})


def figures_of(values: Mapping[str, float | None]) -> dict[str, Figure]:
    """Numbers by the names of these metrics as figures."""
    return {
        name: Figure(None if value is None else float(value), metric.unit, metric.better, is_share=metric.is_share)
        for metric in METRICS
        if (name := metric.name) in values
        for value in [values[name]]
    }


METRICS: Final = (
    Metric(
        "examples",
        "examples with an answer, which the figures are of",
        better="higher",
    ),
    Metric("latency_ms", "median time of invoke, ms", unit="ms", better="lower"),
    Metric(
        "latency_p90_ms",
        f"time within which 90 % of invokes ended, of {RUNS_FOR_P90} or more, ms",
        unit="ms",
        better="lower",
    ),
    Metric(
        "latency_p99_ms",
        f"time within which 99 % of invokes ended, of {RUNS_FOR_P99} or more, ms",
        unit="ms",
        better="lower",
    ),
    Metric(
        "load_ms",
        "time to load the model and create its delegates, ms",
        unit="ms",
        better="lower",
    ),
    Metric(
        "model_mb",
        "size of the model file, MB (1024 * 1024 bytes)",
        unit="MB",
        better="lower",
    ),
    Metric(
        "latency_ratio",
        "time by that of the reference, on the same examples",
        better="lower",
        is_ratio=True,
    ),
    Metric(
        "latency_cpu_ratio",
        "time by that of the fastest configuration of the run on the CPU",
        better="lower",
    ),
    Metric(
        "peak_memory_mb",
        "largest resident memory of the configuration's process (Python, runtime, model, delegate), MB",
        unit="MB",
        better="lower",
    ),
    Metric(
        "delegated_share",
        "share of the model's nodes that ran on delegates, 0..1",
        better="higher",
        is_share=True,
    ),
    Metric(
        "partitions",
        "number of partitions of all delegates",
        better="lower",
    ),
    Metric(
        "failed_examples",
        "examples without an answer",
        better="lower",
    ),
    Metric(
        "nan_outputs",
        "outputs with NaN or infinite numbers (coco: detections, inference_diff: elements)",
        better="lower",
    ),
    Metric(
        "crashes",
        "how often a process of the configuration crashed, or hung and was ended",
        better="lower",
    ),
)
