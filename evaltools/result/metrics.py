"""The metrics of any configuration, whatever the task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from evaltools.metrics.latency import Latency
from evaltools.metrics.metric import ABSENT, Figure, Metric
from evaltools.result.evaluation import ConfigurationResult, DelegateUsed, DelegationProof, EvaluationResult

RUNS_FOR_P90: Final = 10
RUNS_FOR_P99: Final = 100
"""With fewer, such a percentile is the longest time."""


def _latency_ms(time_us: Callable[[Latency], float | None], fewest: int) -> Callable[..., Figure]:
    """A time of invoke, which needs so many of them."""

    def read(_result: EvaluationResult, configuration: ConfigurationResult) -> Figure:
        latency = configuration.inference_latency
        found = None if latency is None or latency.count < fewest else time_us(latency)
        return ABSENT if found is None else found / 1000

    return read


def _known(value: float | None) -> Figure:
    return ABSENT if value is None else value


def share_delegated(proof: DelegationProof | None) -> Figure:
    """The share of the nodes that delegates took."""
    return proof.delegated_nodes / proof.total_nodes if proof is not None and proof.total_nodes else ABSENT


def partitions_of(delegates: Sequence[DelegateUsed], proof: DelegationProof | None) -> Figure:
    """Of all delegates; not known where one took nodes and does not say in how many partitions."""
    taken = [delegate.partitions for delegate in delegates if delegate.nodes]
    if None in taken or proof is None or not proof.total_nodes:
        return ABSENT
    return float(sum(filter(None, taken)))


METRICS: Final = (
    Metric(
        "examples",
        "examples with an answer, which the figures are of",
        lambda _result, configuration: float(configuration.finished_examples),
        better="higher",
    ),
    Metric(
        "latency_ms", "median time of invoke, ms", _latency_ms(lambda each: each.p50_us, 1), unit="ms", better="lower"
    ),
    Metric(
        "latency_p90_ms",
        f"time within which 90 % of invokes ended, of {RUNS_FOR_P90} or more, ms",
        _latency_ms(lambda each: each.p90_us, RUNS_FOR_P90),
        unit="ms",
        better="lower",
    ),
    Metric(
        "latency_p99_ms",
        f"time within which 99 % of invokes ended, of {RUNS_FOR_P99} or more, ms",
        _latency_ms(lambda each: each.p99_us, RUNS_FOR_P99),
        unit="ms",
        better="lower",
    ),
    Metric(
        "load_ms",
        "time to load the model and create its delegates, ms",
        lambda _result, configuration: _known(configuration.load_ms),
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
        lambda _result, _configuration: ABSENT,
        better="lower",
        is_ratio=True,
    ),
    Metric(
        "latency_cpu_ratio",
        "time by that of the fastest configuration of the run on the CPU",
        lambda _result, configuration: _known(configuration.latency_cpu_ratio),
        better="lower",
    ),
    Metric(
        "peak_memory_mb",
        "largest resident memory of the configuration's process (Python, runtime, model, delegate), MB",
        lambda _result, configuration: _known(configuration.peak_memory_mb),
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
