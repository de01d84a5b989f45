"""Intervals of accuracies, and tests of their changes on the same examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import accuracy_verdict, unchanged_reasons
from evaltools.metrics.agreement import ComparedAnswers
from evaltools.metrics.classification import ClassificationMetrics
from evaltools.result.verdict import Verdict
from evaltools.stats.multiple import holm
from evaltools.stats.proportions import PairedCounts, change_interval, mcnemar_p, wilson_interval
from evaltools.tasks.imagenet.result import Classified, Comparison, TopKChange


def classified(metrics: ClassificationMetrics) -> Classified:
    """The accuracies of a configuration with the 95 % interval of each."""
    topk = metrics.topk
    intervals = [wilson_interval(round(share * topk.example_count), topk.example_count) for share in topk.accuracies]
    return Classified(metrics, intervals)


def topk_comparisons(compared: Mapping[tuple[str, str], ComparedAnswers]) -> list[Comparison]:
    """Comparisons of ``(baseline, other)`` with tests and intervals.

    Holm's correction is over all others that are held against the same baseline.
    """
    comparisons = [
        Comparison(
            baseline,
            other,
            found.agreement,
            [_topk_change(k, counts) for k, counts in enumerate(found.topk, 1) if counts.count],
        )
        for (baseline, other), found in compared.items()
    ]
    baselines = dict.fromkeys(entry.baseline for entry in comparisons)
    families = {name: [entry for entry in comparisons if entry.baseline == name] for name in baselines}
    return [entry for family in families.values() for entry in _corrected(family)]


def topk_verdicts(comparisons: Sequence[Comparison], margin: float) -> dict[str, list[Verdict]]:
    """The verdicts on Top-1 by configuration, from the p-values that are corrected for the other comparisons.

    ``margin`` is the change, 0..1, that counts as none.
    """
    found: dict[str, list[Verdict]] = {}
    tests = Counter(entry.baseline for entry in comparisons if entry.topk)
    for entry in comparisons:
        if entry.topk:
            top1 = entry.topk[0]
            counts = PairedCounts(entry.agreement.example_count, top1.lost, top1.gained)
            verdict = accuracy_verdict("top1", counts, margin, top1.p_value_holm, tests[entry.baseline])
            is_unchanged = verdict.kind == "not decided" and top1.lost == top1.gained == 0
            reasons = unchanged_reasons(counts.count, entry.identical, is_unchanged)
            found.setdefault(entry.other, []).append(replace(verdict, against=entry.baseline, reasons=reasons))
    return found


def _topk_change(k: int, counts: PairedCounts) -> TopKChange:
    p_value = mcnemar_p(counts)
    return TopKChange(k, counts.lost, counts.gained, counts.change, change_interval(counts), p_value, p_value)


def _corrected(family: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values corrected by Holm's method, for each k apart.

    Comparisons without a common example have no p-values.
    """
    tested = [entry for entry in family if entry.topk]
    columns = zip(*([change.p_value for change in entry.topk] for entry in tested), strict=True)
    rows = zip(*map(holm, columns), strict=True)
    corrected = {}
    for entry, row in zip(tested, rows, strict=True):
        changes = [replace(change, p_value_holm=p) for change, p in zip(entry.topk, row, strict=True)]
        corrected[entry.other] = replace(entry, topk=changes)
    return [corrected.get(entry.other, entry) for entry in family]
