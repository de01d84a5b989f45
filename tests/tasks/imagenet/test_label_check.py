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


def test_wordnet_ids_in_another_order_are_named() -> None:
    shuffled = random.Random(1).sample(WNIDS, 1000)
    answers, truths = simulated(WNIDS, 0.6, 1, 40)
    diagnosis = diagnose(answers, truths, shuffled, 1000, 0)
    assert diagnosis is not None
    assert "with the lines sorted" in diagnosis.finding
    assert "permuted" in diagnosis.advice


def test_names_in_another_order_are_named_where_labels_repeat() -> None:
    names = random.Random(2).sample([f"name{index}" for index in range(12)], 12)
    answers, truths = simulated(names, 0.85, 5, 12)
    diagnosis = diagnose(answers, truths, [*names[5:], *names[:5]], 12, 0)
    assert diagnosis is not None
    assert "permuted" in diagnosis.finding
    assert "came first for" in diagnosis.finding


def test_names_in_another_order_are_suspected_with_one_picture_per_label() -> None:
    names = random.Random(3).sample([f"name{index}" for index in range(1000)], 1000)
    answers, truths = simulated(names, 0.6, 1, 40)
    wrong = random.Random(4).sample(names, 1000)
    diagnosis = diagnose(answers, truths, wrong, 1000, 0, near_hits=1)
    assert diagnosis is not None
    assert "probably in another order" in diagnosis.finding


@pytest.mark.parametrize("near_hits", [4, 10, 40])
def test_pictures_that_the_model_gets_nearly_right_are_no_label_problem(near_hits: int) -> None:
    answers, truths = simulated(WNIDS, 0.0, 1, 40)
    assert diagnose(answers, truths, WNIDS, 1000, 0, near_hits) is None


def test_pictures_that_all_have_one_label_are_no_label_problem() -> None:
    assert diagnose(list(range(40)), ["n00000999"] * 40, WNIDS, 1000, 0, near_hits=0) is None


def test_a_list_whose_second_half_is_reversed_is_named() -> None:
    answers, truths = simulated(CLASSES_12, 0.95, 5, 12)
    diagnosis = diagnose(answers, truths, [*CLASSES_12[:6], *CLASSES_12[:5:-1]], 12, 0)
    assert diagnosis is not None
    assert "permuted" in diagnosis.finding


def test_a_binary_model_at_chance_is_no_label_problem() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        answers = [chance.randrange(2) for _ in range(40)]
        assert diagnose(answers, ["no", "yes"] * 20, ["no", "yes"], 2, 0) is None, seed


def test_two_swapped_labels_of_a_binary_model_are_named() -> None:
    answers, truths = simulated(["no", "yes"], 0.9, 20, 2)
    assert diagnose(answers, truths, ["no", "yes"], 2, 0) is None
    diagnosis = diagnose(answers, truths, ["yes", "no"], 2, 0)
    assert diagnosis is not None


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
