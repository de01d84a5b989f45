"""The metrics of any configuration, whatever the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from evaltools.metrics.latency import Latency
from evaltools.metrics.metric import Metric
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.figure import Figure
from evaltools.result.result import Row

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


def latency_figures(latency: Latency) -> dict[str, Figure]:
    """The percentiles of times, as far as there are enough of them.

    >>> from evaltools.metrics.latency import summarise_latency
    >>> list(latency_figures(summarise_latency([1250.0, 1750.0, 6000.0])))
    ['latency_ms']
    """
    known_us = {
        "latency_ms": (latency.p50_us, 1),
        "latency_p90_ms": (latency.p90_us, RUNS_FOR_P90),
        "latency_p99_ms": (latency.p99_us, RUNS_FOR_P99),
    }
    enough = {name: us for name, (us, fewest) in known_us.items() if us is not None and latency.count >= fewest}
    found = figures_of({name: us / 1000 for name, us in enough.items()})
    at_least = ""
    for name, figure in found.items():
        found[name] = replace(figure, count=latency.count, at_least=at_least)
        at_least = name
    return found


def figures_of_nodes(delegates: Sequence[DelegateUsed], proof: DelegationProof | None) -> dict[str, Figure]:
    """What ran on delegates, as far as it is known."""
    return figures_of({"delegated_share": share_delegated(proof), "partitions": partitions_of(delegates, proof)})


def figures_of(values: Mapping[str, float | None]) -> dict[str, Figure]:
    """Numbers by the names of these metrics as figures; None for one that is not known."""
    return {
        metric.name: Figure(float(value), metric.unit, metric.better, is_share=metric.is_share)
        for metric in METRICS
        if (value := values.get(metric.name)) is not None
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
NEVER_BELOW_0: Final = frozenset(metric.name for metric in METRICS)
ABOVE_0: Final = frozenset(metric.name for metric in METRICS if metric.is_ratio)
_COMMON: Final = {metric.name: place for place, metric in enumerate(METRICS)}


def of_task(row: Row) -> dict[str, Figure]:
    """The figures of a row that not every task has."""
    return {name: figure for name, figure in row.figures.items() if name not in _COMMON}


def in_order(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    """The figures, those that every task has first."""
    return {name: figures[name] for name in sorted(figures, key=lambda name: _COMMON.get(name, len(_COMMON)))}
