"""``evaltools convert``: what is written for detection, from each format."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from evaltools.cli.main import main
from evaltools.proto import message_class
from tests.command import Completed, evaltools_here

Change = Callable[[dict[str, Any]], object]
SIZES = {"b.jpg": (80, 40), "a.png": (10, 10), "empty.jpg": (8, 8)}


def write_pictures(folder: Path) -> Path:
    """The pictures, each with a colour of its own."""
    folder.mkdir(parents=True)
    for number, (name, size) in enumerate(SIZES.items()):
        Image.new("RGB", size, (number, 9, 9)).save(folder / name)
    return folder


def coco_document() -> dict[str, Any]:
    """Two pictures with four objects, one a crowd, one beyond its picture; and a picture without."""
    return {
        "images": [
            {"id": 7, "file_name": "b.jpg", "width": 80, "height": 40},
            {"id": 3, "file_name": "a.png", "width": 10, "height": 10},
            {"id": 5, "file_name": "empty.jpg", "width": 8, "height": 8},
        ],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 3, "bbox": [20, 10, 40, 20], "area": 500.5, "iscrowd": 0},
            {"id": 2, "image_id": 3, "category_id": 1, "bbox": [5, 5, 5.5, 2], "area": 11, "iscrowd": 0},
            {"id": 3, "image_id": 7, "category_id": 1, "bbox": [0, 0, 80, 40], "area": 9, "iscrowd": 1},
            {"id": 4, "image_id": 3, "category_id": 3, "bbox": [0, 0, 5, 10], "area": 50, "iscrowd": 0},
        ],
        "categories": [{"id": 1, "name": "person"}, {"id": 3, "name": "car"}],
    }


def write_coco(folder: Path, **changed: Any) -> Path:
    """``instances.json`` of it; ``changed`` replaces its parts."""
    path = folder / "instances.json"
    path.write_text(json.dumps({**coco_document(), **changed}, indent=1))
    return path


def make_coco_folder(folder: Path) -> Path:
    """``instances.json`` and ``pictures`` in a folder."""
    write_pictures(folder / "pictures")
    write_coco(folder)
    return folder


def convert_coco(folder: Path, *more: str) -> Completed:
    """Convert that folder into its folder ``out``; flags given replace those."""
    given = ["--instances_file=instances.json", "--images_folder=pictures", "--output_folder=out"]
    names = [flag.partition("=")[0] for flag in more]
    return evaltools_here(
        "convert", "coco", *(flag for flag in given if flag.partition("=")[0] not in names), *more, cwd=folder
    )


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


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_refused(completed: Completed, message: str, code: int = 2) -> None:
    assert message in completed.err
    assert completed.code == code
    assert "Traceback" not in completed.err


def first_picture(**facts: object) -> Change:
    """Other facts of the first picture; its objects follow another id."""

    def change(document: dict[str, Any]) -> None:
        for entry in document["annotations"]:
            if entry["image_id"] == 7:
                entry["image_id"] = facts.get("id", 7)
        document["images"][0].update(facts)

    return change


def second_object(**facts: object) -> Change:
    return lambda document: document["annotations"][1].update(facts)


def categories(*named: tuple[int, str]) -> Change:
    return lambda document: document.update(categories=[{"id": number, "name": name} for number, name in named])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (first_picture(file_name="../secret.jpg"), "instances.json names the picture '../secret.jpg'"),
        (first_picture(file_name="sub/a.png"), "1 names of pictures are there more than once, such as 'a.png'"),
        (first_picture(file_name="a\ud800.jpg"), "instances.json"),
        (first_picture(id=2**70), "ids are from 0 to 2^63 - 1"),
        (first_picture(width=10**12), "sizes in pixels to 2147483647"),
        (second_object(bbox=[-1e308, 0, 1.7e308, 5]), "the picture a.png has an object with the box x "),
        (second_object(bbox=[0, 0, 5, 1.1e9]), "the picture a.png has an object with the box x "),
        (second_object(area=1e300), "the picture a.png has an object with the box x "),
        (categories((1, "a\nb"), (3, "c")), "the category 1 is named 'a\\nb'"),
        (categories(), "category_id 3, which is not among the 0 categories"),
    ],
)
def test_what_no_ground_truth_can_hold_is_refused_by_name(coco: Path, change: Change, message: str) -> None:
    document = coco_document()
    change(document)
    write_coco(coco, **document)
    completed = convert_coco(coco)
    assert_refused(completed, message)
    assert "Warning" not in completed.err
    assert not (coco / "out").exists()


def test_an_input_in_the_output_folder_is_not_written_over(coco: Path) -> None:
    before = contents(coco)
    for output in (".", str(coco)):
        assert_refused(
            convert_coco(coco, f"--output_folder={output}"), "would write over instances.json, which is read"
        )
    (coco / "out").mkdir()
    (coco / "out" / "labels.txt").hardlink_to(coco / "instances.json")
    assert_refused(convert_coco(coco), "would write over instances.json")
    (coco / "out" / "labels.txt").unlink()
    assert contents(coco) == before


def test_pictures_that_lie_in_place_stay_and_further_ones_are_remarked(coco: Path) -> None:
    (coco / "out").mkdir()
    (coco / "pictures").rename(coco / "out" / "images")
    before = contents(coco / "out" / "images")
    completed = convert_coco(coco, "--images_folder=out/images")
    assert completed.code == 0
    assert "note: out/images has 1 more pictures, such as empty.jpg" in completed.err
    assert contents(coco / "out" / "images") == before


def test_a_link_in_the_output_folder_is_not_written_through(coco: Path) -> None:
    (coco / "out" / "images").mkdir(parents=True)
    (coco / "out" / "images" / "b.jpg").symlink_to(coco / "pictures" / "empty.jpg")
    before = contents(coco / "pictures")
    assert_refused(convert_coco(coco), "out/images/b.jpg is there and differs")
    (coco / "out" / "images" / "b.jpg").unlink()
    (coco / "out" / "images" / "b.jpg").symlink_to(coco / "nowhere.jpg")
    assert_refused(convert_coco(coco), "out/images/b.jpg is there and differs")
    assert contents(coco / "pictures") == before


def test_pictures_of_an_earlier_conversion_are_refused(coco: Path) -> None:
    """They would count as pictures without objects."""
    assert convert_coco(coco).code == 0
    completed = convert_coco(coco, "--num_images=1")
    assert_refused(completed, "out/images has 1 pictures that do not belong to these annotations, such as b.jpg")


def test_a_failing_copy_leaves_no_ground_truth(coco: Path) -> None:
    """The picture can be found but not read to its end."""
    (coco / "pictures" / "b.jpg").unlink()
    (coco / "pictures" / "b.jpg").symlink_to("/proc/self/mem")
    completed = convert_coco(coco)
    assert_refused(completed, "the pictures cannot be copied to out/images", code=5)
    assert contents(coco / "out") == {}


def test_an_interrupt_says_that_converting_again_completes_the_folder(
    coco: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    copied: list[Path] = []

    def copy(source: Path, target: Path) -> None:
        if copied:
            raise KeyboardInterrupt
        copied.append(source)
        shutil.copyfile(source, target)

    flags = ["--instances_file=instances.json", "--images_folder=pictures", "--output_folder=out"]
    monkeypatch.chdir(coco)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", copy)
        assert main(["convert", "coco", *flags]) == 130
    assert capsys.readouterr().err == (
        "evaltools: interrupted, so files may be missing; the same command again completes them\n"
    )
    assert os.listdir(coco / "out") == ["images"]
    assert os.listdir(coco / "out" / "images") == ["b.jpg"]
    assert main(["convert", "coco", *flags]) == 0
    assert sorted(os.listdir(coco / "out")) == ["ground_truth.pb", "images", "instances.json", "labels.txt"]
    assert sorted(os.listdir(coco / "out" / "images")) == ["a.png", "b.jpg"]
