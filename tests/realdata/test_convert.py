"""``evaltools convert`` on pictures of COCO val2017 and their annotations."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.datasets.coco_instances import read_instances
from evaltools.datasets.yolo import read_yolo
from evaltools.proto import message_class
from tests.command import evaltools_here

# The 80 classes of YOLO models, as the categories of COCO.
COCO_80_TO_91 = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 27, 28, 31, 32, 33, 34, 35,
    36, 37, 38, 39, 40, 41, 42, 43, 44, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65,
    67, 70, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 84, 85, 86, 87, 88, 89, 90,
]  # fmt: skip


@pytest.fixture(scope="session")
def coco(shared: Path) -> Path:
    """94 pictures with their instances."""
    return shared / "realdata" / "coco"


@pytest.fixture(scope="session")
def document(coco: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((coco / "instances.json").read_text())
    return loaded


def convert(coco: Path, output: Path, *flags: str) -> str:
    completed = evaltools_here(
        "convert",
        "coco",
        f"--instances_file={coco / 'instances.json'}",
        f"--images_folder={coco / 'images'}",
        f"--output_folder={output}",
        *flags,
    )
    assert completed.code == 0, completed.err
    return completed.err


def native_entries(document: dict[str, Any], chosen: Sequence[int]) -> list[tuple[int, str, list[list[float]]]]:
    """What the native script makes of the file: id, name and objects of each picture, in float32."""
    entries = []
    for image in document["images"]:
        if image["id"] not in chosen:
            continue
        objects = []
        for annotation in document["annotations"]:
            left, top, width, height = annotation["bbox"]
            bottom, right = top + height, left + width
            beyond = max(top, bottom) > image["height"] or max(left, right) > image["width"]
            if annotation["image_id"] == image["id"] and not beyond:
                sides = (top / image["height"], left / image["width"], bottom / image["height"], right / image["width"])
                objects.append([annotation["category_id"], *(float(np.float32(side)) for side in sides)])
        entries.append((image["id"], image["file_name"], objects))
    return entries


def written_entries(path: Path) -> list[tuple[int, str, list[list[float]]]]:
    truth = message_class("ObjectDetectionGroundTruth").FromString(path.read_bytes())
    entries = []
    for entry in truth.detection_results:
        boxes = [(found.class_id, found.bounding_box) for found in entry.objects]
        objects = [
            [number, box.normalized_top, box.normalized_left, box.normalized_bottom, box.normalized_right]
            for number, box in boxes
        ]
        entries.append((entry.image_id, entry.image_name, objects))
    return entries


def test_the_native_ground_truth_is_that_of_an_independent_computation(
    coco: Path, document: dict[str, Any], tmp_path: Path
) -> None:
    text = convert(coco, tmp_path / "out")
    assert text.startswith("94 pictures, 0 of them without objects; 856 objects in 78 of 80 categories\n")
    ids = [image["id"] for image in document["images"]]
    assert written_entries(tmp_path / "out" / "ground_truth.pb") == native_entries(document, ids)
    assert len(list((tmp_path / "out" / "images").iterdir())) == 94
    for path in (coco / "images").iterdir():
        assert (tmp_path / "out" / "images" / path.name).read_bytes() == path.read_bytes()


def test_the_json_keeps_every_object_with_area_and_crowd(coco: Path, document: dict[str, Any], tmp_path: Path) -> None:
    convert(coco, tmp_path, "--copy_images=false")
    written = json.loads((tmp_path / "instances.json").read_text())
    keys = ("image_id", "category_id", "bbox", "area", "iscrowd")

    def lines(entries: list[dict[str, Any]]) -> list[list[Any]]:
        return sorted([entry[key] for key in keys] for entry in entries)

    assert lines(written["annotations"]) == lines(document["annotations"])
    assert sum(entry["iscrowd"] for entry in written["annotations"]) == 10
    assert len({entry["id"] for entry in written["annotations"]}) == 856
    assert [image["id"] for image in written["images"]] == [image["id"] for image in document["images"]]


def test_the_label_file_is_the_known_one(coco: Path, tmp_path: Path) -> None:
    convert(coco, tmp_path, "--copy_images=false")
    assert (tmp_path / "labels.txt").read_text() == (coco / "labelmap_91_background_first.txt").read_text()


def test_the_first_pictures_by_id(coco: Path, document: dict[str, Any], tmp_path: Path) -> None:
    convert(coco, tmp_path, "--num_images=7")
    first = sorted(image["id"] for image in document["images"])[:7]
    assert written_entries(tmp_path / "ground_truth.pb") == native_entries(document, first)
    assert len(list((tmp_path / "images").iterdir())) == 7


@pytest.mark.parametrize("digits", [6, 17])
def test_coco_written_as_yolo_comes_back(coco: Path, document: dict[str, Any], tmp_path: Path, digits: int) -> None:
    """Boxes agree to what the digits leave: 1e-6 of the picture's side with six."""
    sizes = {image["id"]: (image["width"], image["height"]) for image in document["images"]}
    names = {image["id"]: Path(image["file_name"]).stem for image in document["images"]}
    lines: dict[str, list[str]] = {}
    for annotation in document["annotations"]:
        x, y, w, h = annotation["bbox"]
        width, height = sizes[annotation["image_id"]]
        shares = ((x + w / 2) / width, (y + h / 2) / height, w / width, h / height)
        number = COCO_80_TO_91.index(annotation["category_id"])
        line = " ".join([str(number), *(f"{share:.{digits}f}" for share in shares)])
        lines.setdefault(names[annotation["image_id"]], []).append(line)
    for name, content in lines.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(content))
    labels = [category["name"] for category in sorted(document["categories"], key=lambda entry: entry["id"])]
    found = read_yolo(coco / "images", tmp_path, labels, coco_ids=True).data
    expected = read_instances(coco / "instances.json", "--instances_file")
    assert sorted(found.categories, key=lambda c: c.id) == sorted(expected.categories, key=lambda c: c.id)
    by_id = {image.id: image for image in expected.images}
    assert len(found.images) == len(by_id)
    for image in found.images:
        original = by_id[image.id]
        assert (image.file_name, image.width, image.height) == (original.file_name, original.width, original.height)
        assert [a.category_id for a in image.annotations] == [a.category_id for a in original.annotations]
        boxes = np.array([a.bbox for a in image.annotations])
        wanted = np.array([a.bbox for a in original.annotations])
        np.testing.assert_allclose(boxes, wanted, rtol=1e-6, atol=2e-6 * max(sizes[image.id]) if digits == 6 else 1e-9)
