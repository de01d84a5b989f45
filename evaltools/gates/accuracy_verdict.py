"""Whether accuracy changed, and whether the mean of a score did."""

from __future__ import annotations

from typing import Final, Literal

from msgspec.structs import replace

from evaltools.metrics.interval import Interval
from evaltools.metrics.means import FEWEST_DIFFERING, FEWEST_UNEQUAL, MeanChange
from evaltools.metrics.power import examples_to_judge
from evaltools.metrics.proportions import PairedCounts, change_interval, mcnemar_p, share_bound
from evaltools.result.verdict import (
    FEW_DIFFERING,
    FEW_UNEQUAL,
    IDENTICAL_ANSWERS,
    UNCHANGED_ANSWERS,
    Reason,
    Verdict,
    VerdictKind,
)

DEFAULT_MARGIN: Final = 0.005
LEVEL: Final = 0.05
_ONE_SIDE: Final = 0.975
"""Confidence of each end of the 95 % interval that a verdict rests on."""


def accuracy_verdict(
    metric: str, counts: PairedCounts, margin: float = DEFAULT_MARGIN, p_value: float | None = None, tests: int = 1
) -> Verdict:
    """A verdict on a share of examples, with the 95 % interval of its change (Tango's score).

    A change is ``worse`` or ``better`` only where McNemar's exact test agrees: ``p_value``, that of the counts
    themselves where it is not corrected for so many ``tests``. Where nothing is decided, ``examples_needed`` is the
    number of examples that would decide at the same rates in 80 % of cases.

    >>> accuracy_verdict("top1", PairedCounts(5000, 41, 32)).examples_needed
    7172
    >>> accuracy_verdict("top1", PairedCounts(5000, 178, 42)).kind
    'worse'
    """
    p_value = mcnemar_p(counts) if p_value is None else p_value
    found = change_verdict(metric, counts.change, change_interval(counts), margin, p_value <= LEVEL)
    needed = examples_to_judge(counts, margin, _ONE_SIDE, LEVEL / tests) if found.kind == "not decided" else None
    return replace(found, p_value=p_value, examples_needed=needed)


def unchanged_reasons(examples: int, identical: int, is_unchanged: bool) -> list[Reason]:
    """What to say first where nothing was seen to change: how many examples like these can, at most (95 %).

    By the exact one-sided bound of 0 of ``examples``. ``identical`` of them have the same answer bit for bit;
    ``is_unchanged``: the figure is the same whichever of them are taken.

    >>> unchanged_reasons(60, 60, is_unchanged=True)[0].kind
    'identical_answers'
    """
    if examples == 0 or not (is_unchanged or identical == examples):
        return []
    kind = IDENTICAL_ANSWERS if identical == examples else UNCHANGED_ANSWERS
    most = share_bound(0, examples, 1 - LEVEL, upper=True)
    return [Reason(kind, {"examples": examples, "most_differing": most})]


def change_verdict(
    metric: str, change: float, interval: Interval, margin: float = DEFAULT_MARGIN, is_tested: bool = True
) -> Verdict:
    """A verdict on any share, 0..1, that changed by ``change``; the interval is that of the change.

    ``equivalent`` where the whole interval lies within ``margin`` (0..1) of no change, ``worse`` or ``better`` where it
    lies on one side of no change and another test, if there is one, agrees (``is_tested``), else ``not decided``.

    >>> change_verdict("ap", 0.001, Interval(-0.002, 0.004)).kind
    'equivalent'
    """
    low, high = interval.low, interval.high
    kind: VerdictKind = "not decided"
    if -margin <= low and high <= margin:
        kind = "equivalent"
    elif is_tested and (high < 0 or low > 0):
        kind = "worse" if high < 0 else "better"
    return Verdict(kind, metric, change=change, low=low, high=high, margin=margin)


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
