"""Agreement and flips against a count by hand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from evaltools.metrics.classification import AnswerPairs


class Answer(NamedTuple):
    """An answer that was made up."""

    top1: int
    rank: int | None


def test_flips_of_every_k_are_those_counted_one_by_one() -> None:
    generator = np.random.default_rng(4)
    ranks = [[None if rank == 5 else rank for rank in generator.integers(0, 6, 300).tolist()] for _ in range(2)]
    tops = generator.integers(0, 3, (2, 300)).tolist()
    pairs = [
        (Answer(first, own), Answer(second, other)) for first, second, own, other in zip(*tops, *ranks, strict=True)
    ]
    halves = [AnswerPairs(most=5), AnswerPairs(most=5)]
    for number, pair in enumerate(pairs):
        halves[number % 2].add(*pair)
    halves[0].merge(halves[1])
    found = halves[0].result()
    for k, counts in enumerate(found.topk, 1):
        right = [tuple(answer.rank is not None and answer.rank < k for answer in pair) for pair in pairs]
        assert (counts.count, counts.lost, counts.gained) == (
            300,
            right.count((True, False)),
            right.count((False, True)),
        )
    agreement = found.agreement
    assert agreement.same_top1 == sum(first.top1 == second.top1 for first, second in pairs)
    assert (agreement.right_to_wrong, agreement.wrong_to_right) == (found.topk[0].lost, found.topk[0].gained)


def test_without_examples() -> None:
    found = AnswerPairs(most=2).result()
    assert (found.agreement.share, [counts.count for counts in found.topk]) == (None, [0, 0])
