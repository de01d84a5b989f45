"""How sure accuracies are: which comparisons are corrected together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from evaltools.engine.ledger import PassOutcome
from evaltools.engine.steps import Record
from evaltools.errors import DataError, TaskError
from evaltools.metrics.proportions import mcnemar_p, wilson_interval
from evaltools.result.facts import RuntimeUsed
from evaltools.result.result import Row
from evaltools.result.section import Gallery
from evaltools.tasks.framework.answers import Answers, ranked
from evaltools.tasks.framework.collecting import RecordsOfRun
from evaltools.tasks.framework.steps import ObservedScores
from evaltools.tasks.framework.tensors import Quantisation
from evaltools.tasks.framework.topk import answered, correct, topk_verdicts
from evaltools.tasks.framework.topk_figures import accuracies
from evaltools.tasks.framework.topk_report import ChangedAnswer, Comparison, Effect, FirstAnswer, Named, sections
from evaltools.tasks.framework.topk_report import compared as compare


def compared(count: int, lost: int, gained: int, baseline: str = "reference", other: str = "a") -> Comparison:
    return Comparison(baseline, other, [lost, 0], [gained, 0], count=count, same=count - lost - gained)


def corrected(*comparisons: Comparison) -> list[Comparison]:
    correct(comparisons)
    return list(comparisons)


def test_holm_corrects_all_that_are_compared_with_one_baseline() -> None:
    first, second, third = corrected(
        compared(100, 9, 1), compared(100, 4, 4, other="b"), compared(100, 0, 8, baseline="a", other="b")
    )
    alone = [stats.binomtest(lost, total).pvalue for lost, total in ((9, 10), (4, 8), (0, 8))]
    assert [mcnemar_p(each.flips[0]) for each in (first, second, third)] == pytest.approx(alone)
    assert first.changes[0].p_value == pytest.approx(2 * alone[0])
    assert second.changes[0].p_value == 1.0
    assert third.changes[0].p_value == pytest.approx(alone[2]), "another family"


def test_without_a_common_example_there_is_nothing_to_test() -> None:
    (found,) = corrected(compared(0, 0, 0))
    assert found.changes == []
    assert topk_verdicts([found], 0.005) == {}


def test_every_k_has_its_interval() -> None:
    found = accuracies([4, 6], 8)
    assert [figure.interval for figure in found.values()] == [wilson_interval(4, 8), wilson_interval(6, 8)]
    assert accuracies([0, 0], 0) == {}


def test_verdicts_are_on_top_1_by_the_corrected_p() -> None:
    """p 0.021, and 0.064 where two others are compared with the same baseline."""
    found = topk_verdicts(corrected(*(compared(1000, 13, 3, other=name) for name in "abc")), 0.005)
    alone = topk_verdicts(corrected(compared(1000, 13, 3)), 0.005)
    assert [(entry.kind, entry.metric, entry.against) for entry in alone["a"]] == [("worse", "top1", "reference")]
    assert [entry.kind for verdicts in found.values() for entry in verdicts] == ["not decided"] * 3


def test_answers_that_are_the_same_bit_for_bit_are_said_first() -> None:
    words = []
    for identical in (200, 199):
        (same,) = corrected(compared(200, 0, 0))
        same.identical = identical
        words.append(topk_verdicts([same], 0.005)["a"][0].why)
    assert [sentence.partition(":")[0] for sentence in words] == ["identical", "unchanged"]
    assert all("95 % confident: fewer than 1.5 % of such examples" in sentence for sentence in words)
    many = corrected(compared(5000, 0, 0))
    assert topk_verdicts(many, 0.005)["a"][0].why.startswith("equivalent within 0.5 points")


def test_flips_of_every_k_are_those_counted_one_by_one() -> None:
    generator = np.random.default_rng(4)
    ranks = [[None if rank == 5 else rank for rank in generator.integers(0, 6, 300).tolist()] for _ in range(2)]
    before, after = (
        answers([answer((rank or 0,) * 5, (9.0,) * 5, -1 if rank is None else rank) for rank in own]) for own in ranks
    )
    counted = compare(("a", "b"), before, after, Named([], [""] * 300, [""] * 300))
    for k, counts in enumerate(counted.flips, 1):
        right = [tuple(rank is not None and rank < k for rank in pair) for pair in zip(*ranks, strict=True)]
        both_ways = right.count((True, False)), right.count((False, True))
        assert (counts.count, counts.lost, counts.gained) == (300, *both_ways)
        assert before.hits[k - 1] == sum(before for before, _ in right)
    assert counted.same == sum((first or 0) == (second or 0) for first, second in zip(*ranks, strict=True))


def answers(rows: Sequence[npt.NDArray[np.float64] | None]) -> Answers:
    """Those to examples of which some failed."""
    return Answers.of(
        Record(number, "a", (1.0,), None if row is None else ObservedScores(whole=row))
        for number, row in enumerate(rows)
    )


def answer(classes: tuple[int, ...], scores: tuple[float, ...], rank: int) -> npt.NDArray[np.float64]:
    """An answer whose scores are real numbers twice as large, and 1 more."""
    return np.array([rank, 0, (scores[0] - 1) / 2, *classes, *scores])


def test_ties_are_distinguished_from_changed_answers() -> None:
    first = answer((4, 7, 1), (9.0, 9.0, 2.0), 0)
    tie, other = answer((7, 4, 1), (9.0, 9.0, 2.0), 1), answer((1, 4, 7), (9.0, 8.0, 2.0), 1)
    again, unknown = answer((4, 1, 7), (8.0, 8.0, 2.0), 0), answer((1, 4, 7), (math.nan,) * 3, 1)
    named = Named(
        [None, "one", *("",) * 2, "four", *("",) * 2, None],
        [f"right {n}" for n in range(7)],
        [f"{n}.png" for n in range(7)],
    )
    changes = compare(
        ("a", "b"),
        answers([first, first, first, other, first, None, first]),
        answers([first, tie, other, again, unknown, first, None]),
        named,
    )
    assert (changes.count, changes.identical, changes.ties) == (5, 1, 2), "of the examples that both finished"
    assert changes.changed[:3] == [
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
    assert changes.changed[3].other == FirstAnswer("one", None)


def test_answers_that_were_lost_come_first_and_are_bad_news() -> None:
    cat, dog = FirstAnswer("cat", 0.75), FirstAnswer("dog", 0.5)
    effects: list[Effect] = ["neither", "gained", "lost"]
    found = compared(50, 1, 1)
    found.changed = [ChangedAnswer(f"{effect}.png", "cat", cat, dog, effect, tie=False) for effect in effects]
    blocks = [block for section in sections([found], "d") if section.place == "changes" for block in section.blocks]
    (gallery,) = blocks
    assert isinstance(gallery, Gallery)
    shown = [(each.folder, each.name, each.tone, each.classes) for each in gallery.pictures]
    tones = {"lost": "bad", "gained": "good", "neither": ""}
    assert shown == [("d", f"{name}.png", tone, ["cat"]) for name, tone in tones.items()]


def test_an_answer_of_an_emulator_has_no_latency_and_a_truth_that_is_no_class_no_number() -> None:
    cat = answer((2, 0), (9.0, 8.0), 0)
    records = {name: [Record(0, name, (1500.0,), ObservedScores(whole=cat))] for name in ("cpu", "npu")}
    run = RecordsOfRun((), PassOutcome(records), keeps_examples=True)
    emulator = RuntimeUsed("emulated", "onnxruntime-qnn", "2.7.0", "", "", "Qualcomm's emulator")
    rows = [Row("cpu"), Row("npu", runtime=emulator)]
    for truths, number in ((["cat"], 2), (["cow"], None)):
        named = Named(["dog", None, "cat"], truths, ["1.png"])
        found = answered({name: Answers.of(own) for name, own in records.items()}, named, run, rows)
        assert found["latency_ms"] == [1.5, None]
        assert (found["truth_index"], found["answer"], found["answer_index"]) == ([number] * 2, ["cat"] * 2, [2, 2])


@pytest.mark.parametrize(
    "rows", [[[0, 0]], [[0, 0, 1.0, 4]], [[-2, 0, 1.0, 4, 9.0]], [[0, 0, 1.0, 4, 9.0], [0]], ["x"]]
)
def test_a_record_that_holds_no_answer_is_a_data_error(rows: Any) -> None:
    with pytest.raises(DataError, match="a record holds no answer of a classifier"):
        answers(rows)


def test_without_an_answer_nothing_is_counted() -> None:
    none = answers([None, None])
    assert (none.hits, compare(("a", "b"), none, none, Named([], [], [])).count) == ([], 0)


def test_scores_are_ranked_with_what_limits_and_pages_need() -> None:
    row = ranked(np.array([3, 9, 9, 1], np.uint8), ["cat", "dog", "owl", "dog"], "owl", 3, Quantisation(0.5, 1))
    assert row.tolist() == [1, 0, 4.0, 1, 2, 0, 9, 9, 3]
    row = ranked(np.array([np.nan, 2, np.inf], np.float32), ["cat", "dog", None], "cow", 2)
    assert row.tolist() == [-1, 2, np.inf, 2, 1, np.inf, 2]
    with pytest.raises(TaskError, match="3 scores, and there are 2 labels"):
        ranked(np.zeros(3), ["cat", "dog"], "cat", 2)
