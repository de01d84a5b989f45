"""How many examples a sampled run takes: simulated, for flips that are as many, and lie as the user says."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.stats.power import POWER
from evaltools.stats.sampled.course import Answer, Course
from evaltools.stats.sampled.strata import Numbers, strata_of

TRIALS: Final = 40
_RIGHT: Final = 0.75
_TENTH: Final = 0.1


class Expected(Struct, frozen=True):
    """What is expected of ``population`` examples, as shares of all of them, 0..1.

    ``lost`` are right with the reference alone, ``gained`` with the other alone. ``in_lowest_tenth`` is the share of
    both that lies in the tenth of the examples on which the reference is least sure; 0.1 where its leads tell
    nothing.
    """

    population: int
    lost: float
    gained: float
    in_lowest_tenth: float = _TENTH


class Drawn(Struct, frozen=True):
    """Examples as they may be, each ``(N,)``: the reference's lead, whether it is right (1 or 0), and the value.

    The value is 1 for a lost example, -1 for one that is gained.
    """

    leads: Numbers
    right: Numbers
    values: Numbers


def draw_examples(expected: Expected, seed: int) -> Drawn:
    """Examples with exactly the expected numbers of flips, of which three quarters are right with the reference.

    >>> drawn = draw_examples(Expected(1000, lost=0.02, gained=0.01, in_lowest_tenth=0.9), seed=1)
    >>> int((drawn.values > 0).sum()), int((drawn.values < 0).sum())
    (20, 10)
    """
    chance = np.random.default_rng(seed)
    count = expected.population
    leads = (chance.permutation(count) + 0.5) / count
    right = (chance.random(count) < _RIGHT).astype(np.float64)
    share = expected.in_lowest_tenth
    weights = np.where(leads < _TENTH, share / _TENTH, (1 - share) / (1 - _TENTH))
    values = np.zeros(count)
    for sign, rate, members in ((1.0, expected.lost, right), (-1.0, expected.gained, 1 - right)):
        of_members = weights * members
        flips = min(round(rate * count), int((of_members > 0).sum()))
        if flips:
            values[chance.choice(count, flips, replace=False, p=of_members / of_members.sum())] = sign
    return Drawn(leads, right, values)


def run_course(drawn: Drawn, limit: float, seed: int, even: bool = False) -> tuple[int, Answer]:
    """After how many examples it is known whether the drop is at most ``limit``, and the answer."""
    course = Course(strata_of(drawn.leads, drawn.right - 1, drawn.right), limit, seed, even)
    while course.answer == "open":
        block = course.next_block()
        course.add(block, drawn.values[block.examples])
    return course.decided_after, course.answer


def examples_to_decide_drawn(expected: Expected, limit: float, trials: int = TRIALS, power: float = POWER) -> int:
    """With how many examples a sampled run has decided whether the drop is at most ``limit``, in 80 % of cases.

    >>> examples_to_decide_drawn(Expected(400, 0.0, 0.0), limit=0.02, trials=2) < 200
    True
    """
    used = [run_course(draw_examples(expected, trial), limit, trial)[0] for trial in range(trials)]
    return int(np.quantile(used, power, method="inverted_cdf"))
