"""``evaltools convert``: what is refused, and that inputs stay as they are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from PIL import Image

from evaltools.cli.main import main
from tests.cli.convert.annotated_pictures import coco_document, convert_coco, make_coco_folder, write_coco
from tests.command import Completed, evaltools_here


@pytest.fixture
def coco(tmp_path: Path) -> Path:
    """A folder with ``instances.json`` and ``pictures``."""
    return make_coco_folder(tmp_path)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def assert_refused(completed: Completed, message: str, code: int = 2) -> None:
    assert message in completed.err
    assert completed.code == code
    assert "Traceback" not in completed.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["coco"], "missing: --instances_file=... --output_folder=... --images_folder=... (or --copy_images=false)."),
        (["coco", "--instance_file=x"], "no such flag. Did you mean --instances_file?"),
    ],
)
def test_missing_and_unknown_flags(flags: list[str], message: str) -> None:
    assert_refused(evaltools_here("convert", *flags), message)


def test_missing_pictures_are_counted_before_anything_is_written(coco: Path) -> None:
    for name in ("a.png", "b.jpg"):
        (coco / "pictures" / name).unlink()
    (coco / "pictures" / "a.png").mkdir()
    assert_refused(convert_coco(coco), "2 of 2 pictures are missing, the first is pictures/b.jpg")
    assert not (coco / "out").exists()
    assert_refused(convert_coco(coco, "--copy_images=false"), "2 of 2 pictures are missing")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret.jpg", "instances.json names the picture '../secret.jpg'"),
        ("/etc/passwd", "names the picture '/etc/passwd'"),
        ("sub/a.png", "1 names of pictures are there more than once, such as 'a.png'"),
        ("a\ud800.jpg", "instances.json"),
        ("x" * 300 + ".jpg", "1 of 2 pictures are missing"),
    ],
)
def test_names_that_leave_the_folder_or_clash_are_refused(coco: Path, name: str, message: str) -> None:
    document = coco_document()
    document["images"][0]["file_name"] = name
    write_coco(coco, **document)
    assert_refused(convert_coco(coco), message)
    assert not (coco / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": 2**70}, "ids are from 0 to 2^63 - 1"),
        ({"id": -7}, "ids are from 0 to 2^63 - 1"),
        ({"width": 10**400}, "Number out of range"),
        ({"width": 10**12}, "sizes in pixels to 2147483647"),
    ],
)
def test_numbers_that_no_ground_truth_can_hold_are_refused(coco: Path, change: dict[str, int], message: str) -> None:
    document = coco_document()
    document["images"][0].update(change)
    for entry in document["annotations"]:
        entry["image_id"] = change.get("id", 7) if entry["image_id"] == 7 else entry["image_id"]
    write_coco(coco, **document)
    assert_refused(convert_coco(coco), message)


@pytest.mark.parametrize(
    "change",
    [
        {"bbox": [-1e300, 0, 5, 5]},
        {"bbox": [-1e308, 0, 1.7e308, 5]},
        {"bbox": [0, 0, 1e200, 1e200]},
        {"bbox": [0, 0, 5, 1.1e9]},
        {"bbox": [0, 0.9e9, 5, 0.9e9]},
        {"area": 1e300},
    ],
)
def test_boxes_that_no_picture_can_hold_are_refused(coco: Path, change: dict[str, object]) -> None:
    document = coco_document()
    document["annotations"][1].update(change)
    if "bbox" in change:
        del document["annotations"][1]["area"]
    write_coco(coco, **document)
    completed = convert_coco(coco)
    assert_refused(completed, "the picture a.png has an object with the box x ")
    assert "Warning" not in completed.err
    assert not (coco / "out").exists()


@pytest.mark.parametrize(
    ("categories", "message"),
    [
        ([{"id": 1, "name": "a\nb"}, {"id": 3, "name": "c"}], "the category 1 is named 'a\\nb'"),
        ([{"id": 1, "name": "a"}, {"id": 3, "name": "c"}, {"id": 10**9, "name": "d"}], "the category 'd' has the id"),
        ([], "category_id 3, which is not among the 0 categories"),
    ],
)
def test_categories_that_no_label_file_can_hold_are_refused(coco: Path, categories: object, message: str) -> None:
    write_coco(coco, categories=categories)
    assert_refused(convert_coco(coco), message)


def test_no_picture_left_is_refused(coco: Path) -> None:
    (coco / "allowed.txt").write_text("5\n")
    completed = convert_coco(coco, "--allowlist_file=allowed.txt")
    assert_refused(completed, "none of its 3 pictures is taken; 1 have no objects. Pass --keep_empty_images=true")


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


def test_an_output_folder_equal_to_or_inside_that_of_the_pictures(coco: Path) -> None:
    before = contents(coco / "pictures")
    assert convert_coco(coco, "--output_folder=pictures").code == 0
    assert sorted(os.listdir(coco / "pictures" / "images")) == ["a.png", "b.jpg"]
    assert convert_coco(coco, "--output_folder=pictures/inner").code == 0
    after = contents(coco / "pictures")
    assert {name: after[name] for name in before} == before


def test_a_picture_that_differs_is_not_replaced(coco: Path) -> None:
    (coco / "out" / "images").mkdir(parents=True)
    Image.new("RGB", (1, 1)).save(coco / "out" / "images" / "b.jpg")
    before = contents(coco)
    assert_refused(convert_coco(coco), "out/images/b.jpg is there and differs from pictures/b.jpg; give a new folder")
    assert contents(coco) == before


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
