"""Label lists that do not fit are named, by a few pictures that say something; lists that fit are left alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evaltools.errors import DataError, InferenceError
from evaltools.runtime import Inference
from evaltools.runtime.session import Array
from evaltools.tasks.framework.definition import Example, Task, topk
from evaltools.tasks.framework.pictures import image_input
from evaltools.tasks.framework.tensors import ModelTensors, TaskTensor
from evaltools.tasks.framework.trial import SessionTrial
from evaltools.tasks.imagenet.label_check import (
    Labels,
    diagnose,
    explain_label_count,
    first_answers,
    probe_positions,
    require_fitting_labels,
    shifted,
)
from tests.runtime.fake import FakeSession

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


def test_a_binary_model_at_chance_is_no_label_problem() -> None:
    for seed in range(100):
        chance = random.Random(seed)
        answers = [chance.randrange(2) for _ in range(40)]
        assert diagnose(answers, ["no", "yes"] * 20, ["no", "yes"], 2, 0) is None, seed


NAMES = ["owl", "cat", "dog", "fox", "cow", "bee", "ant", "eel", "elk", "gnu", "hen", "jay"]


@pytest.mark.parametrize(
    ("of_model", "given", "said"),
    [
        (NAMES, NAMES[::-1], "with the lines in reverse"),
        (sorted(NAMES), NAMES, "with the lines sorted as text"),
        (CLASSES_12, sorted(CLASSES_12), "with the lines sorted as numbers"),
        (NAMES[:2] + NAMES[10:] + NAMES[2:10], NAMES, "with the lines sorted by their numbers as text"),
        (NAMES, NAMES[:2] + NAMES[10:] + NAMES[2:10], "sorted back from the order of their numbers"),
        (NAMES, NAMES[5:] + NAMES[:5], "the lines stand in another order than the classes"),
    ],
)
def test_lines_in_another_order_are_named(of_model: list[str], given: list[str], said: str) -> None:
    answers, truths = simulated(of_model, 0.85, 5, 12)
    found = diagnose(answers, truths, given, 12, 0)
    assert found is not None
    assert said in found.finding


def test_answers_that_are_mixed_up_are_no_order_of_the_lines() -> None:
    """A model that cannot see the difference between pairs of classes."""
    _, truths = simulated(NAMES, 1.0, 5, 12)
    chance = random.Random(3)
    answers = [2 * chance.randrange(6) + 1 - NAMES.index(truth) % 2 for truth in truths]
    assert diagnose(answers, truths, NAMES, 12, 0) is None


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


CLASSES = [f"class{number}" for number in range(20)]


def labelled(folder: Path, grays: Sequence[int | None]) -> list[Example]:
    """A picture per gray tone, labelled with the class of a tenth of it; None is a picture that is broken."""
    examples = []
    for number, gray in enumerate(grays):
        path = folder / f"{number:03d}.png"
        if gray is None:
            path.write_bytes(b"no picture")
        else:
            Image.new("RGB", (4, 4), (gray,) * 3).save(path)
        examples.append(Example(path.name, path, "class0" if gray is None else f"class{gray // 10}"))
    return examples


def trial_of(examples: Sequence[Example], session: FakeSession) -> SessionTrial:
    metric = topk(CLASSES)
    task = Task(examples=examples, prepare=image_input, score=metric.score, metrics=[metric])
    picture = TaskTensor("input", (1, 4, 4, 3), np.dtype("uint8"))
    scores = TaskTensor("scores", (1, len(CLASSES)), np.dtype("uint8"))
    return SessionTrial([session], task, ModelTensors((picture,), (scores,)))


def labels_of(lines: Sequence[str] = CLASSES) -> Labels:
    return Labels(lines, 0, shifted(lines, len(CLASSES), 0), lambda name: partial(image_input, normalization=name))


class Seeing(FakeSession):
    """Answers with the class of a tenth of the gray tone, some classes on; remembers the tones."""

    def __init__(self, ahead: int = 0, fails_at: int | None = None) -> None:
        super().__init__(lambda inputs: tuple(inputs))
        self.ahead = ahead
        self.fails_at = fails_at
        self.seen: list[int] = []

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        gray = int(np.asarray(inputs[0], np.uint8)[0, 0, 0, 0])
        self.seen.append(gray)
        if gray == self.fails_at:
            raise InferenceError("node 7 failed")
        scores = np.zeros((1, len(CLASSES)), np.uint8)
        scores[0, (gray // 10 + self.ahead) % len(CLASSES)] = 200
        return Inference((scores,), (1,))


def test_the_other_order_of_channels_is_proposed_beyond_chance(tmp_path: Path) -> None:
    """The session sees the first channel; the truth is the red of some pictures, the blue of others, both of some."""
    session, count = Seeing(), 30

    def read(folder: str, by_red: int, by_both: int) -> list[str]:
        (tmp_path / folder).mkdir()
        blue = [number % 20 * 10 for number in range(count)]
        examples = labelled(tmp_path / folder, blue)
        for number, example in enumerate(examples):
            red = blue[number] if by_red <= number < by_red + by_both else (blue[number] + 10) % 200
            tones = (blue[number], number, red) if number < by_red else (red, number, blue[number])
            Image.new("RGB", (4, 4), tones).save(example.input)
        return require_fitting_labels(labels_of(), trial_of(examples, session))

    assert read("clear", 0, 18) == [
        "read as BGR, 100 % instead of 60 % of 30 pictures tried are right: --channel_order=bgr"
    ]
    assert read("chance", 4, 18) == []
    assert read("wrong way", 12, 18) == []
    with pytest.raises(DataError, match=r"only 2 pictures are right.*BGR 20 \(of 20\)(?s:.*)pass --channel_order=bgr"):
        read("hopeless", 0, 2)


def test_every_picture_is_tried_with_its_label(tmp_path: Path) -> None:
    session = Seeing()
    trial = trial_of(labelled(tmp_path, range(0, 190, 10)), session)
    answers, truths = first_answers(trial)
    assert [CLASSES[answer] for answer in answers] == truths == trial.targets
    assert session.seen == list(range(0, 190, 10))


def test_copies_of_one_picture_count_once(tmp_path: Path) -> None:
    session = Seeing()
    answers, truths = first_answers(trial_of(labelled(tmp_path, [50, 70, 50, 50, 90, 70]), session))
    assert session.seen == [50, 70, 90]
    assert (answers, truths) == ([5, 7, 9], ["class5", "class7", "class9"])


def test_pictures_that_fail_are_left_out(tmp_path: Path) -> None:
    answers, truths = first_answers(trial_of(labelled(tmp_path, [50, None, 70, 90]), Seeing(fails_at=70)))
    assert (answers, truths) == ([5, 9], ["class5", "class9"])


def test_copies_of_one_picture_accuse_no_list(tmp_path: Path) -> None:
    """Twenty different ones do, at which the model is always a class off."""
    copies, different = tmp_path / "copies", tmp_path / "different"
    copies.mkdir()
    different.mkdir()
    require_fitting_labels(labels_of(), trial_of(labelled(copies, [50] * 19), Seeing(ahead=1)))
    examples = labelled(different, range(0, 190, 10))
    require_fitting_labels(labels_of(), trial_of(examples, Seeing()))
    with pytest.raises(DataError, match="of 19 pictures tried, 0 are right as given, 19 with one line put in front"):
        require_fitting_labels(labels_of(), trial_of(examples, Seeing(ahead=1)))


def test_a_list_without_its_last_line_is_explained_by_different_pictures(tmp_path: Path) -> None:
    examples = labelled(tmp_path, [*range(0, 180, 10), 50, 50])
    found = explain_label_count(labels_of(CLASSES[:-1]), trial_of(examples, Seeing()))
    assert found.startswith("Of 18 pictures tried, 18 are right as given, 0 with one line put in front")
    assert "add a last line" in found
