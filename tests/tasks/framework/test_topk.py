"""How sure accuracies are: which comparisons are corrected together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from evaltools.errors import TaskError
from evaltools.metrics.classification import Agreement, ClassificationMetrics, ComparedAnswers, TopKAccuracy
from evaltools.metrics.proportions import PairedCounts, wilson_interval
from evaltools.tasks.framework.answers import ranked
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.tensors import Quantisation
from evaltools.tasks.framework.topk import Changes, classified, topk_comparisons, topk_verdicts
from evaltools.tasks.framework.topk_result import ChangedAnswer, FirstAnswer


def compared(count: int, lost: int, gained: int) -> ComparedAnswers:
    flips = PairedCounts(count, lost, gained)
    return ComparedAnswers(Agreement(count, count - lost - gained, lost, gained), (flips, PairedCounts(count, 0, 0)))


def test_holm_corrects_all_that_are_compared_with_one_baseline() -> None:
    pairs = {
        ("reference", "a"): compared(100, 9, 1),
        ("reference", "b"): compared(100, 4, 4),
        ("a", "b"): compared(100, 0, 8),
    }
    found = {(entry.baseline, entry.other): entry.topk[0] for entry in topk_comparisons(pairs)}
    alone = {pair: stats.binomtest(lost, total).pvalue for pair, lost, total in
             ((("reference", "a"), 9, 10), (("reference", "b"), 4, 8), (("a", "b"), 0, 8))}  # fmt: skip
    assert {pair: entry.p_value for pair, entry in found.items()} == pytest.approx(alone)
    assert found["reference", "a"].p_value_holm == pytest.approx(2 * alone["reference", "a"])
    assert found["reference", "b"].p_value_holm == 1.0
    assert found["a", "b"].p_value_holm == pytest.approx(alone["a", "b"]), "another family"


def test_without_a_common_example_there_is_nothing_to_test() -> None:
    (found,) = topk_comparisons({("reference", "a"): compared(0, 0, 0)})
    assert found.topk == []
    assert topk_verdicts([found], 0.005) == {}


def test_every_k_has_its_interval() -> None:
    metrics = ClassificationMetrics(TopKAccuracy(8, (0.5, 0.75)), 0, 2)
    assert classified(metrics).topk_intervals == [wilson_interval(4, 8), wilson_interval(6, 8)]
    assert classified(replace(metrics, topk=TopKAccuracy(0, ()))).topk_intervals == []


def test_verdicts_are_on_top_1_by_the_corrected_p() -> None:
    """p 0.021, and 0.064 where two others are compared with the same baseline."""
    pairs = {("reference", name): compared(1000, 13, 3) for name in "abc"}
    found = topk_verdicts(topk_comparisons(pairs), 0.005)
    alone = topk_verdicts(topk_comparisons({("reference", "a"): compared(1000, 13, 3)}), 0.005)
    assert [(entry.kind, entry.metric, entry.against) for entry in alone["a"]] == [("worse", "top1", "reference")]
    assert [entry.kind for verdicts in found.values() for entry in verdicts] == ["not decided"] * 3


def test_answers_that_are_the_same_bit_for_bit_are_said_first() -> None:
    (same,) = topk_comparisons({("reference", "a"): compared(200, 0, 0)})
    words = [topk_verdicts([replace(same, identical=identical)], 0.005)["a"][0].why for identical in (200, 199)]
    assert [sentence.partition(":")[0] for sentence in words] == ["identical", "unchanged"]
    assert all("95 % confident: fewer than 1.5 % of such examples" in sentence for sentence in words)
    (many,) = topk_comparisons({("reference", "a"): compared(5000, 0, 0)})
    assert topk_verdicts([many], 0.005)["a"][0].why.startswith("equivalent within 0.5 points")


def observed(classes: tuple[int, ...], scores: tuple[float, ...], rank: int) -> ObservedScores[Any]:
    """An answer whose scores are real numbers twice as large, and 1 more."""
    return ObservedScores(whole=np.array([rank, 0, (scores[0] - 1) / 2, *classes, *scores]))


def test_ties_are_distinguished_from_changed_answers() -> None:
    first = observed((4, 7, 1), (9.0, 9.0, 2.0), 0)
    tie, other = observed((7, 4, 1), (9.0, 9.0, 2.0), 1), observed((1, 4, 7), (9.0, 8.0, 2.0), 1)
    again, unknown = observed((4, 1, 7), (8.0, 8.0, 2.0), 0), observed((1, 4, 7), (math.nan,) * 3, 1)
    labels = [None, "one", *("",) * 2, "four", *("",) * 2, None]
    changes = Changes(3, labels, [f"right {n}" for n in range(5)], [f"{n}.png" for n in range(5)], most=3)
    pairs = [(first, first), (first, tie), (first, other), (other, again), (first, unknown)]
    for number, pair in enumerate(pairs):
        changes.add(number, *pair)
    assert (changes.identical, changes.ties) == (1, 2)
    assert changes.kept == [
        ChangedAnswer(
            "1.png",
            "right 1",
            FirstAnswer("four", 4.0, "class 7"),
            FirstAnswer("class 7", 4.0, "four"),
            "lost",
            tie=True,
        ),
        ChangedAnswer("2.png", "right 2", FirstAnswer("four", 4.0), FirstAnswer("one", 4.0), "lost", tie=False),
        ChangedAnswer("3.png", "right 3", FirstAnswer("one", 4.0), FirstAnswer("four", 3.5, "one"), "gained", tie=True),
    ]
    without_numbers = Changes(3, labels, ["right 0"], ["0.png"])
    without_numbers.add(0, first, unknown)
    assert without_numbers.kept[0].other == FirstAnswer("one", None)


def test_scores_are_ranked_with_what_limits_and_pages_need() -> None:
    row = ranked(np.array([3, 9, 9, 1], np.uint8), ["cat", "dog", "owl", "dog"], "owl", 3, Quantisation(0.5, 1))
    assert row.tolist() == [1, 0, 4.0, 1, 2, 0, 9, 9, 3]
    row = ranked(np.array([np.nan, 2, np.inf], np.float32), ["cat", "dog", None], "cow", 2)
    assert row.tolist() == [-1, 2, np.inf, 2, 1, np.inf, 2]
    with pytest.raises(TaskError, match="3 scores, and there are 2 labels"):
        ranked(np.zeros(3), ["cat", "dog"], "cat", 2)
