"""Sampled runs: no bias and fair bets by enumeration of all draws, coverage by simulation, a course that repeats."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from msgspec.structs import replace

from benchmarks.sampled import row_of, row_of_scores
from evaltools.stats.sampled.course import Course, bounds_of_total, looks_at
from evaltools.stats.sampled.drawing import Block, draw_block, shuffled
from evaltools.stats.sampled.evidence import Look, Wealth, estimated_total
from evaltools.stats.sampled.plan import Expected, draw_examples, examples_to_decide_drawn
from evaltools.stats.sampled.strata import Numbers, Rates, Strata, strata_of

STRATA = Strata(np.array([0, 0, 1, 1, 1]), np.array([0.0, -1.0]), np.array([1.0, 0.0]), np.array([0, 1]))
VALUES = np.array([1.0, 0.0, -1.0, 0.0, -1.0])
SCORES = np.array([0.75, 0.125, -0.5, 0.0, -0.0625])
WEIGHTS = np.array([2.0, 1.0])
RATES = Rates(np.array([0.3, 0.0]), np.array([0.0, 0.4]))


def all_draws(count: int, values: Numbers = VALUES, rates: Rates = RATES) -> Iterator[tuple[float, Look]]:
    """Every order in which so many examples can be drawn, with its probability, worked out one draw at a time."""

    def more(drawn: list[int], chances: list[float]) -> Iterator[tuple[float, Look]]:
        if len(drawn) == count:
            block = Block(np.array(drawn), np.array(chances), WEIGHTS)
            yield math.prod(chances), Look(block, values[drawn], rates)
            return
        left = [example for example in range(len(VALUES)) if example not in drawn]
        of_all = sum(WEIGHTS[STRATA.of_example[example]] for example in left)
        for example in left:
            yield from more([*drawn, example], [*chances, float(WEIGHTS[STRATA.of_example[example]] / of_all)])

    return more([], [])


@pytest.mark.parametrize("values", [VALUES, SCORES])
def test_the_estimate_has_no_bias_and_is_the_sum_itself_at_the_end(values: Numbers) -> None:
    for count in (1, 3, 4):
        mean = sum(probability * estimated_total(5, [look]) for probability, look in all_draws(count, values))
        assert mean == pytest.approx(values.sum())
    assert {estimated_total(5, [look]) for _, look in all_draws(5, values)} == {values.sum()}


@pytest.mark.parametrize(("values", "size"), [(VALUES, 1.0), (SCORES, 0.25)])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_bets_against_the_true_sum_are_fair_and_those_against_a_smaller_claim_do_not_win(
    count: int, values: Numbers, size: float
) -> None:
    means = []
    for total in (values.sum(), values.sum() - 1):
        mean = 0.0
        for probability, look in all_draws(count, values, replace(RATES, size=size)):
            wealth = Wealth(STRATA, [total])
            wealth.add(look)
            mean += probability * float(np.exp(wealth.log[0]))
        means.append(mean)
    assert means[0] == pytest.approx(1.0)
    assert means[1] <= 1.0 + 1e-9


def test_examples_are_drawn_as_often_as_their_chances_say() -> None:
    none = np.zeros(0, np.int64)
    queues = ((seed, shuffled(STRATA, seed)) for seed in range(4000))
    first = np.array([draw_block(STRATA, queue, none, WEIGHTS, 2, seed).examples for seed, queue in queues])
    of_each = np.bincount(first[:, 0], minlength=5) / len(first)
    assert of_each == pytest.approx([2 / 7, 2 / 7, 1 / 7, 1 / 7, 1 / 7], abs=0.025)
    second = np.bincount(first[first[:, 0] == 0, 1], minlength=5)
    assert second / second.sum() == pytest.approx([0, 2 / 5, 1 / 5, 1 / 5, 1 / 5], abs=0.05)


def run(drawn_seed: int, seed: int, *, limit: float = 0.03) -> Course:
    drawn = draw_examples(Expected(600, 0.01, 0.01, 0.9), drawn_seed)
    course = Course(strata_of(drawn.leads, drawn.right - 1, drawn.right), limit, seed)
    while course.answer == "open":
        block = course.next_block()
        course.add(block, drawn.values[block.examples])
    return course


def test_the_same_seed_and_the_same_answers_give_the_same_course() -> None:
    assert run(1, 5).drawn.tolist() == run(1, 5).drawn.tolist()
    assert run(1, 5).drawn.tolist() != run(1, 6).drawn.tolist()


def test_no_flip_in_as_many_examples_as_the_exact_test_needs_decides() -> None:
    """Of 5000 examples 26 lost ones break the limit; all of 564 even draws miss them with a chance of 5 %."""
    course = Course(strata_of(np.zeros(5000), np.zeros(5000), np.ones(5000)), limit=0.005, seed=1)
    while course.answer == "open":
        block = course.next_block()
        course.add(block, np.zeros(len(block.examples)))
    exact = next(n for n in range(5000) if math.comb(5000 - 26, n) / math.comb(5000, n) <= 0.05)
    assert exact <= course.decided_after <= 1.2 * exact


def test_an_example_without_a_value_leaves_the_answer_to_all_examples() -> None:
    course = Course(strata_of(np.zeros(100), np.zeros(100), np.ones(100)), limit=0.5, seed=1)
    while course.answer == "open":
        block = course.next_block()
        values = np.zeros(len(block.examples))
        values[0] = math.nan
        course.add(block, values)
    assert (course.answer, course.decided_after) == ("kept", 100)


def drawn_to_the_end(values: Numbers, limit: npt.ArrayLike, seed: int) -> Course:
    count = len(values)
    course = Course(strata_of(np.zeros(count), np.zeros(count), np.ones(count)), limit, seed)
    while not course.is_whole:
        block = course.next_block()
        course.add(block, values[block.examples])
        interval = course.interval()
        assert interval.low <= interval.high
    return course


def test_a_sum_of_any_numbers_that_is_the_limit_is_known_to_keep_it_by_all_examples_alone() -> None:
    values = np.linspace(0.0, 0.5, 60)
    course = Course(strata_of(np.zeros(60), np.zeros(60), np.ones(60)), values.mean(), seed=1, whole=False)
    while not course.is_whole:
        assert course.answer == "open"
        block = course.next_block()
        course.add(block, values[block.examples])
    assert course.answer == "kept"
    assert course.interval().low == pytest.approx(course.interval().high) == pytest.approx(values.mean())


def test_without_any_value_nothing_is_decided() -> None:
    course = drawn_to_the_end(np.full(60, math.nan), 0.5, seed=1)
    assert (course.answer, course.has_answers) == ("open", False)


def test_an_early_answer_that_is_wrong_is_put_right_by_all_examples() -> None:
    """The last 5 of 40 are lost, 4 keep the limit: the seed is one that finds them late."""
    course = drawn_to_the_end(np.array([0.0] * 35 + [1.0] * 5), 0.1, seed=143)
    assert (course.answer, course.decided_after) == ("broken", 40)
    assert (course.interval().low, course.interval().high) == (0.125, 0.125)


def test_limits_of_examples_without_a_value_do_not_count() -> None:
    """Of 60 examples 54 are right with the reference; 6 of these have no answer, 2 are lost: 46 of 54 are 85.19 %."""
    own = np.array([1.0] * 54 + [0.0] * 6)
    values = np.array([math.nan] * 6 + [1.0] * 2 + [0.0] * 52)
    answers = [drawn_to_the_end(values, own - least, seed=1).answer for least in (0.86, 0.85)]
    assert answers == ["broken", "kept"]


def test_bounds_hold_what_was_drawn_and_close_at_the_end() -> None:
    course = run(3, 1)
    low, high = bounds_of_total(course.strata, course.looks)
    assert low <= draw_examples(Expected(600, 0.01, 0.01, 0.9), 3).values.sum() <= high
    blocks = [look.block for look in course.looks]
    values = [look.values for look in course.looks]
    assert looks_at(course.strata, blocks, values)[-1].rates.up.tolist() == course.looks[-1].rates.up.tolist()
    whole = next(look for _, look in all_draws(5))
    assert bounds_of_total(STRATA, [whole]) == (VALUES.sum(), VALUES.sum())


@pytest.mark.once
@pytest.mark.parametrize("leads", ["92 %", "tell nothing", "mislead"])
def test_answers_and_bounds_err_in_at_most_5_percent_of_runs_whatever_the_leads(leads: str) -> None:
    """The limit is 10 of 500 beside a true drop of 10 or 11; 7 of 50 are more than 5 % would make by chance."""
    share = {"92 %": 0.92}.get(leads, 0.1)
    for lost in (0.03, 0.032):
        row = row_of(leads, Expected(500, lost, 0.01, share), 50, 0.02, beside_even=False)
        assert max(row.wrong, row.outside / 2) <= 0.12, row


@pytest.mark.once
@pytest.mark.parametrize("leads", ["tell", "mislead", "unequal"])
def test_bounds_of_scores_that_are_any_numbers_hold_at_every_look(leads: str) -> None:
    """A limit a little above or below the mean; 7 of 50 are more than 5 % would make by chance."""
    for away in (0.002, -0.002):
        row = row_of_scores(leads, 300, 50, away, beside_even=False)
        assert max(row.wrong, row.outside / 2) <= 0.12, row


@pytest.mark.once
def test_leads_that_tell_save_examples_and_those_that_do_not_cost_few() -> None:
    informed = row_of("100 %", Expected(4000, 0.025, 0.025, 1.0), 8, 0.01)
    assert informed.informed <= 0.7 * informed.even
    others = [
        row_of(leads, Expected(3000, flips, flips, 0.1), 8, 0.01)
        for leads in ("tell nothing", "mislead")
        for flips in (0.005, 0.01)
    ]
    assert sum(row.informed for row in others) <= 1.1 * sum(row.even for row in others)


def test_the_number_that_is_named_decides() -> None:
    few = examples_to_decide_drawn(Expected(1000, 0.01, 0.01, 1.0), 0.03, trials=4)
    assert 100 < few < examples_to_decide_drawn(Expected(1000, 0.01, 0.01, 0.1), 0.01, trials=4) <= 1000
