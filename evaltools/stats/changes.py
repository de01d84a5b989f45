"""The change of a figure from one configuration to another, and how sure it is."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from evaltools.stats.power import examples_to_decide
from evaltools.stats.proportions import PairedCounts, change_bound


class Change(Protocol):
    """The change of a figure from the reference to another configuration."""

    @property
    def change(self) -> float:
        """The figure minus the reference's."""

    def bound(self, confidence: float, upper: bool) -> float:
        """A one-sided bound: with this confidence the true change is not above (``upper``), or not below, it."""

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples decide whether the drop is at most ``limit`` in 80 % of cases, None where none is known.

        That it is larger has to be shown beside so many ``tests``.
        """


class CountedChange(Struct, frozen=True):
    """The change of a share of examples, from the number of examples that changed sides."""

    counts: PairedCounts

    @property
    def change(self) -> float:
        """The share minus the reference's."""
        return self.counts.change

    def bound(self, confidence: float, upper: bool) -> float:
        """By the flips, see :func:`~evaltools.stats.proportions.change_bound`."""
        return change_bound(self.counts, confidence, upper)

    def examples_to_decide(self, limit: float, confidence: float, tests: int = 1) -> int | None:
        """How many examples with the same rates decide whether the drop is at most ``limit``."""
        return examples_to_decide(self.counts, limit, confidence, tests)


class Share(Struct, frozen=True):
    """``successes`` of ``count`` examples."""

    successes: int
    count: int
