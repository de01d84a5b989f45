"""COCO instances files: what is read, what is written, what is refused and in which words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pycocotools.coco import COCO

from evaltools.datasets.coco_instances import instances_json, parse_instances, read_instances
from evaltools.datasets.object_annotations import (
    AnnotatedImage,
    AnnotatedImages,
    Category,
    ObjectAnnotation,
)
from evaltools.errors import DataError

Entry = dict[str, Any]
FLAG = "--ground_truth_annotations"
IMAGE: Entry = {"id": 7, "file_name": "a.jpg", "width": 80, "height": 40}
ANNOTATION: Entry = {"image_id": 7, "category_id": 3, "bbox": [1, 2.5, 30, 4], "area": 99.5, "iscrowd": 0}
CATEGORY: Entry = {"id": 3, "name": "dog"}


def document(**parts: list[Entry]) -> Entry:
    return {"images": [IMAGE], "annotations": [ANNOTATION], "categories": [CATEGORY], **parts}


def parse(**parts: list[Entry]) -> AnnotatedImages:
    return parse_instances(json.dumps(document(**parts)).encode(), "x.json")


def only_object(**changes: object) -> ObjectAnnotation:
    """The object read where its entry is changed; None takes a key out."""
    changed = {key: value for key, value in {**ANNOTATION, **changes}.items() if value is not None}
    ((read,),) = (image.annotations for image in parse(annotations=[changed]).images)
    return read


def refused(content: bytes) -> str:
    with pytest.raises(DataError) as caught:
        parse_instances(content, f"{FLAG}=x.json")
    message = str(caught.value)
    assert message.startswith(f"{FLAG}=x.json")
    return message


def random_data(seed: int) -> AnnotatedImages:
    random = np.random.default_rng(seed)
    categories = tuple(Category(number, f"kind {number} é") for number in (90, 1, 13))
    images = []
    for number in random.permutation(8).tolist():
        annotations = []
        for _ in range(random.integers(0, 4)):
            x, y, width, height = random.uniform(0, 200, 4).tolist()
            category = categories[random.integers(0, 3)].id
            annotations.append(
                ObjectAnnotation(category, (x, y, width, height), float(random.uniform(0, 4e4)), random.random() < 0.3)
            )
        images.append(AnnotatedImage(number, f"ordner/{number} ü.jpg", 300 + number, 200, tuple(annotations)))
    return AnnotatedImages(categories, tuple(images))


def test_pictures_objects_and_categories_are_read() -> None:
    crowd = {**ANNOTATION, "bbox": [0, 0, 80, 40], "area": 12, "iscrowd": 1}
    second = {"id": 2, "file_name": "sub/b.png", "width": 5, "height": 6}
    read = parse(images=[IMAGE, second], annotations=[ANNOTATION, crowd], categories=[CATEGORY, {"id": 1, "name": "x"}])
    assert read == AnnotatedImages(
        categories=(Category(3, "dog"), Category(1, "x")),
        images=(
            AnnotatedImage(
                7,
                "a.jpg",
                80,
                40,
                (
                    ObjectAnnotation(3, (1.0, 2.5, 30.0, 4.0), 99.5),
                    ObjectAnnotation(3, (0.0, 0.0, 80.0, 40.0), 12.0, is_crowd=True),
                ),
            ),
            AnnotatedImage(2, "sub/b.png", 5, 6, ()),
        ),
    )


@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read_again(seed: int) -> None:
    data = random_data(seed)
    assert parse_instances(instances_json(data), "x") == data


def test_the_written_file_serves_pycocotools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = random_data(1)
    (tmp_path / "x.json").write_bytes(instances_json(data))
    read = COCO(str(tmp_path / "x.json"))
    count = sum(len(image.annotations) for image in data.images)
    assert sorted(read.anns) == list(range(1, count + 1))
    for image in data.images:
        written = [
            (each["category_id"], tuple(each["bbox"]), each["area"], each["iscrowd"])
            for each in read.loadAnns(read.getAnnIds(imgIds=[image.id]))
        ]
        assert written == [(each.category_id, each.bbox, each.area, int(each.is_crowd)) for each in image.annotations]
        assert read.imgs[image.id]["file_name"] == image.file_name
    assert {number: each["name"] for number, each in read.cats.items()} == {
        category.id: category.name for category in data.categories
    }


@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf", b" \n"])
@pytest.mark.parametrize("indent", [None, 2])
def test_line_breaks_and_a_byte_order_mark_do_not_matter(start: bytes, indent: int | None) -> None:
    content = start + json.dumps(document(), indent=indent).encode()
    assert parse_instances(content, "x") == parse()


def test_other_keys_are_left_alone() -> None:
    extra: Entry = {"segmentation": None, "id": "no number", "ignore": True, "keypoints": [1, [2]]}
    read = parse_instances(
        json.dumps(
            {
                "info": {"year": None, "final": True},
                "licenses": [False],
                **document(
                    images=[{**IMAGE, "license": None}],
                    annotations=[{**ANNOTATION, **extra}],
                    categories=[{**CATEGORY, "supercategory": None}],
                ),
            }
        ).encode(),
        "x",
    )
    assert read == parse()


@pytest.mark.parametrize(("given", "crowd"), [(0, False), (1, True), (False, False), (True, True), (None, False)])
def test_crowd_as_number_and_truth_value(given: object, crowd: bool) -> None:
    assert only_object(iscrowd=given).is_crowd is crowd


def test_without_an_area_that_of_the_box_counts() -> None:
    assert only_object(area=None).area == 120
    assert parse(annotations=[{**ANNOTATION, "area": None}]).images[0].annotations[0].area == 120
    assert only_object(area=0).area == 0


def test_annotations_of_a_picture_that_is_not_listed_are_left_out_whatever_they_say() -> None:
    stray = {**ANNOTATION, "image_id": 1, "category_id": 99, "bbox": [0, 0, -1, 0], "area": -1}
    found = parse(annotations=[stray, ANNOTATION])
    assert found.unlisted_annotations == 1
    assert replace(found, unlisted_annotations=0) == parse()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "truncated"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{'images': []}", "malformed"),
        (b"not JSON", "malformed"),
        (json.dumps(document()).encode()[:-1], "truncated"),
        (json.dumps(document()).encode() + b"x", "malformed"),
        (json.dumps(document()).encode("utf-16"), "malformed"),
        (json.dumps(document()).replace("dog", "d\\ud800g").encode(), ""),
        (json.dumps(document()).encode().replace(b"dog", b"d\xffg"), "(?i:utf-8)"),
        (json.dumps(document()).replace("99.5", "NaN").encode(), "malformed"),
        (json.dumps(document()).replace("99.5", "1e999").encode(), "out of range"),
        (json.dumps(document()).replace("30", "1e999").encode(), "out of range"),
    ],
)
def test_what_is_no_such_file_is_told_the_way_to_one(content: bytes, reason: str) -> None:
    message = refused(content)
    assert re.search(f"x.json is not a COCO instances file: .*{reason}", message)
    assert "images (id, file_name, width, height)" in message
    assert "evaltools convert makes one" in message


def test_an_id_beyond_64_bits_is_refused() -> None:
    """Other values that cannot be are in ``tests/refusals/coco_instances.txt``."""
    assert "at `$.categories[0].id`" in refused(
        json.dumps(document(categories=[{"id": 2**63, "name": "dog"}])).encode()
    )


def test_a_whole_size_written_as_float_is_read() -> None:
    [image] = parse_instances(json.dumps(document(images=[{**IMAGE, "width": 80.0}])).encode(), "x.json").images
    assert (image.width, type(image.width)) == (80, int)


def test_files_that_cannot_be_read_are_named_with_their_flag(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^{FLAG}={tmp_path} cannot be read: Is a directory; give a COCO inst"):
        read_instances(tmp_path, FLAG)
    with pytest.raises(DataError, match=rf"^{FLAG}={tmp_path}/none.json cannot be read: No such file"):
        read_instances(tmp_path / "none.json", FLAG)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DataError, match=rf"^{FLAG}={tmp_path}/x.json/y cannot be read: Not a directory"):
        read_instances(tmp_path / "x.json" / "y", FLAG)
    with pytest.raises(DataError, match=rf"^{FLAG}={tmp_path}/x.json is not a COCO instances file: "):
        read_instances(tmp_path / "x.json", FLAG)
