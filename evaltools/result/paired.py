"""The part of a result about one configuration held against another on the same examples."""

from __future__ import annotations

from dataclasses import dataclass, field

from evaltools.metrics.agreement import Agreement
from evaltools.stats.interval import Interval


@dataclass(frozen=True)
class TopKChange:
    """Top-k accuracy of ``other`` minus that of ``baseline``, with its 95 % interval (Tango's score).

    ``lost``: only the baseline has the right label among its k best; ``gained``: only the other has. ``p_value`` is
    that of McNemar's exact test, ``p_value_holm`` the same where several configurations are held against one baseline.
    """

    k: int
    lost: int
    gained: int
    change: float
    interval: Interval
    p_value: float
    p_value_holm: float


@dataclass(frozen=True)
class Comparison:
    """``other`` held against ``baseline`` on the same examples.

    ``verdict`` is in words, on top-1; ``topk`` has Top-1 first.
    """

    baseline: str
    other: str
    agreement: Agreement
    verdict: str = ""
    topk: list[TopKChange] = field(default_factory=list)


@dataclass(frozen=True)
class LatencyComparison:
    """How many times as long as ``baseline`` the ``other`` takes: the median of the ratios of ``pairs`` examples.

    ``interval`` is the 95 % interval (paired bootstrap), null for a single pair.
    """

    baseline: str
    other: str
    pairs: int
    ratio: float
    interval: Interval | None
