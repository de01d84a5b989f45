"""The few pictures that are tried first: which of them say something."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaltools.datasets.image_folder import list_images
from evaltools.errors import DataError, InferenceError
from evaltools.preprocess import ImageToTensor
from evaltools.runtime import Inference
from evaltools.runtime.session import Array
from evaltools.tasks.imagenet.label_check import explain_label_count, first_answers, require_fitting_labels
from evaltools.tasks.imagenet.task import ImagenetTask, LabelledImages
from tests.runtime.fake import FakeSession

CLASSES = [f"class{number}" for number in range(20)]


def task_of(folder: Path, grays: Sequence[int | None], labels: Sequence[str] = CLASSES) -> ImagenetTask:
    """A picture per gray tone, labelled with the class of a tenth of it; None is a picture that is broken."""
    for number, gray in enumerate(grays):
        path = folder / f"{number:03d}.png"
        if gray is None:
            path.write_bytes(b"no picture")
        else:
            Image.new("RGB", (4, 4), (gray,) * 3).save(path)
    images = list_images(folder, "--images")
    truths = tuple("class0" if gray is None else f"class{gray // 10}" for gray in grays)
    to_tensor = ImageToTensor(4, 4, np.dtype("uint8"), None, None, None, None)
    return ImagenetTask(LabelledImages(images, images.paths, truths, 0, ""), to_tensor, list(labels))


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


def test_every_picture_is_tried_with_its_label(tmp_path: Path) -> None:
    session = Seeing()
    task = task_of(tmp_path, range(0, 190, 10))
    answers, truths = first_answers(task, session)
    assert [CLASSES[answer] for answer in answers] == truths == list(task.images.truths)
    assert session.seen == list(range(0, 190, 10))


def test_copies_of_one_picture_count_once(tmp_path: Path) -> None:
    session = Seeing()
    answers, truths = first_answers(task_of(tmp_path, [50, 70, 50, 50, 90, 70]), session)
    assert session.seen == [50, 70, 90]
    assert (answers, truths) == ([5, 7, 9], ["class5", "class7", "class9"])


def test_pictures_that_fail_are_left_out(tmp_path: Path) -> None:
    answers, truths = first_answers(task_of(tmp_path, [50, None, 70, 90]), Seeing(fails_at=70))
    assert (answers, truths) == ([5, 9], ["class5", "class9"])


def test_copies_of_one_picture_accuse_no_list(tmp_path: Path) -> None:
    """Twenty different ones do, at which the model is always a class off."""
    copies, different = tmp_path / "copies", tmp_path / "different"
    copies.mkdir()
    different.mkdir()
    require_fitting_labels(task_of(copies, [50] * 19), Seeing(ahead=1), CLASSES, 0)
    task = task_of(different, range(0, 190, 10))
    require_fitting_labels(task, Seeing(), CLASSES, 0)
    with pytest.raises(DataError, match="of 19 pictures tried, 0 are right as given, 19 with one line put in front"):
        require_fitting_labels(task, Seeing(ahead=1), CLASSES, 0)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (0, "Of 18 pictures tried, 18 are right as given, 0 with one line put in front"),
        (1, "Of 18 pictures tried, 0 are right as given, 18 with one line put in front"),
    ],
)
def test_a_list_that_is_too_short_is_explained_by_different_pictures(ahead: int, words: str, tmp_path: Path) -> None:
    labels: Any = CLASSES[:-1]
    found = explain_label_count(task_of(tmp_path, [*range(0, 180, 10), 50, 50]), Seeing(ahead), labels)
    assert found.startswith(words)
    assert ("add a last line" if ahead == 0 else 'Add a first line "background"') in found
