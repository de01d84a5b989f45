"""``evaltools convert``: what is written for detection, from each format."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evaltools.proto import message_class
from tests.cli.convert.annotated_pictures import SIZES, coco_document, convert_coco, make_coco_folder, write_coco
from tests.command import evaltools_here


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    """A folder with ``instances.json`` and ``pictures``."""
    return make_coco_folder(tmp_path)


def native_objects(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Class, top, left, bottom, right of each picture's objects."""
    truth = message_class("ObjectDetectionGroundTruth").FromString(path.read_bytes())
    return {
        entry.image_name: [
            (
                found.class_id,
                found.bounding_box.normalized_top,
                found.bounding_box.normalized_left,
                found.bounding_box.normalized_bottom,
                found.bounding_box.normalized_right,
            )
            for found in entry.objects
        ]
        for entry in truth.detection_results
    }


def test_coco_becomes_both_ground_truths_labels_and_pictures(coco: Path) -> None:
    completed = convert_coco(coco)
    assert completed.code == 0
    assert native_objects(coco / "out" / "ground_truth.pb") == {
        "b.jpg": [(3, 0.25, 0.25, 0.75, 0.75), (1, 0, 0, 1, 1)],
        "a.png": [(3, 0, 0, 1, 0.5)],
    }
    document = json.loads((coco / "out" / "instances.json").read_text())
    expected = coco_document()
    assert [image["id"] for image in document["images"]] == [7, 3]
    assert document["categories"] == expected["categories"]
    for entry in expected["annotations"]:
        del entry["id"]
        assert any(entry == {key: found[key] for key in entry} for found in document["annotations"]), entry
    assert len(document["annotations"]) == 4
    assert (coco / "out" / "labels.txt").read_text() == "???\nperson\n???\ncar\n"
    assert sorted(os.listdir(coco / "out")) == ["ground_truth.pb", "images", "instances.json", "labels.txt"]
    assert sorted(os.listdir(coco / "out" / "images")) == ["a.png", "b.jpg"]


def test_pictures_without_objects_are_kept_on_request(coco: Path) -> None:
    completed = convert_coco(coco, "--keep_empty_images=true")
    assert completed.err.startswith("3 pictures, 1 of them without objects;")
    assert native_objects(coco / "out" / "ground_truth.pb")["empty.jpg"] == []
    assert (coco / "out" / "images" / "empty.jpg").exists()


def test_lists_and_numbers_choose_pictures(coco: Path) -> None:
    (coco / "allowed.txt").write_text("7\n\n99\n")
    completed = convert_coco(coco, "--allowlist_file=allowed.txt", "--num_images=-1")
    assert list(native_objects(coco / "out" / "ground_truth.pb")) == ["b.jpg"]
    assert "note: 1 ids of the allowlist, such as 99, are not among the pictures" in completed.err
    assert "note: --num_images=-1 is negative; all 1 pictures are taken" in completed.err
    assert convert_coco(coco, "--num_images=1", "--output_folder=first").code == 0
    assert list(native_objects(coco / "first" / "ground_truth.pb")) == ["a.png"]


def test_without_copies_no_pictures_are_needed(coco: Path) -> None:
    completed = evaltools_here(
        "convert", "coco", "--instances_file=instances.json", "--output_folder=a b/c", "--nocopy_images", cwd=coco
    )
    assert completed.code == 0
    assert sorted(os.listdir(coco / "a b" / "c")) == ["ground_truth.pb", "instances.json", "labels.txt"]
    assert "--ground_truth_images_path=... --ground_truth_annotations='a b/c/instances.json'" in completed.err


def test_pictures_of_subfolders_go_into_one_folder(coco: Path) -> None:
    (coco / "pictures" / "val").mkdir()
    (coco / "pictures" / "b.jpg").rename(coco / "pictures" / "val" / "b.jpg")
    images = coco_document()["images"]
    write_coco(coco, images=[{**images[0], "file_name": r"val\b.jpg"}, *images[1:]])
    assert convert_coco(coco).code == 0
    assert sorted(os.listdir(coco / "out" / "images")) == ["a.png", "b.jpg"]
    assert list(native_objects(coco / "out" / "ground_truth.pb")) == ["b.jpg", "a.png"]
    assert json.loads((coco / "out" / "instances.json").read_text())["images"][0]["file_name"] == "b.jpg"


