"""Whether the mean of a score changed."""

from __future__ import annotations

from typing import Literal

from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import unchanged_reasons
from evaltools.metrics.means import FEWEST_DIFFERING, FEWEST_UNEQUAL, MeanChange
from evaltools.result.verdict import FEW_DIFFERING, FEW_UNEQUAL, Reason, Verdict

Better = Literal["higher", "lower"]


def mean_verdict(metric: str, change: MeanChange, better: Better, margin: float, against: str = "") -> Verdict:
    """A verdict on a mean over the same examples, by the 95 % interval of its change.

    ``equivalent`` where the whole interval lies within ``margin`` of no change, ``worse`` or ``better`` where it lies
    on one side of no change, else ``not decided``, with the number of examples that would decide in 80 % of cases where
    ten or more differ. Without an interval it is not decided either, and a reason says why.

    >>> mean_verdict("error", MeanChange(40, 0.3, 0.1, 40, 1.0), "lower", 0.005).kind
    'worse'
    """
    interval = change.interval()
    reasons = unchanged_reasons(change.count, 0, is_unchanged=change.differing == 0)
    verdict = Verdict("not decided", metric, against, change=change.change, margin=margin, reasons=reasons)
    if interval is None:
        few = Reason(FEW_UNEQUAL, {"differing": change.differing, "fewest": FEWEST_UNEQUAL})
        return replace(verdict, reasons=[*reasons, few] if change.count > 1 else reasons)
    verdict = replace(verdict, low=interval.low, high=interval.high)
    if -margin <= interval.low and interval.high <= margin:
        return replace(verdict, kind="equivalent")
    if interval.low <= 0 <= interval.high:
        if change.differing < FEWEST_DIFFERING:
            few = Reason(FEW_DIFFERING, {"differing": change.differing, "fewest": FEWEST_DIFFERING})
            return replace(verdict, reasons=[*reasons, few])
        return replace(verdict, examples_needed=change.examples_to_judge(margin))
    return replace(verdict, kind="better" if (interval.low > 0) == (better == "higher") else "worse")
