"""Parts of a run over drawn examples: their random numbers, and what their answers and bounds tell of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec import Struct

from evaltools.stats.sampled.course import CONFIDENCE, Answer, Course
from evaltools.stats.sampled.drawing import Block, draw_block, shuffled
from evaltools.stats.sampled.parts import (
    BOUNDS_CONFIDENCE,
    PART_CONFIDENCE,
    Total,
    answer_of_all,
    confidence_of_each,
    sum_of,
    total_of,
)
from evaltools.stats.sampled.strata import Numbers, Strata, strata_of

SIZE = 120
TRIALS = 60


def one_group(size: int) -> Strata:
    return strata_of(np.zeros(size), np.zeros(size), np.ones(size))


def test_a_whole_run_draws_by_its_seed_alone_and_each_part_otherwise() -> None:
    strata = Strata(np.zeros(50, np.int64), np.zeros(1), np.ones(1), np.zeros(1, np.int64))
    expected = np.argsort(np.random.default_rng((1, 7)).random(50))
    assert shuffled(strata, 7).tolist() == expected.tolist()
    orders = {tuple(shuffled(strata, 7, part).tolist()) for part in range(5)}
    assert len(orders) == 5
    wide = Strata(np.arange(50), np.zeros(50), np.ones(50), np.zeros(50, np.int64))
    nothing = np.zeros(0, np.int64)
    blocks = {tuple(draw_block(wide, np.arange(50), nothing, np.ones(50), 20, 7, part).examples) for part in range(5)}
    assert len(blocks) == 5


class Part(Struct, frozen=True):
    """Values of examples, each from 0 to its weight."""

    values: Numbers
    weights: Numbers

    def run(self, limit: float, seed: int, number: int) -> tuple[Answer, Total, Total]:
        """Its answer on a mean of at most ``limit`` per weight, and its total with bounds of 1 % and of 5 % of 3 parts.

        It stops when it knows the answer.
        """
        whole = bool((self.weights == 1).all())
        strata = strata_of(np.zeros(len(self.values)), np.zeros(len(self.values)), self.weights)
        course = Course(strata, limit * self.weights, seed, whole=whole, part=number, confidence=PART_CONFIDENCE)
        blocks: list[Block] = []
        while course.answer == "open":
            blocks.append(course.next_block())
            course.add(blocks[-1], self.values[blocks[-1].examples])
        values = [self.values[block.examples] for block in blocks]
        bounds = (np.zeros(len(self.values)), self.weights)
        sure, usual = (
            total_of(strata, bounds, blocks, values, whole, confidence_of_each(confidence, 3))
            for confidence in (BOUNDS_CONFIDENCE, CONFIDENCE)
        )
        return course.answer, sure, usual


def flips(count: int, chance: np.random.Generator, weight: float = 1.0) -> Part:
    """Examples of a weight, so many of which have it as their value."""
    return Part(weight * chance.permutation(np.arange(SIZE) < count), np.full(SIZE, weight))


def parts_of(counts: Sequence[int], weights: Sequence[float], seed: int) -> list[Part]:
    chance = np.random.default_rng(seed)
    return [flips(count, chance, weight) for count, weight in zip(counts, weights, strict=True)]


@pytest.mark.once
@pytest.mark.parametrize(
    ("counts", "weights", "truth"),
    [
        pytest.param((7, 6, 6), (1.0, 1.0, 1.0), "broken", id="one part is just over the limit"),
        pytest.param((12, 0, 7), (1.0, 1.0, 1.0), "broken", id="one part is far over it"),
        pytest.param((6, 6, 6), (1.0, 1.0, 1.0), "kept", id="all are just at the limit"),
        pytest.param((1, 9, 8), (1.0, 1.0, 1.0), "kept", id="two parts are over the limit, all together are not"),
        pytest.param((9, 3, 0), (2.5, 0.4, 0.1), "broken", id="a part that counts much is over it"),
        pytest.param((5, 9, 14), (2.5, 0.4, 0.1), "kept", id="parts that count little are over it"),
    ],
)
def test_a_wrong_answer_is_rarer_than_5_percent_and_so_is_a_total_beyond_either_bound(
    counts: Sequence[int], weights: Sequence[float], truth: Answer
) -> None:
    """The limit is a mean of 6 of 120, 5 % of what all examples count; of these totals it is known whether they are."""
    total = sum(count * weight for count, weight in zip(counts, weights, strict=True))
    most = 0.05 * SIZE * sum(weights)
    assert ("kept" if total <= most + 1e-9 else "broken") == truth
    wrong = below = above = 0
    for seed in range(TRIALS):
        found = [part.run(0.05, seed, number + 1) for number, part in enumerate(parts_of(counts, weights, 1000 + seed))]
        answer = answer_of_all([each[0] for each in found], sum_of([each[1] for each in found]), most)
        wrong += answer not in (truth, "open")
        bounds = sum_of([each[2] for each in found])
        below += total < bounds.low - 1e-6
        above += total > bounds.high + 1e-6
    assert max(wrong, below, above) <= 0.05 * TRIALS


def test_bounds_decide_where_the_parts_differ() -> None:
    assert answer_of_all(["kept", "broken"], Total(1.0, 0.0, 4.0), most=4.0) == "kept"
    assert answer_of_all(["kept", "broken"], Total(5.0, 4.5, 8.0), most=4.0) == "broken"
    assert answer_of_all(["kept", "open"], Total(4.0, 3.0, 8.0), most=4.0) == "open"
    assert answer_of_all(["open", "open"], Total(1.0, 0.0, 2.0), most=4.0) == "kept"
    assert answer_of_all([], Total(1.0, 0.0, 2.0), most=4.0) == "kept"


def test_the_total_of_parts_that_ran_all_is_the_sum() -> None:
    block = Block(np.arange(4), 1 / np.arange(4, 0, -1.0), np.ones(1))
    bounds = (np.zeros(4), np.ones(4))
    values = (np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 1.0, 1.0]))
    found = [total_of(one_group(4), bounds, [block], [own], whole=True) for own in values]
    assert sum_of(found) == Total(5.0, 5.0, 5.0)
