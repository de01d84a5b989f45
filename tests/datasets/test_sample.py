"""The embedded sample is complete, small enough, and what its drawing script draws."""

from __future__ import annotations

import importlib
import io
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image

from evaltools.datasets import sample

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
