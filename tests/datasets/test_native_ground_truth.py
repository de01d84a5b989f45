"""The native ground truth: its bytes, written by hand here, and what the native conversion makes of COCO.

Wire format: a key is ``field << 3 | kind``, kind 0 a varint, 2 a length and that many bytes, 5 four bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping

import numpy as np
import pytest

from evaltools.datasets.native_ground_truth import (
    NativeGroundTruth,
    NativePicture,
    from_annotations,
    parse_ground_truth,
    to_annotations,
)
from evaltools.datasets.object_annotations import AnnotatedImage, ObjectAnnotation
from evaltools.errors import DataError

FLAG = "--ground_truth_proto"
Box = tuple[float, float, float, float]
Picture = tuple[str, int, list[tuple[int, Box]]]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    written = b""
    while number > 0x7F:
        written += bytes([number & 0x7F | 0x80])
        number >>= 7
    return written + bytes([number])


def message(*fields: tuple[int, int | float | bytes]) -> bytes:
    """Integers as varints, floats as four bytes, bytes with their length."""
    written = b""
    for field, value in fields:
        if isinstance(value, bytes):
            written += varint(field << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, float):
            written += varint(field << 3 | 5) + struct.pack("<f", value)
        else:
            written += varint(field << 3) + varint(value)
    return written


def written_by_hand(*pictures: Picture) -> bytes:
    """Fields in the order of their numbers; a box is top, bottom, left, right."""
    return message(
        *(
            (
                1,
                message(
                    *(
                        (1, message((1, class_id), (2, message((1, top), (2, bottom), (3, left), (4, right)))))
                        for class_id, (top, left, bottom, right) in objects
                    ),
                    (2, name.encode()),
                    (3, image_id),
                ),
            )
            for name, image_id, objects in pictures
        )
    )


def plain(truth: NativeGroundTruth) -> list[Picture]:
    return [
        (
            picture.name,
            picture.image_id,
            [
                (class_id, (top, left, bottom, right))
                for class_id, (top, left, bottom, right) in zip(
                    picture.class_ids.tolist(), picture.boxes.tolist(), strict=True
                )
            ],
        )
        for picture in truth.pictures
    ]


TWO: list[Picture] = [
    ("b ü.jpg", 7, [(90, (0.25, 0.5, 0.75, 1.0)), (1, (0.0, 0.125, 0.5, 0.25))]),
    ("a.jpg", 2**40, []),
]


def test_fields_are_read_by_their_numbers() -> None:
    found = parse_ground_truth(written_by_hand(*TWO), "x.pb")
    assert plain(found) == TWO
    for picture in found.pictures:
        assert picture.class_ids.dtype == np.int64
        assert picture.boxes.dtype == np.float32
        assert picture.boxes.shape == (len(picture.class_ids), 4)


def test_fields_are_written_with_their_numbers() -> None:
    data = parse_ground_truth(written_by_hand(*TWO), "x.pb").to_bytes()
    assert data == written_by_hand(*TWO)


TEXT_PROTO = b'detection_results {\n  image_name: "a.jpg"\n  image_id: 7\n}\n'
JSON = json.dumps({"images": [], "annotations": [], "categories": []})


def refused(content: bytes) -> str:
    with pytest.raises(DataError) as caught:
        parse_ground_truth(content, f"{FLAG}=x.pb")
    told = str(caught.value)
    assert told.startswith(f"{FLAG}=x.pb")
    return told


@pytest.mark.parametrize(
    "content",
    [
        TEXT_PROTO,
        JSON.encode(),
        json.dumps(json.loads(JSON), indent=1).encode(),
        written_by_hand(*TWO)[:-1],
        b"\xff\xd8\xff\xe0\x00\x10JFIF",
    ],
    ids=["text proto", "JSON", "JSON on lines", "cut off", "a picture"],
)
def test_what_is_no_such_message_is_told_the_way_to_one(content: bytes) -> None:
    told = refused(content)
    assert "x.pb is not a binary ObjectDetectionGroundTruth (" in told
    assert "A text proto or a JSON file does not do; --ground_truth_annotations takes COCO instances JSON" in told


@pytest.mark.parametrize("content", [b"", message((12, b"unknown"))], ids=["empty", "of another kind"])
def test_a_file_without_pictures_is_refused(content: bytes) -> None:
    assert refused(content).endswith("x.pb holds no pictures; make it again with evaltools convert coco")


def test_a_picture_without_a_name_is_refused() -> None:
    told = refused(message((1, message((2, b"a.jpg"))), (1, message((3, 8)))))
    assert "x.pb: detection_results[1] has no image_name, by which pictures are found" in told


def test_a_name_given_twice_is_refused() -> None:
    told = refused(written_by_hand(("a.jpg", 1, []), ("b.jpg", 2, []), ("a.jpg", 3, [])))
    assert told.endswith("x.pb names the picture 'a.jpg' twice; every name must be there once")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_boxes_that_are_no_finite_numbers_are_refused(value: float) -> None:
    told = refused(written_by_hand(("a.jpg", 1, [(1, (0.0, 0.0, 1.0, 1.0)), (1, (0.0, value, 1.0, 1.0))])))
    assert f"x.pb: object 1 of the picture 'a.jpg' has the box [0.0, {value}, 1.0, 1.0]; expected are finite" in told


@pytest.mark.parametrize("box", [(0.5, 0.0, 0.25, 1.0), (0.0, 0.5, 1.0, 0.25)], ids=["bottom", "right"])
def test_boxes_that_end_before_they_begin_are_refused(box: Box) -> None:
    told = refused(written_by_hand(("b.jpg", 2, []), ("a.jpg", 1, [(1, (0.5, 0.5, 0.5, 0.5)), (1, box)])))
    assert f"x.pb: object 1 of the picture 'a.jpg' has the box {list(box)} (top, left, bottom, right), which" in told


def float32(value: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded


def converted_by_hand(images: list[AnnotatedImage]) -> tuple[list[Picture], int]:
    """The rules of preprocess_coco_minival.py, one annotation at a time."""
    pictures: list[Picture] = []
    dropped = 0
    for image in images:
        kept: list[tuple[int, Box]] = []
        for annotation in image.annotations:
            left, top, width, height = annotation.bbox
            right, bottom = left + width, top + height
            if top > image.height or bottom > image.height or left > image.width or right > image.width:
                dropped += 1
                continue
            kept.append(
                (
                    annotation.category_id,
                    (
                        float32(top / image.height),
                        float32(left / image.width),
                        float32(bottom / image.height),
                        float32(right / image.width),
                    ),
                )
            )
        pictures.append((image.file_name.rsplit("/", 1)[-1], image.id, kept))
    return pictures, dropped


def random_images(seed: int) -> list[AnnotatedImage]:
    random = np.random.default_rng(seed)
    images = []
    for image_id in random.permutation(12).tolist():
        width, height = random.integers(50, 700, 2).tolist()
        annotations = []
        for _ in range(random.integers(0, 6)):
            x, y = random.uniform(-9, 1.05 * width), random.uniform(-9, 1.05 * height)
            w, h = random.choice([0, width - x, random.uniform(0, width)]), random.uniform(0, 0.6 * height)
            box = [round(float(side), 2) if seed % 2 else float(side) for side in (x, y, abs(w), h)]
            annotations.append(ObjectAnnotation(int(random.integers(1, 91)), (box[0], box[1], box[2], box[3]), 1.0))
        images.append(AnnotatedImage(image_id, f"train/{image_id:012}.jpg", width, height, tuple(annotations)))
    return images


@pytest.mark.parametrize("seed", range(4))
def test_conversion_by_the_rules_of_the_native_script(seed: int) -> None:
    images = random_images(seed)
    expected, dropped = converted_by_hand(images)
    conversion = from_annotations(images)
    assert plain(conversion.ground_truth) == expected
    assert conversion.dropped == dropped > 0
    assert conversion.ground_truth.to_bytes() == written_by_hand(*expected)


def image(*boxes: Box, crowd: bool = False) -> AnnotatedImage:
    return AnnotatedImage(3, "a/b.jpg", 80, 40, tuple(ObjectAnnotation(5, box, 1.0, crowd) for box in boxes))


@pytest.mark.parametrize(
    ("box", "kept"),
    [
        ((0, 0, 80, 40), True),
        ((0, 0, 80.001, 40), False),
        ((0, 0, 80, 40.001), False),
        ((80, 40, 0, 0), True),
        ((80.001, 0, 0, 0), False),
        ((0, 40.001, 0, 0), False),
        ((-7, -9, 20, 20), True),
    ],
)
def test_boxes_beyond_the_right_and_lower_side_are_left_out_and_not_clipped(box: Box, kept: bool) -> None:
    conversion = from_annotations([image(box, (0, 0, 1, 1))])
    assert conversion.dropped == (not kept)
    assert len(conversion.ground_truth.pictures[0].class_ids) == 1 + kept


def test_crowd_regions_become_ordinary_objects() -> None:
    box = (20.0, 5.0, 40.0, 30.0)
    assert plain(from_annotations([image(box, crowd=True)]).ground_truth) == plain(
        from_annotations([image(box)]).ground_truth
    )


def sizes_of(images: list[AnnotatedImage]) -> Mapping[str, tuple[int, int]]:
    return {entry.file_name.rsplit("/", 1)[-1]: (entry.width, entry.height) for entry in images}


@pytest.mark.parametrize("seed", range(4))
def test_there_and_back_and_there_gives_the_same_bits(seed: int) -> None:
    images = random_images(seed)
    once = from_annotations(images).ground_truth
    back = to_annotations(once, sizes_of(images))
    again = from_annotations(back.images)
    assert again.dropped == 0
    assert again.ground_truth.to_bytes() == once.to_bytes()
    for before, after in zip(images, back.images, strict=True):
        assert (after.id, after.width, after.height) == (before.id, before.width, before.height)


def truth(*pictures: Picture) -> NativeGroundTruth:
    return parse_ground_truth(written_by_hand(*pictures), "x")


def test_pictures_of_unknown_size_are_left_out_but_their_classes_stay() -> None:
    box: Box = (0.0, 0.0, 1.0, 1.0)
    data = to_annotations(truth(("a.jpg", 1, [(4, box)]), ("b.jpg", 2, [(5, box)])), {"b.jpg": (8, 8)})
    assert [(entry.id, entry.file_name) for entry in data.images] == [(2, "b.jpg")]
    assert [category.id for category in data.categories] == [4, 5]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [([7, 0, -5], [7, 0, -5]), ([0, 0, 0], [1, 2, 3]), ([7, 8, 7], [1, 2, 3])],
)
def test_pictures_are_numbered_anew_unless_each_has_a_number_of_its_own(stated: list[int], expected: list[int]) -> None:
    pictures = NativeGroundTruth(
        tuple(
            NativePicture(name, number, np.empty(0, np.int64), np.empty((0, 4), np.float32))
            for name, number in zip("abc", stated, strict=True)
        )
    )
    found = to_annotations(pictures, dict.fromkeys("abc", (8, 8)))
    assert [entry.id for entry in found.images] == expected