def test_converting_again_gives_the_same_files(coco: Path) -> None:
    assert convert_coco(coco).code == 0
    before = {path: path.read_bytes() for path in (coco / "out").rglob("*") if path.is_file()}
    assert convert_coco(coco).code == 0
    assert {path: path.read_bytes() for path in (coco / "out").rglob("*") if path.is_file()} == before
    assert convert_coco(coco, "--instances_file=out/instances.json", "--output_folder=again").code == 0
    for name in ("ground_truth.pb", "instances.json", "labels.txt"):
        assert (coco / "again" / name).read_bytes() == before[coco / "out" / name]


def test_a_yolo_folder_with_outlines_and_a_yaml_file(coco: Path) -> None:
    (coco / "images").symlink_to(coco / "pictures")
    (coco / "labels").mkdir()
    (coco / "labels" / "b.txt").write_text("1 0.5 0.5 0.5 0.5\n0 0 0 1 0 1 1\n")
    (coco / "data.yaml").write_text("nc: 2\nnames:\n  0: person\n  1: car\n")
    completed = evaltools_here(
        "convert", "yolo", "--images_folder=images", "--names_file=data.yaml", "--output_folder=out", cwd=coco
    )
    assert completed.code == 0
    assert native_objects(coco / "out" / "ground_truth.pb") == {
        "a.png": [],
        "b.jpg": [(2, 0.25, 0.25, 0.75, 0.75), (1, 0, 0, 1, 1)],
        "empty.jpg": [],
    }
    areas = [found["area"] for found in json.loads((coco / "out" / "instances.json").read_text())["annotations"]]
    assert areas == [40 * 20, 80 * 40 / 2]
    assert (coco / "out" / "labels.txt").read_text() == "???\nperson\ncar\n"
    assert completed.err.startswith("3 pictures, 2 of them without objects; 2 objects in 2 of 2 categories\n")
    assert sorted(os.listdir(coco / "out" / "images")) == sorted(SIZES)


def test_a_voc_folder(coco: Path) -> None:
    (coco / "Annotations").mkdir()
    box = "<bndbox><xmin>1</xmin><ymin>11</ymin><xmax>40</xmax><ymax>20</ymax></bndbox>"
    found = f"<object><name>car</name><difficult>1</difficult>{box}</object>"
    (coco / "Annotations" / "b.xml").write_text(
        f"<annotation><size><width>80</width><height>40</height></size>{found}</annotation>"
    )
    flags = ["--annotations_folder=Annotations", "--images_folder=pictures", "--output_folder=out"]
    assert evaltools_here("convert", "voc", *flags, cwd=coco).code == 0
    assert native_objects(coco / "out" / "ground_truth.pb") == {"b.jpg": [(7, 0.25, 0, 0.5, 0.5)]}
    (entry,) = json.loads((coco / "out" / "instances.json").read_text())["annotations"]
    assert (entry["bbox"], entry["area"], entry["iscrowd"]) == ([0, 10, 40, 10], 400, 1)
    assert (coco / "out" / "labels.txt").read_text().splitlines()[7] == "car"
    (coco / "names.txt").write_text("car\n")
    flags[-1] = "--output_folder=named"
    assert evaltools_here("convert", "voc", *flags, "--labels_file=names.txt", cwd=coco).code == 0
    assert native_objects(coco / "named" / "ground_truth.pb") == {"b.jpg": [(1, 0.25, 0, 0.5, 0.5)]}


def test_a_wrong_format_is_refused_with_the_nearest() -> None:
    completed = evaltools_here("convert", "coca")
    assert completed.code == 2
    assert "'coca' is no format; use coco, yolo, voc, imagenet, ios-log. Did you mean coco?" in completed.err
    completed = evaltools_here("convert", "--output_folder=x", "coco")
    assert completed.code == 2
    assert "the format comes first, before --output_folder=x" in completed.err
