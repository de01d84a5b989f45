"""The embedded sample is complete, small enough, and what its drawing script draws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaltools.datasets import sample
from evaltools.model import read_model

Instances = dict[str, list[dict[str, Any]]]

IMAGE_COUNT = 200


def image_paths() -> list[Path]:
    return sorted(sample.images_dir().glob("*.jpg"))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_every_image_has_a_known_label() -> None:
    labels = lines_of(sample.labels_file())
    truth = lines_of(sample.ground_truth_file())
    assert len(labels) == len(set(labels)) == 12
    assert len(truth) == IMAGE_COUNT
    assert set(truth) == set(labels)


def test_all_images_decode() -> None:
    for path in image_paths():
        with Image.open(path) as image:
            image.load()
            assert image.format == "JPEG"
            assert image.mode in ("RGB", "L")
            assert 120 <= min(image.size) <= max(image.size) <= 240


# The detection sample.

DETECTION_COUNT = 60


@pytest.fixture(scope="module")
def truth() -> Instances:
    found: Instances = json.loads(sample.detection_annotations_file().read_text("utf-8"))
    return found


def detection_paths() -> list[Path]:
    return sorted(sample.detection_images_dir().glob("*.jpg"))


def test_instances_name_every_detection_image_with_its_size(truth: Instances) -> None:
    assert sorted(sample.detection_images_dir().iterdir()) == detection_paths()
    stated = {entry["file_name"]: (entry["width"], entry["height"]) for entry in truth["images"]}
    sizes = {}
    for path in detection_paths():
        with Image.open(path) as image:
            image.load()
            assert image.format == "JPEG"
            sizes[path.name] = image.size
    assert sizes == stated
    assert len(sizes) == DETECTION_COUNT
    assert len({entry["id"] for entry in truth["images"]}) == DETECTION_COUNT
    assert min(map(min, sizes.values())) >= 160
    assert max(map(max, sizes.values())) <= 320


def test_detection_labels_stand_on_the_line_of_their_id(truth: Instances) -> None:
    labels = lines_of(sample.detection_labels_file())
    assert labels[0] == "???"
    assert len(labels) == len(truth["categories"]) + 1
    assert {entry["id"]: entry["name"] for entry in truth["categories"]} == dict(enumerate(labels[1:], start=1))


@pytest.mark.parametrize(("name", "dtype"), [("float32", "float32"), ("int8", "int8")])
def test_detection_models_take_a_picture_and_end_in_the_detection_operator(name: str, dtype: str) -> None:
    assert name in sample.DETECTION_MODELS
    model = read_model(sample.detection_model_file(name))
    assert model.size_bytes < 360_000
    assert [(tensor.dtype, tensor.shape) for tensor in model.inputs] == [(dtype, (1, 128, 128, 3))]
    shapes = [(1, 10, 4), (1, 10), (1, 10), (1,)]
    assert [(tensor.dtype, tensor.shape) for tensor in model.outputs] == [("float32", shape) for shape in shapes]
    assert model.detection is not None
    order = (model.detection.boxes, model.detection.classes, model.detection.scores, model.detection.count)
    assert order == (0, 1, 2, 3), "the native tool takes the outputs in this order"
    if dtype == "int8":
        scale, zero_point = model.inputs[0].scale, model.inputs[0].zero_point
        assert scale is not None
        assert abs(scale * 127.5 - 1) < 0.01, "else pixel - 128 is the wrong value to feed"
        assert zero_point in (-1, 0)
