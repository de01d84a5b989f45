"""Draws blocks of examples without replacement, with known chances that lean to where changes are expected."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from evaltools.stats.sampled.strata import Ints, Numbers, Rates, Strata

FEWEST_IN_BLOCK: Final = 16
_SHARE_OF_DRAWN: Final = 1 / 16
_OF_QUEUE: Final = 1
_OF_BLOCKS: Final = 2
"""What random numbers are for, so that those of one seed do not depend on each other."""
EVEN: Final = (1.0, 0.8, 0.6, 0.4, 0.25, 0.15)
"""The shares of the chance that may be spread evenly; the rest leans to where changes are expected."""


class Block(Struct, frozen=True):
    """Examples in the order in which they were drawn, each ``(n,)``.

    ``chances`` are those with which each was drawn from the examples that were left then.
    ``weights`` ``(K,)`` are those of an example of each group.
    """

    examples: Ints
    chances: Numbers
    weights: Numbers


def leaning_weights(rates: Rates, left: Ints, even: float, reach: Numbers) -> Numbers:
    """The weight of an example of each group: ``even`` by reach alone, and the rest as the root of the expected square.

    Of all chances those of that root give the least variance (J. Neyman 1934). ``left`` are the examples of each group
    that were not drawn yet, ``reach`` the largest values that one can have; of equal ones the mean weight is 1.

    >>> rates = Rates(np.array([0.04, 0.01]), np.array([0.0, 0.0]))
    >>> leaning_weights(rates, np.array([50, 50]), 0.4, np.ones(2)).round(2).tolist()
    [1.2, 0.8]
    """
    spread = np.sqrt((rates.up + rates.down) / reach)
    mean = float((left * spread).sum() / max(1, int(left.sum())))
    lean: Numbers = reach * (even + (1 - even) * (spread / mean if mean > 0 else np.ones(len(spread))))
    return lean


def next_size(drawn: int, population: int) -> int:
    """How many examples are drawn at once after ``drawn`` ones: 16, later a sixteenth of those, and never too many.

    >>> next_size(0, 1000), next_size(640, 1000), next_size(990, 1000)
    (16, 40, 10)
    """
    return min(max(FEWEST_IN_BLOCK, int(drawn * _SHARE_OF_DRAWN)), population - drawn)


def shuffled(strata: Strata, seed: int, part: int = 0) -> Ints:
    """All examples, group by group, those of a group in random order; ``(N,)``.

    ``part`` is the number of a part of a run, from 1, whose random numbers are its own; 0: a whole run.

    >>> shuffled(Strata(np.array([1, 0, 1]), np.zeros(2), np.ones(2), np.array([0, 0])), seed=1).tolist()
    [1, 0, 2]
    """
    queue: Ints = np.lexsort((_numbers((_OF_QUEUE, seed), part).random(strata.population), strata.of_example))
    return queue


def _numbers(purpose: tuple[int, ...], part: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(purpose, spawn_key=(part,) if part else ()))


def draw_block(
    strata: Strata, queue: Ints, drawn: Ints, weights: Numbers, size: int, seed: int, part: int = 0
) -> Block:
    """Draw ``size`` of the examples that are not among ``drawn``, one after the other.

    A group is drawn by the sum of the weights of its examples that are left; then its next one in the ``queue`` of
    :func:`shuffled` examples comes, so that all of a group have the same chance. The same seed, ``part`` and ``drawn``
    give the same block.

    >>> strata = Strata(np.array([0, 0, 1, 1]), np.zeros(2), np.ones(2), np.array([0, 0]))
    >>> queue = shuffled(strata, seed=1)
    >>> block = draw_block(strata, queue, queue[:1], np.array([1.0, 2.0]), 3, seed=1)
    >>> bool((np.sort(block.examples) == np.sort(queue[1:])).all()), float(block.chances[-1])
    (True, 1.0)
    """
    chance = _numbers((_OF_BLOCKS, seed, len(drawn)), part)
    gone = strata.count(drawn)
    left = strata.sizes - gone
    following = np.cumsum(strata.sizes) - strata.sizes + gone
    examples, chances = np.zeros(size, np.int64), np.zeros(size)
    for place, number in enumerate(chance.random(size).tolist()):
        sums = weights * left
        ends = np.cumsum(sums)
        group = min(int(np.searchsorted(ends, number * ends[-1], side="right")), int(np.flatnonzero(left)[-1]))
        chances[place] = weights[group] / ends[-1]
        examples[place] = queue[following[group]]
        following[group] += 1
        left[group] -= 1
    return Block(examples, chances, weights)
