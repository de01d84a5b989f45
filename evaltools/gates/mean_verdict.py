"""Whether the mean of a score changed."""

from __future__ import annotations

import math
from typing import Final, Literal

from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import unchanged_reasons
from evaltools.result.verdict import Reason, Verdict
from evaltools.stats.means import MeanChange
from evaltools.stats.power import examples_to_judge_figure

Better = Literal["higher", "lower"]
WELCH: Final = "welch"
"""The reason where two means are of other examples, so that Welch's t test compares them."""
_LEVEL: Final = 0.05


def mean_verdict(metric: str, change: MeanChange, better: Better, margin: float, against: str = "") -> Verdict:
    """A verdict on a mean over the same examples, by the 95 % interval of its change.

    ``equivalent`` where the whole interval lies within ``margin`` of no change, ``worse`` or ``better`` where it lies
    on one side of no change, else ``not decided``, with the number of examples that would decide in 80 % of cases.

    >>> mean_verdict("error", MeanChange(40, 0.3, 0.1, 40, 1.0), "lower", 0.005).kind
    'worse'
    """
    interval = change.interval()
    reasons = unchanged_reasons(change.count, 0, is_unchanged=change.differing == 0)
    verdict = Verdict("not decided", metric, against, change=change.change, margin=margin, reasons=reasons)
    if interval is None:
        return verdict
    verdict = replace(verdict, low=interval.low, high=interval.high)
    if -margin <= interval.low and interval.high <= margin:
        return replace(verdict, kind="equivalent")
    if interval.low <= 0 <= interval.high:
        needed = examples_to_judge_figure(change.change, interval, margin, change.count, _LEVEL)
        return replace(verdict, examples_needed=needed)
    return replace(verdict, kind="better" if (interval.low > 0) == (better == "higher") else "worse")


def unpaired_mean_verdict(
    metric: str, before: tuple[float, float, int], now: tuple[float, float, int], better: Better
) -> Verdict | None:
    """A verdict on means of other examples: ``(mean, deviation, count)`` of both, by Welch's t test (B. L. Welch 1947).

    Where all scores of each side are equal, by the permutation test: of all ways to divide the scores into such two
    sides, two tell them apart as well. None for fewer than 2 examples.

    >>> unpaired_mean_verdict("iou", (0.8, 0.1, 50), (0.7, 0.1, 50), "higher").kind
    'worse'
    """
    if min(before[2], now[2]) < 2:
        return None
    if before[1] or now[1]:
        from scipy import stats

        p_value = float(stats.ttest_ind_from_stats(*now, *before, equal_var=False).pvalue)
    else:
        p_value = min(1.0, 2 / math.comb(before[2] + now[2], now[2])) if before[0] != now[0] else 1.0
    change = now[0] - before[0]
    verdict = Verdict("not decided", metric, change=change, p_value=p_value, reasons=[Reason(WELCH)])
    if p_value > _LEVEL:
        return verdict
    return replace(verdict, kind="better" if (change > 0) == (better == "higher") else "worse")
