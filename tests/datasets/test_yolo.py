"""YOLO label folders: lines worked out by hand, a round trip from COCO boxes, what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from PIL import Image

from evaltools.datasets.picture_files import AnnotatedFolder
from evaltools.datasets.yolo import COCO_IDS, names_in_yaml, parse_line, read_yolo
from evaltools.errors import DataError

NAMES = ("person", "car", "dog")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three pictures of 80x40; ``a`` has a box and an outline, ``b`` an empty file, ``c`` none."""
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for name in ("a.jpg", "b.png", "c.JPG"):
        Image.new("RGB", (80, 40)).save(tmp_path / "images" / name)
    (tmp_path / "labels" / "a.txt").write_text("2 0.25 0.5 0.5 0.5\n\n0 0.5 0.5 1 0.5 0.5 1\n")
    (tmp_path / "labels" / "b.txt").write_text("\n")
    (tmp_path / "labels" / "classes.txt").write_text("person\ncar\ndog\n")
    return tmp_path


def read(folder: Path, **options: bool) -> AnnotatedFolder:
    return read_yolo(folder / "images", folder / "labels", NAMES, **options)


def test_boxes_and_outlines_in_pixels(folder: Path) -> None:
    found = read(folder)
    first = found.data.images[0]
    assert (first.file_name, first.width, first.height) == ("a.jpg", 80, 40)
    box, outline = first.annotations
    assert (box.category_id, box.bbox, box.area) == (3, (0.0, 10.0, 40.0, 20.0), 800.0)
    # Triangle (40, 20), (80, 20), (40, 40): half of 40 x 20.
    assert (outline.category_id, outline.bbox, outline.area) == (1, (40.0, 20.0, 40.0, 20.0), 400.0)
    assert not box.is_crowd


def test_a_picture_with_an_empty_or_no_label_file_has_no_objects(folder: Path) -> None:
    found = read(folder)
    assert [image.file_name for image in found.data.images] == ["a.jpg", "b.png", "c.JPG"]
    assert [len(image.annotations) for image in found.data.images] == [2, 0, 0]
    assert found.pictures == tuple(folder / "images" / name for name in ("a.jpg", "b.png", "c.JPG"))
    assert found.remarks == ()


def test_coco_ids_are_those_of_the_published_list() -> None:
    published = [*range(1, 12), *range(13, 26), 27, 28, *range(31, 45), *range(46, 66), 67, 70, *range(72, 83)]
    assert list(COCO_IDS) == [*published, *range(84, 91)]
    assert len(COCO_IDS) == 80


def test_80_classes_of_coco_without_its_ids_are_remarked(folder: Path) -> None:
    names = ["person", *(f"class {number}" for number in range(78)), "toothbrush"]
    remarked = read_yolo(folder / "images", folder / "labels", names)
    assert "--coco_ids=true" in remarked.remarks[0]
    numbered = read_yolo(folder / "images", folder / "labels", names, coco_ids=True)
    assert numbered.remarks == ()
    assert numbered.data.categories[-1].id == 90


def test_boxes_written_with_six_digits_come_back(folder: Path) -> None:
    """Each box is written as YOLO tools write it; the error is what six digits leave."""
    chance = random.Random(0)
    width, height = 640, 427
    for _ in range(200):
        x, y = chance.uniform(0, 600), chance.uniform(0, 400)
        box = (x, y, chance.uniform(1, width - x), chance.uniform(1, height - y))
        shares = ((x + box[2] / 2) / width, (y + box[3] / 2) / height, box[2] / width, box[3] / height)
        line = "0 " + " ".join(f"{share:.6f}" for share in shares)
        found = parse_line(line, width, height, (1,), "a.txt").bbox
        assert found == pytest.approx(box, abs=1e-6 * width)
        assert found[0] >= 0
        assert found[0] + found[2] <= width
        assert found[1] + found[3] <= height


@pytest.mark.parametrize("size", [1, 3, 426, 427, 500, 612, 640, 1023, 4032])
def test_a_box_that_ends_at_the_edge_does_not_stick_out_by_rounding(size: int) -> None:
    """Otherwise the native form would leave it out."""
    lengths = range(1, size + 1, max(1, size // 300))
    for start, extent in [(edge, length) for length in lengths for edge in (0, size - length)]:
        centre, share = (start + extent / 2) / size, extent / size
        for digits in (6, 8, 17):
            line = f"0 {centre:.{digits}f} 0.5 {share:.{digits}f} 1"
            x, _, width, _ = parse_line(line, size, 10, (1,), "a.txt").bbox
            assert x >= 0
            assert x + width <= size
            assert abs(x - start) + abs(width - extent) < 4e-6 * size


def test_a_wrong_line_is_named_with_its_file(folder: Path) -> None:
    """What is wrong with a line is in ``tests/refusals/yolo_lines.txt``."""
    (folder / "labels" / "b.txt").write_text("0 0.5 0.5 0.5 0.5\n3 0.5 0.5 0.5 0.5\n")
    with pytest.raises(DataError, match="b.txt, line 2: class '3'; classes go from 0 to 2"):
        read(folder)


def test_an_outline_has_the_same_area_either_way_round() -> None:
    """An L of 3 squares of 10 x 10 pixels."""
    corners = ["0 0", "0.2 0", "0.2 0.1", "0.1 0.1", "0.1 0.2", "0 0.2"]
    for points in (corners, corners[::-1]):
        found = parse_line(f"0 {' '.join(points)}", 100, 100, (1,), "a.txt")
        assert found.bbox == pytest.approx((0, 0, 20, 20))
        assert found.area == pytest.approx(300)


def test_label_files_without_picture_are_remarked(folder: Path) -> None:
    (folder / "labels" / "z.txt").write_text("0 0.5 0.5 0.5 0.5\n")
    assert read(folder).remarks == ("1 label files, such as z.txt, have no picture and are left out",)


def test_labels_of_other_pictures_are_refused(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / "labels" / f"{name}.txt").rename(folder / "labels" / f"other_{name}.txt")
    with pytest.raises(DataError, match=r"none of the 3 pictures.*That of a.jpg is named a.txt"):
        read(folder)


def test_two_pictures_for_one_label_file_are_refused(folder: Path) -> None:
    Image.new("RGB", (8, 8)).save(folder / "images" / "a.png")
    with pytest.raises(DataError, match=r"a.jpg and a.png would share the label file a.txt"):
        read(folder)


def test_a_damaged_picture_is_named(folder: Path) -> None:
    (folder / "images" / "b.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"the size of .*b.png cannot be read"):
        read(folder)


def test_an_exif_rotation_is_remarked(folder: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (80, 40)).save(folder / "images" / "c.JPG", exif=exif)
    found = read(folder)
    assert (found.data.images[2].width, found.data.images[2].height) == (80, 40)
    assert "1 pictures, such as c.JPG, carry an EXIF rotation" in found.remarks[0]


@pytest.mark.parametrize(
    "content", [{"names": ["cat", 7]}, {"names": {1: 7, 0: "cat"}}, {"nc": 2, "path": "x", "names": ["cat", "7"]}]
)
def test_names_of_a_yaml_file(content: object) -> None:
    assert names_in_yaml(content, "data.yaml") == ("cat", "7")
