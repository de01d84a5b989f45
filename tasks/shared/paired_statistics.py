"""How sure the figures of configurations are that ran the same examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evaltools.gates.accuracy_verdict import accuracy_verdict
from evaltools.metrics.agreement import ComparedAnswers
from evaltools.metrics.topk import TopKAccuracy
from evaltools.result.evaluation import ConfigurationResult
from evaltools.result.paired import Comparison, LatencyComparison, TopKChange
from evaltools.stats.interval import Interval
from evaltools.stats.latency_ratio import drift
from evaltools.stats.multiple import holm
from evaltools.stats.proportions import PairedCounts, change_interval, mcnemar_p, wilson_interval
from evaltools.tasks.shared.one_pass import Sums


def accuracy_intervals(topk: TopKAccuracy) -> list[Interval]:
    """The 95 % interval of each of the top-k accuracies."""
    return [wilson_interval(round(share * topk.example_count), topk.example_count) for share in topk.accuracies]


def topk_comparisons(
    compared: Mapping[tuple[str, str], ComparedAnswers],
    margin: float,
) -> list[Comparison]:
    """Comparisons of ``(baseline, other)`` with tests, intervals and verdicts.

    ``margin`` is a change, 0..1, that counts as none. Holm's correction is over all others that are held against the
    same baseline.
    """
    comparisons = [
        Comparison(
            baseline,
            other,
            found.agreement,
            "",
            [_topk_change(k, counts) for k, counts in enumerate(found.topk, 1) if counts.count],
        )
        for (baseline, other), found in compared.items()
    ]
    baselines = dict.fromkeys(entry.baseline for entry in comparisons)
    families = {name: [entry for entry in comparisons if entry.baseline == name] for name in baselines}
    corrected = [entry for family in families.values() for entry in _corrected(family)]
    return [replace(entry, verdict=_verdict(entry, margin)) for entry in corrected]


def _verdict(comparison: Comparison, margin: float) -> str:
    """On Top-1, by the p that is corrected for the other comparisons."""
    if not comparison.topk:
        return ""
    top1 = comparison.topk[0]
    counts = PairedCounts(comparison.agreement.example_count, top1.lost, top1.gained)
    return accuracy_verdict(counts, margin, top1.p_value_holm)


def _topk_change(k: int, counts: PairedCounts) -> TopKChange:
    p_value = mcnemar_p(counts)
    return TopKChange(k, counts.lost, counts.gained, counts.change, change_interval(counts), p_value, p_value)


def _corrected(family: Sequence[Comparison]) -> list[Comparison]:
    """With Holm's p-values, for each k apart; comparisons without a common example have none."""
    tested = [entry for entry in family if entry.topk]
    columns = zip(*([change.p_value for change in entry.topk] for entry in tested), strict=True)
    rows = zip(*map(holm, columns), strict=True)
    corrected = {}
    for entry, row in zip(tested, rows, strict=True):
        changes = [replace(change, p_value_holm=p) for change, p in zip(entry.topk, row, strict=True)]
        corrected[entry.other] = replace(entry, topk=changes)
    return [corrected.get(entry.other, entry) for entry in family]


def latency_comparisons(sums: Sums) -> list[LatencyComparison]:
    """The ratios of times on the examples that both ran, for each pair that ran here."""
    found = []
    for baseline, other in sums.pairs:
        ratio = sums.latency_ratio((baseline, other))
        if ratio is not None:
            found.append(LatencyComparison(baseline, other, ratio.pairs, ratio.ratio, ratio.interval))
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
