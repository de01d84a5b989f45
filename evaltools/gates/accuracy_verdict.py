"""Whether accuracy changed, in words."""

from __future__ import annotations

from typing import Final

from evaltools.stats.power import examples_to_judge
from evaltools.stats.proportions import PairedCounts, change_interval, mcnemar_p

DEFAULT_MARGIN: Final = 0.005
_LEVEL: Final = 0.05
_ONE_SIDE: Final = 0.975
"""Confidence of each end of the 95 % interval that the words rest on."""


def accuracy_verdict(counts: PairedCounts, margin: float = DEFAULT_MARGIN, p_value: float | None = None) -> str:
    """A verdict on a share of examples, with the 95 % interval of its change in percentage points (Tango's score).

    A change is ``WORSE`` or ``better`` only where McNemar's exact test agrees: ``p_value``, that of the counts
    themselves where it is not corrected for other tests. Where nothing is decided, the number of examples is added that
    would decide at the same rates.

    >>> accuracy_verdict(PairedCounts(5000, 41, 32))
    'not decided: -0.18 points [-0.53, +0.16]; about 5847 examples would tell whether it is within 0.5 points'
    >>> accuracy_verdict(PairedCounts(5000, 178, 42))
    'WORSE by 2.72 points [-3.32, -2.16]'
    """
    found = change_interval(counts)
    p_value = mcnemar_p(counts) if p_value is None else p_value
    verdict = change_verdict(counts.change, found.low, found.high, margin, p_value <= _LEVEL)
    if not verdict.startswith("not decided"):
        return verdict
    needed = examples_to_judge(counts, margin, _ONE_SIDE)
    if needed is None or needed <= counts.count:
        return verdict
    return f"{verdict}; about {needed} examples would tell whether it is within {100 * margin:g} points"


def change_verdict(
    change: float, low: float, high: float, margin: float = DEFAULT_MARGIN, is_tested: bool = True
) -> str:
    """A verdict on any share, 0..1, that changed by ``change`` with an interval from ``low`` to ``high``.

    ``equivalent`` where the whole interval lies within ``margin`` (0..1) of no change, ``WORSE`` or ``better`` where it
    lies on one side of no change and another test, if there is one, agrees (``is_tested``), else ``not decided``.

    >>> change_verdict(0.001, -0.002, 0.004)
    'equivalent within 0.5 points: +0.10 points [-0.20, +0.40]'
    """
    span = f"[{100 * low:+.2f}, {100 * high:+.2f}]"
    if -margin <= low and high <= margin:
        return f"equivalent within {100 * margin:g} points: {100 * change:+.2f} points {span}"
    if is_tested and (high < 0 or low > 0):
        return f"{'WORSE' if high < 0 else 'better'} by {abs(100 * change):.2f} points {span}"
    return f"not decided: {100 * change:+.2f} points {span}"
