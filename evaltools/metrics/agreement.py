"""Counts how far two configurations agree on the same examples."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from evaltools.stats.proportions import PairedCounts


class Agreement(Struct, frozen=True):
    """Agreement over the examples that both configurations finished.

    ``same_top1``: both put the same class first. ``right_to_wrong``: the first is right (top-1) and the second wrong;
    ``wrong_to_right``: the other way round.
    """

    example_count: int
    same_top1: int
    right_to_wrong: int
    wrong_to_right: int

    @property
    def share(self) -> float | None:
        """Share of examples with the same top-1 class, 0..1; None with no example."""
        return self.same_top1 / self.example_count if self.example_count else None


class ClassifierAnswer(Protocol):
    """The answer of one configuration to one example of a classification."""

    @property
    def top1(self) -> int:
        """The class that the configuration put first."""

    @property
    def rank(self) -> int | None:
        """The place of the right label, from 0; None where it is not among the best classes."""


class ComparedAnswers(Struct, frozen=True):
    """Agreement of two configurations; ``topk[k - 1]`` has the examples that changed sides in Top-k."""

    agreement: Agreement
    topk: tuple[PairedCounts, ...]


class AnswerPairs:
    """Counts the agreement of two configurations, and the changes of Top-1 to Top-``most``."""

    def __init__(self, most: int) -> None:
        self._count = self._same = 0
        self._lost, self._gained = [0] * most, [0] * most

    def add(self, baseline: ClassifierAnswer, other: ClassifierAnswer) -> None:
        """Add both answers to one example."""
        self._count += 1
        self._same += baseline.top1 == other.top1
        most = len(self._lost)
        own, theirs = (most if answer.rank is None else answer.rank for answer in (baseline, other))
        flipped = self._lost if own < theirs else self._gained
        for rank in range(min(own, theirs), max(own, theirs)):
            flipped[rank] += 1

    def merge(self, more: AnswerPairs) -> None:
        """Add the counts of other examples."""
        self._count += more._count
        self._same += more._same
        self._lost, self._gained = (
            [own + theirs for own, theirs in zip(*both, strict=True)]
            for both in ((self._lost, more._lost), (self._gained, more._gained))
        )

    def result(self) -> ComparedAnswers:
        """The counts over all examples."""
        agreement = Agreement(self._count, self._same, sum(self._lost[:1]), sum(self._gained[:1]))
        flips = zip(self._lost, self._gained, strict=True)
        return ComparedAnswers(agreement, tuple(PairedCounts(self._count, *pair) for pair in flips))
