"""How a figure of one configuration differs from that of another, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from evaltools.stats.power import examples_to_decide
from evaltools.stats.proportions import PairedCounts, change_bound


class Change(Protocol):
    """How a figure of a configuration differs from the reference's."""

    @property
    def change(self) -> float:
        """The figure minus the reference's."""

    def bound(self, confidence: float, upper: bool) -> float:
        """With this confidence the true change is not above (``upper``), or not below, this."""

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples decide whether the drop is at most ``limit`` in 80 % of cases, None where none is known.

        That it is larger has to be shown beside so many ``tests``.
        """


@dataclass(frozen=True)
class CountedChange:
    """That of a share of examples, by how many changed sides."""

    counts: PairedCounts

    @property
    def change(self) -> float:
        """The share minus the reference's."""
        return self.counts.change

    def bound(self, confidence: float, upper: bool) -> float:
        """By the flips, see :func:`~evaltools.stats.proportions.change_bound`."""
        return change_bound(self.counts, confidence, upper)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """At the same rates."""
        return examples_to_decide(self.counts, limit, confidence, tests)


@dataclass(frozen=True)
class Share:
    """``successes`` of ``count`` examples."""

    successes: int
    count: int
