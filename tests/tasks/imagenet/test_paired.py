"""How sure accuracies are: which comparisons are corrected together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scipy import stats

from evaltools.metrics.agreement import Agreement, ComparedAnswers
from evaltools.metrics.classification import ClassificationMetrics
from evaltools.metrics.topk import TopKAccuracy
from evaltools.stats.proportions import PairedCounts, wilson_interval
from evaltools.tasks.imagenet.paired import classified, topk_comparisons, topk_verdicts


def compared(count: int, lost: int, gained: int) -> ComparedAnswers:
    flips = PairedCounts(count, lost, gained)
    return ComparedAnswers(Agreement(count, count - lost - gained, lost, gained), (flips, PairedCounts(count, 0, 0)))


def test_holm_corrects_all_that_are_held_against_one_baseline() -> None:
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
    """p 0.021, and 0.064 where two others are held against the same baseline."""
    pairs = {("reference", name): compared(1000, 13, 3) for name in "abc"}
    found = topk_verdicts(topk_comparisons(pairs), 0.005)
    alone = topk_verdicts(topk_comparisons({("reference", "a"): compared(1000, 13, 3)}), 0.005)
    assert [(entry.kind, entry.metric, entry.against) for entry in alone["a"]] == [("worse", "top1", "reference")]
    assert [entry.kind for verdicts in found.values() for entry in verdicts] == ["not decided"] * 3
