"""The embedded sample is complete, small enough, and what its drawing script draws."""

from __future__ import annotations

import importlib
import io
import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaltools.datasets import sample
from evaltools.metrics.boxes import intersection_over_union
from evaltools.model import read_model
from evaltools.preprocess import ImageToTensor, decode_image
from tests.interpreters import RUNTIMES, make_interpreter, run

Instances = dict[str, list[dict[str, Any]]]

SCRIPTS_DIR = Path(__file__).resolve().parents[2] / "scripts" / "sample"

IMAGE_COUNT = 200
LARGEST_TOTAL = 4_000_000
REDRAWN_COUNT = 5


def image_paths() -> list[Path]:
    return sorted(sample.images_dir().glob("*.jpg"))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def draw_pictures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not SCRIPTS_DIR.is_dir():
        pytest.skip("the drawing script is part of the repository only, not of an installation")
    monkeypatch.syspath_prepend(SCRIPTS_DIR)
    return importlib.import_module("draw_pictures")


def test_holds_200_images_and_nothing_else() -> None:
    assert len(image_paths()) == IMAGE_COUNT
    assert sorted(sample.images_dir().iterdir()) == image_paths()


def test_every_image_has_a_known_label() -> None:
    labels = lines_of(sample.labels_file())
    truth = lines_of(sample.ground_truth_file())
    assert len(labels) == len(set(labels)) == 12
    assert len(truth) == IMAGE_COUNT
    assert set(truth) == set(labels)


def test_classes_are_about_equally_frequent() -> None:
    counts = Counter(lines_of(sample.ground_truth_file()))
    assert max(counts.values()) - min(counts.values()) <= 1


def test_all_images_decode() -> None:
    for path in image_paths():
        with Image.open(path) as image:
            image.load()
            assert image.format == "JPEG"
            assert image.mode in ("RGB", "L")
            assert 120 <= min(image.size) <= max(image.size) <= 240


def test_images_are_of_many_kinds() -> None:
    kinds = set()
    for path in image_paths():
        with Image.open(path) as image:
            kinds.add(image.mode)
            kinds.add("progressive" if image.info.get("progressive") else "baseline")
            kinds.add("portrait" if image.height > image.width else "landscape")
    assert kinds == {"RGB", "L", "progressive", "baseline", "portrait", "landscape"}


@pytest.mark.parametrize("name", sample.MODELS)
def test_model_files_are_tflite(name: str) -> None:
    assert sample.model_file(name).read_bytes()[4:8] == b"TFL3"


def test_unknown_model_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="float32, float16, dynamic_range, int8"):
        sample.model_file("int4")


def test_sample_is_small() -> None:
    files = [*image_paths(), sample.labels_file(), sample.ground_truth_file()]
    files += [sample.model_file(name) for name in sample.MODELS]
    assert sum(path.stat().st_size for path in files) < LARGEST_TOTAL


def test_drawing_is_reproducible(draw_pictures: ModuleType) -> None:
    """Pixels are compared with some tolerance: another Pillow may bring another JPEG encoder."""
    classes = draw_pictures.evaluation_classes()
    for position, path in enumerate(image_paths()[:REDRAWN_COUNT]):
        assert path.name == draw_pictures.evaluation_file_name(position)
        redrawn = draw_pictures.draw_jpeg(classes[position], draw_pictures.EVALUATION_SEED, position)
        with Image.open(path) as stored, Image.open(io.BytesIO(redrawn)) as again:
            assert again.size == stored.size
            assert again.mode == stored.mode
            difference = np.asarray(again, dtype=np.int16) - np.asarray(stored, dtype=np.int16)
        assert np.abs(difference).mean() < 1.0


def test_labels_are_those_of_the_drawing_script(draw_pictures: ModuleType) -> None:
    labels = lines_of(sample.labels_file())
    assert tuple(labels) == draw_pictures.CLASS_NAMES
    truth = lines_of(sample.ground_truth_file())
    assert truth == [labels[index] for index in draw_pictures.evaluation_classes()]


# The detection sample.

DETECTION_COUNT = 60
LARGEST_DETECTION_TOTAL = 1_800_000
COCO_SMALL, COCO_MEDIUM = 32**2, 96**2


@pytest.fixture(scope="module")
def truth() -> Instances:
    found: Instances = json.loads(sample.detection_annotations_file().read_text("utf-8"))
    return found


@pytest.fixture
def draw_scenes(monkeypatch: pytest.MonkeyPatch, draw_pictures: ModuleType) -> ModuleType:
    return importlib.import_module("draw_scenes")


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


def test_detection_images_are_of_many_kinds() -> None:
    kinds = set()
    for path in detection_paths():
        with Image.open(path) as image:
            kinds.add(image.mode)
            kinds.add(
                "portrait" if image.height > image.width else "landscape" if image.height < image.width else "square"
            )
    assert kinds == {"RGB", "L", "portrait", "landscape", "square"}


def test_boxes_lie_inside_their_images_and_hold_their_area(truth: Instances) -> None:
    images = {entry["id"]: entry for entry in truth["images"]}
    assert len({entry["id"] for entry in truth["annotations"]}) == len(truth["annotations"]) >= 150
    at_border = 0
    for entry in truth["annotations"]:
        left, top, width, height = entry["bbox"]
        image = images[entry["image_id"]]
        assert 0 <= left < left + width <= image["width"]
        assert 0 <= top < top + height <= image["height"]
        assert 0 < entry["area"] <= width * height
        at_border += left == 0 or top == 0 or left + width == image["width"] or top + height == image["height"]
    assert 10 <= at_border <= len(truth["annotations"]) // 2


