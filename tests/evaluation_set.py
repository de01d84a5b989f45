"""A small labelled folder whose right answers are what a tiny classifier says, with known exceptions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct
from PIL import Image

from evaltools.configuration import Configuration
from evaltools.model import read_model
from evaltools.preprocess import ImageToTensor, Quantization, decode_image
from evaltools.runtime import open_session
from tests import tiny_models
from tests.command import one_test

CLASSES = 12


class EvaluationSet(Struct, frozen=True):
    """Files of an evaluation; ``answers`` is the class that builtin kernels put first, per picture."""

    folder: Path
    model: Path
    images: Path
    labels: Path
    truths: Path
    answers: tuple[int, ...]

    def flags(self, *more: str) -> list[str]:
        """The command line that evaluates it."""
        return [
            "imagenet",
            f"--model_file={self.model}",
            f"--ground_truth_images_path={self.images}",
            f"--ground_truth_labels={self.truths}",
            f"--model_output_labels={self.labels}",
            *one_test(*more),
        ]


def make_evaluation_set(folder: Path, count: int = 30, wrong: int = 6, **model: object) -> EvaluationSet:
    """``count`` noise pictures, of which the first ``wrong`` get the label of another class."""
    images = folder / "images"
    images.mkdir(parents=True)
    model_path = folder / "model.tflite"
    model_path.write_bytes(tiny_models.classifier(classes=CLASSES, seed=5, **model))  # type: ignore[arg-type]
    answers = _draw_and_answer(images, model_path, count)
    truths = [(answer + 1) % CLASSES if index < wrong else answer for index, answer in enumerate(answers)]
    (folder / "labels.txt").write_text("".join(f"class{index}\n" for index in range(CLASSES)))
    (folder / "truths.txt").write_text("".join(f"class{truth}\n" for truth in truths))
    return EvaluationSet(folder, model_path, images, folder / "labels.txt", folder / "truths.txt", tuple(answers))


def _draw_and_answer(images: Path, model: Path, count: int) -> list[int]:
    description = read_model(model)
    session = open_session(description, Configuration.from_text("builtin", "kernels=builtin"))
    image = description.inputs[0]
    _, height, width, _ = image.shape
    quantization = Quantization(image.scale, image.zero_point or 0) if image.scale else None
    to_tensor = ImageToTensor(height, width, np.dtype(image.dtype), quantization=quantization)
    chance = np.random.default_rng(0)
    answers = []
    for index in range(count):
        pixels = chance.integers(0, 256, (4, 4, 3), np.uint8).repeat(6, axis=0).repeat(7, axis=1)
        Image.fromarray(pixels).save(images / f"{index:03d}.png")
        scores = session.run((to_tensor(decode_image(images / f"{index:03d}.png")),)).outputs[0]
        answers.append(int(np.argmax(scores)))
    session.close()
    return answers
