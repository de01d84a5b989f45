"""How sure the figures of configurations are that ran the same examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaltools.engine.describe import comparison_pairs
from evaltools.result.evaluation import ConfigurationResult, LatencyComparison
from evaltools.stats.latency_ratio import LatencyRatio, drift, latency_ratio
from evaltools.tasks.shared.measured import Measured


def latency_comparisons(configurations: Sequence[ConfigurationResult], measured: Measured) -> list[LatencyComparison]:
    """The ratios of times on the examples that both ran, for each pair that ran here."""
    found = []
    for baseline, other in comparison_pairs(configurations):
        ratio = _latency_ratio(measured, baseline, other)
        if ratio is not None:
            found.append(LatencyComparison(baseline, other, ratio.pairs, ratio.ratio, ratio.interval))
    return found


def with_conditions(configurations: Sequence[ConfigurationResult], measured: Measured) -> list[ConfigurationResult]:
    """With the trend of the times that each latency sums up, and the memory that each took.

    The times of several shards have no common order, and their memory was that of other hosts.
    """
    found = []
    for entry in configurations:
        if entry.name in measured.outcome.records and entry.status == "measured" and not measured.merged_shards:
            peak = measured.peak_memory_kb.get(entry.name)
            trend = drift(measured.invokes_us(entry.name))
            entry = replace(entry, latency_drift=trend, peak_memory_mb=None if peak is None else round(peak / 1024, 1))
        found.append(entry)
    return found


def _latency_ratio(measured: Measured, baseline: str, other: str) -> LatencyRatio | None:
    own, theirs = measured.first_us(baseline), measured.first_us(other)
    common = sorted(own.keys() & theirs.keys())
    return latency_ratio([own[index] for index in common], [theirs[index] for index in common])
