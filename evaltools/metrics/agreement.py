"""How two configurations answer the same examples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
    """One configuration's answer to one example: the class it put first, and whether that is right."""

    top1: int
    right: bool


def compare_answers(pairs: Iterable[tuple[Answer, Answer]]) -> Agreement:
    """Count agreement and flips over ``(baseline, other)`` answers.

    >>> compare_answers([(Answer(3, True), Answer(3, True)), (Answer(3, True), Answer(5, False))])
    Agreement(example_count=2, same_top1=1, right_to_wrong=1, wrong_to_right=0)
    """
    count = same = lost = gained = 0
    for first, second in pairs:
        count += 1
        same += first.top1 == second.top1
        lost += first.right and not second.right
        gained += second.right and not first.right
    return Agreement(example_count=count, same_top1=same, right_to_wrong=lost, wrong_to_right=gained)