def test_all_three_coco_sizes_and_all_categories_occur(truth: Instances) -> None:
    areas = [entry["area"] for entry in truth["annotations"] if not entry["iscrowd"]]
    small = sum(area < COCO_SMALL for area in areas)
    large = sum(area > COCO_MEDIUM for area in areas)
    assert small >= 30
    assert large >= 5
    assert len(areas) - small - large >= 30
    counts = Counter(entry["category_id"] for entry in truth["annotations"])
    assert set(counts) == {entry["id"] for entry in truth["categories"]} == set(range(1, 8))
    assert min(counts.values()) >= 10


def test_some_objects_overlap(truth: Instances) -> None:
    overlapping = 0
    for one, other in combinations(truth["annotations"], 2):
        (left, top, width, height), (left2, top2, width2, height2) = one["bbox"], other["bbox"]
        across = min(left + width, left2 + width2) - max(left, left2)
        down = min(top + height, top2 + height2) - max(top, top2)
        overlapping += one["image_id"] == other["image_id"] and across > 0 and down > 0
    assert overlapping >= 10


def test_three_images_are_empty_and_two_have_a_crowd(truth: Instances) -> None:
    objects = Counter(entry["image_id"] for entry in truth["annotations"])
    assert sum(objects[entry["id"]] == 0 for entry in truth["images"]) == 3
    assert set(objects) < {entry["id"] for entry in truth["images"]}
    assert max(objects.values()) == 6
    crowds = [entry for entry in truth["annotations"] if entry["iscrowd"]]
    assert len({entry["image_id"] for entry in crowds}) == len(crowds) == 2
    assert {entry["iscrowd"] for entry in truth["annotations"]} == {0, 1}


def test_detection_labels_stand_on_the_line_of_their_id(truth: Instances) -> None:
    labels = lines_of(sample.detection_labels_file())
    assert labels[0] == "???"
    assert len(labels) == len(truth["categories"]) + 1
    assert {entry["id"]: entry["name"] for entry in truth["categories"]} == dict(enumerate(labels[1:], start=1))


def test_detection_sample_is_small() -> None:
    files = [path for path in sample.detection_images_dir().parent.rglob("*") if path.is_file()]
    assert len(files) >= DETECTION_COUNT + 4
    assert sum(path.stat().st_size for path in files) < LARGEST_DETECTION_TOTAL
    assert sum(path.stat().st_size for path in detection_paths()) < 1_200_000


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


def test_unknown_detection_model_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="'float16'; the names are float32, int8"):
        sample.detection_model_file("float16")


def test_drawing_scenes_is_reproducible(draw_scenes: ModuleType, truth: Instances) -> None:
    positions = [0, 1, *sorted(draw_scenes.EMPTY_POSITIONS)[:1], *sorted(draw_scenes.CROWD_POSITIONS)[:1]]
    for position in positions:
        entry = truth["images"][position]
        assert entry["file_name"] == draw_scenes.evaluation_file_name(position)
        redrawn, scene = draw_scenes.draw_evaluation_scene(position)
        stored_path = sample.detection_images_dir() / entry["file_name"]
        with Image.open(stored_path) as stored, Image.open(io.BytesIO(redrawn)) as again:
            assert (again.size, again.mode) == (stored.size, stored.mode)
            difference = np.asarray(again, dtype=np.int16) - np.asarray(stored, dtype=np.int16)
        assert np.abs(difference).mean() < 1.0
        stored_truth = [found for found in truth["annotations"] if found["image_id"] == entry["id"]]
        again_truth = [
            draw_scenes.annotation(instance, stored_truth[number]["id"], entry["id"])
            for number, instance in enumerate(scene.instances)
        ]
        assert again_truth == stored_truth


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("name", sample.DETECTION_MODELS)
def test_detection_models_find_most_objects_but_not_all(runtime: str, name: str, truth: Instances) -> None:
    interpreter = make_interpreter(runtime, sample.detection_model_file(name).read_bytes())
    dtype = interpreter.get_input_details()[0]["dtype"]
    to_tensor = ImageToTensor(128, 128, np.dtype(dtype), crop_fraction=None)
    hits = []
    for image in truth["images"][:30]:
        picture = decode_image(sample.detection_images_dir() / image["file_name"])
        run(interpreter, [to_tensor(picture)])
        boxes, classes, scores, count = (
            interpreter.get_tensor(detail["index"])[0] for detail in interpreter.get_output_details()
        )
        sure = (np.arange(len(scores)) < count) & (scores > 0.3)
        pixels = boxes.astype(np.float64) * ([image["height"], image["width"]] * 2)
        for entry in truth["annotations"]:
            if entry["image_id"] == image["id"] and not entry["iscrowd"]:
                left, top, width, height = entry["bbox"]
                box = np.array([[top, left, top + height, left + width]], dtype=np.float64)
                same = sure & (classes == entry["category_id"] - 1)
                hits.append(bool((intersection_over_union(box, pixels[same]) > 0.5).any()))
    assert len(hits) > 50
    assert 0.5 < np.mean(hits) < 1.0
