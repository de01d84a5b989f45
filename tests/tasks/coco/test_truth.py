"""The pictures of a detection evaluation, and which objects belong to which."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from evaltools.datasets.yolo import COCO_IDS
from evaltools.errors import DataError
from evaltools.tasks.coco.truth import EvaluatedPictures, Truth, dense_category_ids, load_pictures
from tests.detection_set import DetectionSet, make_detection_set, native_truth, picture_name

FIRST, SECOND, THIRD = (picture_name(index) for index in range(3))


@pytest.fixture
def made(tmp_path: Path) -> DetectionSet:
    """Three pictures with four annotated objects each."""
    return make_detection_set(tmp_path / "set", model=b"none", count=3)


def change(made: DetectionSet, change: Callable[[dict[str, Any]], None]) -> None:
    """Both ground truths after a change of the document."""
    document = made.document()
    change(document)
    made.annotations.write_text(json.dumps(document))
    made.proto.write_bytes(native_truth(document))


def from_json(made: DetectionSet, **options: Any) -> EvaluatedPictures:
    return load_pictures(made.images, made.annotations, None, **options)


def from_proto(made: DetectionSet, **options: Any) -> EvaluatedPictures:
    return load_pictures(made.images, None, made.proto, **options)


def known(pictures: EvaluatedPictures) -> Truth:
    assert pictures.truth is not None
    return pictures.truth


def names(pictures: EvaluatedPictures) -> list[str]:
    return [path.name for path in pictures.paths]


@pytest.mark.parametrize("load", [from_json, from_proto])
def test_objects_belong_to_the_picture_of_their_name(
    made: DetectionSet, load: Callable[[DetectionSet], EvaluatedPictures]
) -> None:
    def turn_round(document: dict[str, Any]) -> None:
        document["images"].reverse()
        document["annotations"].reverse()

    change(made, turn_round)
    pictures = load(made)
    assert names(pictures) == [FIRST, SECOND, THIRD]
    truth = known(pictures)
    assert [image.file_name for image in truth.images] == [FIRST, SECOND, THIRD]
    assert [image.id for image in truth.images] == [11, 12, 13]
    assert [(image.width, image.height) for image in truth.images] == [(24, 16)] * 3
    assert [sorted(picture.class_ids.tolist()) for picture in truth.native] == [[1, 1, 2, 2]] * 3
    expected = [entry for entry in made.document()["annotations"] if entry["image_id"] == 12]
    given = truth.images[1].annotations
    assert [entry.category_id for entry in given] == [entry["category_id"] for entry in expected]
    assert [entry.bbox for entry in given] == [pytest.approx(entry["bbox"], abs=1e-5) for entry in expected]
    assert [entry.area for entry in given] == [pytest.approx(entry["area"], abs=1e-4) for entry in expected]
    corners = [(y / 16, x / 24, (y + h) / 16, (x + w) / 24) for x, y, w, h in (entry["bbox"] for entry in expected)]
    np.testing.assert_array_equal(truth.native[1].boxes, np.array(corners, np.float32))


def test_both_kinds_are_named_and_hashed(made: DetectionSet) -> None:
    annotations, proto = known(from_json(made)), known(from_proto(made))
    assert (annotations.used.kind, annotations.used.file) == ("COCO annotations", str(made.annotations))
    assert (proto.used.kind, proto.used.file) == ("native proto", str(made.proto))
    assert len({annotations.used.sha256, proto.used.sha256}) == 2
    assert [(entry.id, entry.name) for entry in annotations.categories] == [(1, "red"), (2, "green"), (3, "blue")]
    assert [(entry.id, entry.name) for entry in proto.categories] == [(1, "class 1"), (2, "class 2")]
    named = known(from_proto(made, labels=("???", "Rot", "Grün")))
    assert [(entry.id, entry.name) for entry in named.categories] == [(1, "Rot"), (2, "Grün")]


@pytest.mark.parametrize("load", [from_json, from_proto])
def test_pictures_that_only_one_side_has_are_left_out_and_named(
    made: DetectionSet, load: Callable[[DetectionSet], EvaluatedPictures]
) -> None:
    (made.images / SECOND).unlink()
    Image.new("RGB", (24, 16)).save(made.images / "000010.png")
    (made.images / "notes.txt").write_text("x")
    pictures = load(made)
    assert names(pictures) == [FIRST, THIRD]
    assert pictures.unlisted == ("000010.png",)
    assert known(pictures).missing == (SECOND,)
    assert [image.id for image in known(pictures).images] == [11, 13]
    assert pictures.folder.skipped == ("notes.txt",)


@pytest.mark.parametrize("load", [from_json, from_proto])
def test_the_native_tool_takes_every_file_unlisted_ones_without_objects(
    made: DetectionSet, load: Callable[..., EvaluatedPictures]
) -> None:
    Image.new("RGB", (30, 20)).save(made.images / "000010.png")
    (made.images / "notes.txt").write_text("x")
    pictures = load(made, native=True, raw_size=(12, 8))
    assert names(pictures) == ["000010.png", FIRST, SECOND, THIRD, "notes.txt"]
    assert (pictures.unlisted, pictures.folder.skipped) == ((), ())
    images = known(pictures).images
    assert [image.id for image in images] == [14, 11, 12, 13, 15]
    assert pictures.ids == (None, 11, 12, 13, None)
    assert [(image.width, image.height) for image in images] == [(30, 20), (24, 16), (24, 16), (24, 16), (12, 8)]
    assert [len(picture.class_ids) for picture in known(pictures).native] == [0, 4, 4, 4, 0]
    assert known(pictures).native[0].boxes.shape == (0, 4)


def test_the_first_pictures_are_the_first_that_are_evaluated(made: DetectionSet) -> None:
    Image.new("RGB", (24, 16)).save(made.images / "000001.png")
    assert names(from_json(made, num_images=2)) == [FIRST, SECOND]
    assert names(from_json(made, num_images=2, native=True)) == ["000001.png", FIRST]
    assert names(from_json(made, num_images=9)) == names(from_json(made, num_images=-1)) == [FIRST, SECOND, THIRD]
    assert names(load_pictures(made.images, None, None, num_images=2)) == ["000001.png", FIRST]


def test_annotations_beyond_the_picture_are_dropped_for_native_alone(made: DetectionSet) -> None:
    """They are counted among the pictures that are evaluated."""

    def enlarge(document: dict[str, Any]) -> None:
        for number, entry in enumerate(document["annotations"]):
            if number in (0, 4, 5):
                entry["bbox"][2] = 25

    change(made, enlarge)
    truth = known(from_json(made))
    assert truth.used.dropped_by_native == 3
    assert [len(image.annotations) for image in truth.images] == [4, 4, 4]
    assert [len(picture.class_ids) for picture in truth.native] == [3, 2, 4]
    assert known(from_json(made, num_images=1)).used.dropped_by_native == 1


def test_file_names_may_have_folders(made: DetectionSet) -> None:
    change(made, lambda document: document["images"][0].update(file_name=f"val2017/{FIRST}"))
    assert names(from_json(made)) == [FIRST, SECOND, THIRD]
    assert len(known(from_json(made)).native[0].class_ids) == 4


def test_a_damaged_picture_is_listed_and_fails_later(made: DetectionSet) -> None:
    (made.images / SECOND).write_bytes(b"no picture")
    for load in (from_json, from_proto):
        assert names(load(made)) == [FIRST, SECOND, THIRD]


@pytest.mark.parametrize("load", [from_json, from_proto])
def test_no_picture_in_common_is_refused(made: DetectionSet, load: Callable[[DetectionSet], EvaluatedPictures]) -> None:
    for path in made.images.iterdir():
        path.rename(path.with_name(f"x{path.name}"))
    with pytest.raises(DataError) as caught:
        load(made)
    assert "none of the 3 pictures" in str(caught.value)
    assert "(such as 'x000011.png')" in str(caught.value)
    assert "(such as '000011.png'); take the annotations that belong to these pictures" in str(caught.value)


def test_annotations_without_pictures_or_with_one_name_twice_are_refused(made: DetectionSet) -> None:
    change(made, lambda document: document["images"][1].update(file_name=f"other/{FIRST}"))
    with pytest.raises(DataError, match=f"has several pictures named '{FIRST}'"):
        from_json(made)
    change(made, lambda document: document["images"].clear())
    with pytest.raises(DataError, match="lists no pictures; there is nothing to evaluate"):
        from_json(made)


def test_classes_counted_one_by_one_are_those_of_the_file_or_cocos_eighty(made: DetectionSet) -> None:
    """A proto holds only the categories that occur, and COCO's 80 of 90 if it may."""
    assert dense_category_ids(None) == ()
    change(made, lambda document: document["categories"].append({"id": 90, "name": "last"}))
    assert dense_category_ids(known(from_json(made))) == (1, 2, 3, 90)
    assert dense_category_ids(known(from_proto(made))) == COCO_IDS
    assert (len(COCO_IDS), COCO_IDS[11], COCO_IDS[-1]) == (80, 13, 90)
    change(made, lambda document: document["annotations"][0].update(category_id=12))
    assert dense_category_ids(known(from_proto(made))) == (1, 2, 12)
