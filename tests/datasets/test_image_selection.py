"""Which pictures are taken: lists, numbers, pictures without objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.datasets.object_annotations import (
    AnnotatedImage,
    AnnotatedImages,
    Category,
    ObjectAnnotation,
    Selection,
    read_allowlist,
    select_images,
)
from evaltools.errors import DataError

OBJECT = ObjectAnnotation(1, (0, 0, 1, 1), 1)
DATA = AnnotatedImages(
    (Category(1, "cat"),),
    tuple(
        AnnotatedImage(number, f"{number}.jpg", 8, 8, (OBJECT,) * objects)
        for number, objects in ((9, 1), (3, 2), (5, 0), (1, 1), (7, 1))
    ),
)


def ids(selection: Selection) -> list[int]:
    return [image.id for image in selection.data.images]


def test_all_pictures_with_objects_in_the_order_of_the_file() -> None:
    found = select_images(DATA)
    assert (ids(found), found.left_out_empty, found.remarks) == ([9, 3, 1, 7], 1, ())


def test_pictures_without_objects_on_request() -> None:
    found = select_images(DATA, keep_empty=True)
    assert (ids(found), found.left_out_empty) == ([9, 3, 5, 1, 7], 0)


def test_the_first_by_id_still_in_the_order_of_the_file() -> None:
    assert ids(select_images(DATA, num_images=3)) == [3, 1, 7]
    assert ids(select_images(DATA, num_images=3, keep_empty=True)) == [3, 5, 1]


@pytest.mark.parametrize(("number", "remark"), [(-1, "is negative"), (5, "is more than there are")])
def test_an_impossible_number_takes_all_with_a_remark(number: int, remark: str) -> None:
    found = select_images(DATA, num_images=number)
    assert ids(found) == [9, 3, 1, 7]
    assert remark in found.remarks[0]


def test_a_list_chooses_and_unknown_ids_are_remarked() -> None:
    found = select_images(DATA, frozenset({1, 5, 9, 200, 100}), num_images=1)
    assert (ids(found), found.left_out_empty) == ([1], 1)
    assert found.remarks == ("2 ids of the allowlist, such as 100, are not among the pictures of the file",)


@pytest.mark.parametrize(
    ("content", "message"), [("1\n000139.jpg\n", "line 2: '000139.jpg' is not a number"), ("\n", "names no picture")]
)
def test_a_wrong_allowlist_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "list.txt").write_text(content)
    with pytest.raises(DataError, match=message):
        read_allowlist(tmp_path / "list.txt", "--list")
