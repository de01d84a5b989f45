"""The random order of examples: the same one for a seed, and fair."""

from __future__ import annotations

from collections import Counter

import pytest

from evaltools.datasets.order import chosen, places


def test_the_native_order_is_that_of_the_list() -> None:
    assert chosen("abcd") == ["a", "b", "c", "d"]
    assert chosen("abcd", 2) == ["a", "b"]
    assert chosen("abcd", 9) == ["a", "b", "c", "d"]


def test_a_seed_stands_for_one_order_for_ever() -> None:
    """Results say which seed they are of: it must be that of the same examples in every later version."""
    assert places(10, 0, "random", 1) == [7, 4, 8, 6, 5, 2, 3, 0, 9, 1]
    assert places(10, 0, "random", 2) != places(10, 0, "random", 1)
    assert places(10, 0, "random", -5) == places(10, 0, "random", -5)


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_all_examples_are_there_once_and_a_smaller_sample_is_the_beginning_of_a_larger_one(seed: int) -> None:
    whole = places(500, 0, "random", seed)
    assert sorted(whole) == [*range(500)]
    assert places(500, 37, "random", seed) == whole[:37]


def test_every_example_is_as_likely_in_a_sample() -> None:
    """Of 4000 samples of 5 of 20 each is in a quarter; three and a half standard deviations are 96."""
    counts = Counter(place for seed in range(4000) for place in places(20, 5, "random", seed))
    assert len(counts) == 20
    assert all(abs(count - 1000) < 96 for count in counts.values())
