"""Pictures that annotations speak of: their names, their headers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PIL import Image

from evaltools.datasets.picture_files import image_ids, inner_path, read_header
from evaltools.errors import DataError


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("1.jpg", "1.jpg"),
        ("val2017/1.jpg", "val2017/1.jpg"),
        (r"val2017\1.jpg", "val2017/1.jpg"),
        ("./a//1.jpg", "a/1.jpg"),
        ("a..b/..c.jpg", "a..b/..c.jpg"),
        ("zoë 1.jpg", "zoë 1.jpg"),
    ],
)
def test_a_name_stays_in_its_folder(name: str, path: str) -> None:
    assert inner_path(name, "x.json").as_posix() == path


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "/", "../1.jpg", "a/../../1.jpg", "a/..", r"..\1.jpg", "/etc/passwd", "//server/a.jpg",
        r"\a.jpg", r"C:\a.jpg", "c:a.jpg", "a/", "a\0.jpg", "a\n.jpg", "a\ud800.jpg",
    ],
)  # fmt: skip
def test_a_name_that_leaves_its_folder_is_refused(name: str) -> None:
    with pytest.raises(DataError, match="x.json names the picture"):
        inner_path(name, "x.json")


def test_names_that_are_the_same_number_are_numbered_anew() -> None:
    assert image_ids(["1.jpg", "01.png", "7.png"]) == [1, 2, 3]


def test_a_picture_of_another_kind_than_its_name_is_refused_as_on_decoding(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    (tmp_path / "a.png").rename(tmp_path / "a.jpg")
    with pytest.raises(
        DataError, match=r"^--images: the size of .*a.jpg cannot be read: it is not a readable JPEG pic"
    ):
        read_header(tmp_path / "a.jpg", "--images")


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.jpg")
    with pytest.raises(DataError, match=r"a.jpg cannot be read: it is not a regular file; .*Replace the picture"):
        read_header(tmp_path / "a.jpg", "--images")
