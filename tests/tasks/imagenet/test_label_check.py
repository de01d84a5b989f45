"""Label lists that do not fit are detected and named; lists that fit are left alone."""

from __future__ import annotations

import random

import pytest

from evaltools.tasks.imagenet.label_check import diagnose, probe_positions, shifted

WNIDS = [f"n{index:08d}" for index in range(1000)]
CLASSES_12 = [f"class{index}" for index in range(12)]


def simulated(
    labels_of_model: list[str], accuracy: float, per_label: int, labels: int, seed: int = 0
) -> tuple[list[int], list[str]]:
    """Answers of a model of that accuracy, and the truths."""
    chance = random.Random(seed)
    answers, truths = [], []
    for label in chance.sample(range(len(labels_of_model)), labels):
        for _ in range(per_label):
            right = chance.random() < accuracy
            answers.append(label if right else chance.randrange(len(labels_of_model)))
            truths.append(labels_of_model[label])
    return answers, truths


@pytest.mark.parametrize("accuracy", [0.3, 0.6, 0.95])
def test_a_fitting_list_is_left_alone(accuracy: float) -> None:
    answers, truths = simulated(WNIDS, accuracy, 1, 64)
    assert diagnose(answers, truths, WNIDS, 1000, 0) is None
    answers, truths = simulated(CLASSES_12, accuracy, 5, 12)
    assert diagnose(answers, truths, CLASSES_12, 12, 0) is None


def test_a_model_at_chance_on_few_classes_is_no_label_problem() -> None:
    for seed in range(200):
        answers, truths = simulated(CLASSES_12, 0.0, 5, 12, seed)
        assert diagnose(answers, truths, CLASSES_12, 12, 0) is None, seed


def test_a_model_that_always_gives_the_same_class_is_no_label_problem() -> None:
    truths = [label for label in CLASSES_12 for _ in range(5)]
    assert diagnose([3] * 60, truths, CLASSES_12, 12, 0) is None


def test_a_list_shifted_by_one_is_named_with_the_fix() -> None:
    model = ["background", *WNIDS]
    answers, truths = simulated(model[1:], 0.6, 1, 40)
    answers = [answer + 1 for answer in answers]
    diagnosis = diagnose(answers, truths, [*WNIDS, "extra"], 1001, 0)
    assert diagnosis is not None
    assert "0 are right as given" in diagnosis.finding
    assert "with one line put in front" in diagnosis.finding
    assert "--label_offset=1" in diagnosis.advice


def test_a_binary_model_at_chance_is_no_label_problem() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        answers = [chance.randrange(2) for _ in range(40)]
        assert diagnose(answers, ["no", "yes"] * 20, ["no", "yes"], 2, 0) is None, seed


def test_names_in_another_order_are_left_to_the_accuracy() -> None:
    names = [f"name{index}" for index in range(12)]
    answers, truths = simulated(names, 0.85, 5, 12)
    assert diagnose(answers, truths, [*names[5:], *names[:5]], 12, 0) is None


def test_offsets() -> None:
    assert shifted(["a", "b"], 3, 0) == ["a", "b", None]
    assert shifted(["x", "a", "b"], 2, -1) == ["a", "b"]


@pytest.mark.parametrize(("count", "labels", "expected"), [(200, 200, 64), (50_000, 1000, 64), (30, 12, 20), (5, 5, 5)])
def test_probes_are_few_unique_and_in_range(count: int, labels: int, expected: int) -> None:
    positions = probe_positions([f"l{index % labels}" for index in range(count)])
    assert len(positions) == len(set(positions)) == expected
    assert all(0 <= position < count for position in positions)


def test_probes_repeat_labels_where_there_are_several_examples() -> None:
    truths = [f"l{index // 50}" for index in range(50_000)]
    chosen = [truths[position] for position in probe_positions(truths)]
    assert len(set(chosen)) == 16
    assert chosen.index("l0") == 0
    assert "l937" in chosen
