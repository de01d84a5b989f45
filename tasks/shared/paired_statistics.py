"""How sure the figures of configurations are that ran the same examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from evaltools.result.evaluation import ConfigurationResult, LatencyComparison
from evaltools.stats.latency_ratio import drift
from evaltools.tasks.shared.one_pass import Sums


def latency_comparisons(sums: Sums) -> list[LatencyComparison]:
    """The ratios of times on the examples that both ran, for each pair that ran here."""
    found = []
    for baseline, other in sums.pairs:
        ratio = sums.latency_ratio((baseline, other))
        if ratio is not None:
            found.append(LatencyComparison(baseline, other, ratio.pairs, ratio.ratio, ratio.interval, ratio.processes))
    return found


def with_conditions(configurations: Sequence[ConfigurationResult], sums: Sums) -> list[ConfigurationResult]:
    """With the trend of the times that each latency sums up, and the memory that each took.

    The times of several shards have no common order, and their memory was that of other hosts.
    """
    found = []
    for entry in configurations:
        if entry.name in sums.configurations and entry.status == "measured" and not sums.measured.merged_shards:
            peak = sums.measured.peak_memory_kb.get(entry.name)
            trend = drift(sums.invokes_us(entry.name))
            entry = replace(entry, latency_drift=trend, peak_memory_mb=None if peak is None else round(peak / 1024, 1))
        found.append(entry)
    return found
