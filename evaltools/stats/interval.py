"""A confidence interval."""

from __future__ import annotations

from msgspec import Struct


class Interval(Struct, frozen=True):
    """From ``low`` to ``high``; ``confidence`` is the share of such intervals, 0..1, that hold the true value."""

    low: float
    high: float
    confidence: float = 0.95
