"""How a figure of one configuration differs from that of another, and how sure that is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evaltools.stats.power import examples_to_decide
from evaltools.stats.proportions import PairedCounts, change_bound
from evaltools.stats.resampled import drawn_bound


class Change(Protocol):
    """How a figure of a configuration differs from the reference's."""

    @property
    def change(self) -> float:
        """The figure minus the reference's."""

    def bound(self, confidence: float, upper: bool) -> float:
        """With this confidence the true change is not above (``upper``), or not below, this."""

    def examples_to_decide(self, limit: float, confidence: float) -> int | None:
        """How many examples would decide whether the drop is at most ``limit``, None where that is not known."""


@dataclass(frozen=True)
class CountedChange:
    """That of a share of examples, by how many changed sides."""

    counts: PairedCounts

    @property
    def change(self) -> float:
        """The share minus the reference's."""
        return self.counts.change

    def bound(self, confidence: float, upper: bool) -> float:
        """Tango's, see :func:`~evaltools.stats.proportions.change_bound`."""
        return change_bound(self.counts, confidence, upper)

    def examples_to_decide(self, limit: float, confidence: float) -> int | None:
        """At the same rates."""
        return examples_to_decide(self.counts, limit, confidence)


@dataclass(frozen=True)
class ResampledChange:
    """That of any figure, by its differences over resamples of ``examples`` examples, the same for both sides."""

    change: float
    differences: Sequence[float]
    examples: int

    def bound(self, confidence: float, upper: bool) -> float:
        """See :func:`~evaltools.stats.resampled.drawn_bound`; NaN for too few examples."""
        return drawn_bound(self.differences, self.examples, confidence, upper)

    def examples_to_decide(self, limit: float, confidence: float) -> int | None:
        """With an interval that shrinks with the square root of the number of examples."""
        distance = abs(self.change + limit)
        is_kept_so_far = self.change > -limit
        reach = abs(self.change - self.bound(confidence, upper=not is_kept_so_far))
        if distance == 0 or not reach > 0:
            return None
        return int(np.ceil(self.examples * max(1.0, reach / distance) ** 2))


@dataclass(frozen=True)
class Share:
    """``successes`` of ``count`` examples."""

    successes: int
    count: int
