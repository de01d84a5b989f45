"""What parts of a run, each a sampled run over its own examples, tell of all examples together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.stats.sampled.course import CONFIDENCE, Answer, bounds_of_total, looks_at
from evaltools.stats.sampled.drawing import Block
from evaltools.stats.sampled.evidence import estimated_total
from evaltools.stats.sampled.strata import Numbers, Strata

PART_CONFIDENCE: Final = 0.96
"""That of each answer of a part; what it leaves of 5 % is shared by the bounds of all parts."""
BOUNDS_CONFIDENCE: Final = 1 - (PART_CONFIDENCE - CONFIDENCE)
"""That of the bounds by which parts with different answers are decided together."""
_SMALL: Final = 1e-9


class Total(Struct, frozen=True):
    """The sum of the values of all examples: an estimate, and bounds."""

    estimate: float
    low: float
    high: float

    def within(self, low: float, high: float) -> Total:
        """The same, moved to the nearer of two bounds where it is beyond them.

        >>> Total(3.0, -2.0, 4.0).within(0.0, 2.5)
        Total(estimate=2.5, low=0.0, high=2.5)
        """
        low = min(max(self.low, low), self.high)
        high = max(low, min(self.high, high))
        return Total(min(max(self.estimate, low), high), low, high)


def total_of(
    strata: Strata, bounds: tuple[Numbers, Numbers], blocks: Sequence[Block], values: Sequence[Numbers],
    whole: bool, confidence: float = CONFIDENCE,
) -> Total:  # fmt: skip
    """The sum of values that lie within ``bounds``, each ``(N,)``, by the ``values`` ``(n,)`` of each block.

    A value that is NaN is taken for 0; the sum may have any that it can have. ``whole``: all are whole numbers.

    >>> strata = Strata(np.zeros(4, np.int64), np.zeros(1), np.ones(1), np.zeros(1, np.int64))
    >>> block = Block(np.array([2, 0]), np.array([1 / 4, 1 / 3]), np.ones(1))
    >>> total = total_of(strata, (np.zeros(4), np.ones(4)), [block], [np.array([1.0, 0.0])], whole=True)
    >>> round(total.estimate, 6), total.low, total.high
    (2.0, 1.0, 3.0)
    """
    of_groups = strata.with_bounds(*bounds)
    looks = looks_at(of_groups, blocks, [np.nan_to_num(each) for each in values])
    low, high = bounds_of_total(of_groups, looks, whole, confidence)
    lows, highs = (ends.copy() for ends in bounds)
    for block, own in zip(blocks, values, strict=True):
        answered = np.isfinite(own)
        lows[block.examples[answered]] = highs[block.examples[answered]] = own[answered]
    found = Total(estimated_total(strata.population, looks), low, high)
    return found.within(float(lows.sum()), float(highs.sum()))


def sum_of(totals: Sequence[Total]) -> Total:
    """The total of all parts, with the sums of their bounds.

    Bounds of ``n`` parts that each hold with a confidence of ``1 - error / n`` hold together, and so does their sum,
    with one of ``1 - error`` (C. E. Bonferroni 1936).
    """
    return Total(
        sum(each.estimate for each in totals), sum(each.low for each in totals), sum(each.high for each in totals)
    )


def confidence_of_each(confidence: float, parts: int) -> float:
    """That of the bounds of each of some parts, so that all hold together with ``confidence``.

    >>> round(confidence_of_each(0.95, 5), 6)
    0.99
    """
    return 1 - (1 - confidence) / parts


def answer_of_all(answers: Sequence[Answer], total: Total, most: float) -> Answer:
    """Whether the sum of all values is at most ``most``, by the answers of the parts on their own shares of it.

    ``most`` is the sum of what the parts were held against. So where it is exceeded, some part exceeds its own share:
    if all are said to keep it, that one errs, which it does in at most 4 % of runs (an intersection-union test, R. L.
    Berger 1982); it is the same with ``broken``. Nothing is asked of how large the shares are, nor that the parts are
    independent. Where the answers differ, or there are none, bounds decide that together err in at most 1 % of runs, so
    that an answer is wrong in at most 5 %. ``total`` has these bounds.

    >>> answer_of_all(["kept", "kept"], Total(1.0, 0.0, 9.0), most=4.0)
    'kept'
    >>> answer_of_all(["kept", "broken"], Total(1.0, 0.0, 9.0), most=4.0)
    'open'
    >>> answer_of_all(["kept", "broken"], Total(6.0, 4.5, 9.0), most=4.0)
    'broken'
    """
    if len(set(answers)) == 1 and answers[0] != "open":
        return answers[0]
    if total.high <= most + _SMALL:
        return "kept"
    return "broken" if total.low > most + _SMALL else "open"
