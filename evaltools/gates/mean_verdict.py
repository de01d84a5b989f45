"""Whether the mean of a score changed."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from evaltools.gates.accuracy_verdict import unchanged_reasons
from evaltools.result.verdict import Verdict
from evaltools.stats.means import MeanChange
from evaltools.stats.power import examples_to_judge_figure

Better = Literal["higher", "lower"]
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
