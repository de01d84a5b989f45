"""How two configurations answer the same examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evaltools.stats.proportions import PairedCounts


@dataclass(frozen=True)
class Agreement:
    """Paired answers over the examples that both configurations finished.

    ``same_top1``: both put the same class first. ``right_to_wrong``: the first is right (top-1), the second wrong;
    ``wrong_to_right`` the other way round.
    """

    example_count: int
    same_top1: int
    right_to_wrong: int
    wrong_to_right: int

    @property
    def share(self) -> float | None:
        """Share of examples with the same top-1 class, 0..1; None with no example."""
        return self.same_top1 / self.example_count if self.example_count else None


@dataclass(frozen=True)
class Answer:
    """One configuration's answer to one example: the class it put first, and the place of the right label.

    ``rank`` counts from 0 and is None where the right label is not among the best.
    """

    top1: int
    rank: int | None


@dataclass(frozen=True)
class ComparedAnswers:
    """What two configurations' answers have in common; ``topk[k - 1]`` has the flips of Top-k."""

    agreement: Agreement
    topk: tuple[PairedCounts, ...]


def compare_answers(pairs: Iterable[tuple[Answer, Answer]], most: int) -> ComparedAnswers:
    """Count agreement and flips over ``(baseline, other)`` answers, for Top-1 to Top-``most``.

    >>> found = compare_answers([(Answer(3, 0), Answer(3, 0)), (Answer(3, 0), Answer(5, 1))], most=2)
    >>> found.agreement
    Agreement(example_count=2, same_top1=1, right_to_wrong=1, wrong_to_right=0)
    >>> [(counts.lost, counts.gained) for counts in found.topk]
    [(1, 0), (0, 0)]
    """
    count = same = 0
    lost, gained = [0] * most, [0] * most
    for first, second in pairs:
        count += 1
        same += first.top1 == second.top1
        own, other = (most if answer.rank is None else answer.rank for answer in (first, second))
        flipped = lost if own < other else gained
        for rank in range(min(own, other), max(own, other)):
            flipped[rank] += 1
    agreement = Agreement(count, same, sum(lost[:1]), sum(gained[:1]))
    return ComparedAnswers(agreement, tuple(PairedCounts(count, *flips) for flips in zip(lost, gained, strict=True)))
