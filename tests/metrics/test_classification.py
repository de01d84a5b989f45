"""Top-K accuracy: ties, duplicate labels, odd scores; agreement and flips against a count by hand."""

from __future__ import annotations

import numpy as np
import pytest

from evaltools.metrics.classification import best_classes, rank_of_label
from tests.results import shares_of


def test_ties_keep_the_lower_class() -> None:
    assert best_classes(np.array([5, 7, 7, 5, 7], np.uint8), 4).tolist() == [1, 2, 4, 0]


def test_nan_ranks_last_and_infinity_first() -> None:
    scores = np.array([np.nan, 1.0, np.inf, -np.inf], np.float32)
    assert best_classes(scores, 4).tolist() == [2, 1, 3, 0]


def test_few_of_many_scores_are_those_that_come_first_of_all() -> None:
    generator = np.random.default_rng(2)
    for count in range(1, 200):
        scores = generator.choice([1.0, 2.0, np.nan, np.inf, -np.inf], count).astype(np.float32)
        everything = best_classes(scores, count).tolist()
        assert [best_classes(scores, k).tolist() for k in (1, 3, 10)] == [everything[:k] for k in (1, 3, 10)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "int16", "int8", "uint8"])
def test_order_equals_a_plain_stable_sort(dtype: str) -> None:
    scores = np.random.default_rng(1).integers(0, 100, 500).astype(dtype)
    expected = sorted(range(500), key=lambda index: -float(scores[index]))[:10]
    assert best_classes(scores, 10).tolist() == expected


def test_a_label_of_two_classes_matches_both() -> None:
    labels = ["crane", "dog", "crane"]
    assert rank_of_label([2, 1, 0], labels, "crane") == 0
    assert rank_of_label([1, 0, 2], labels, "crane") == 1


def test_a_class_without_label_matches_nothing() -> None:
    assert rank_of_label([0], [None], "None") is None


def test_accuracies_are_shares_of_the_examples() -> None:
    ranks = [0] * 57 + [1] * 10 + [None] * 31
    accuracies = shares_of(ranks, 2)
    assert accuracies == [57 / 98, 67 / 98]
    assert f"{accuracies[0]:g}" == "0.581633"


def test_int8_and_uint8_extremes_are_ordered_as_numbers() -> None:
    assert best_classes(np.array([-128, 127, 0], np.int8), 3).tolist() == [1, 2, 0]
    assert best_classes(np.array([0, 255, 128], np.uint8), 3).tolist() == [1, 2, 0]
