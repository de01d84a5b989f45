"""Folders of pictures and their paths, label files and denylists."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from evaltools.datasets.files import numbers_by_line
from evaltools.datasets.image_folder import list_images
from evaltools.datasets.labels import fitting_labels, labels_beside, read_denylist, read_labels
from evaltools.errors import DataError


def test_pictures_come_in_bytewise_order(tmp_path: Path) -> None:
    for name in ("2.jpg", "10.jpg", "b.PNG", "Z.jpeg", "é.jpg", ".hidden.jpg", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / "folder.jpg").mkdir()
    folder = list_images(tmp_path, "--images")
    assert [path.name for path in folder.paths] == ["10.jpg", "2.jpg", "Z.jpeg", "b.PNG", "é.jpg"]
    assert folder.skipped == (".hidden.jpg", "notes.txt")
    assert len(list_images(tmp_path, "--images", every_file=True).paths) == 7


def test_a_name_that_is_no_unicode_is_listed(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jpg")).touch()
    assert len(list_images(tmp_path, "--images").paths) == 1


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ("a", "b")),
        (b"a\nb", ("a", "b")),
        (b"a\n\nb\n\n", ("a", "", "b", "")),
        (b"\xef\xbb\xbfa\r\nb\r\n", ("a", "b")),
        ("zoë\n".encode(), ("zoë",)),
        ("zoë\n".encode("latin-1"), ("zo\udceb",)),
        (b" a \n", (" a ",)),
    ],
)
def test_labels(tmp_path: Path, content: bytes, lines: tuple[str, ...]) -> None:
    path = tmp_path / "labels.txt"
    path.write_bytes(content)
    found = read_labels(path, "--labels")
    assert found.lines == lines
    assert found.sha256 == hashlib.sha256(content).hexdigest()


def test_labels_as_the_native_tools_read_them(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes(b"a\r\nb\r\n")
    assert read_labels(tmp_path / "labels.txt", "--labels", keep_carriage_return=True).lines == ("a\r", "b\r")


def test_a_binary_file_holds_no_labels(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes(b"a\0b")
    with pytest.raises(DataError, match="holds zero bytes"):
        read_labels(tmp_path / "labels.txt", "--labels")


def test_denylist_numbers_start_at_one(tmp_path: Path) -> None:
    (tmp_path / "deny.txt").write_text("\ufeff3\n\n 1 \n3\n")
    assert read_denylist(tmp_path / "deny.txt", "--deny", 3) == {0, 2}


@pytest.mark.parametrize("number", [-1, 0, 4])
def test_a_number_of_no_picture_in_a_denylist_is_refused(number: int, tmp_path: Path) -> None:
    (tmp_path / "deny.txt").write_text(f"3\n{number}\n")
    with pytest.raises(DataError, match=f"line 2: no picture {number}; numbers go from 1 to 3"):
        read_denylist(tmp_path / "deny.txt", "--deny", 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1\n2\xff\n", r"^ids.txt, line 2: '2\\udcff' is not a number; give ids$"),
        (b"1_0", "line 1: '1_0' is not a number"),
        (b"1\n1.0", "line 2: '1.0' is not a number"),
        ("\u0661".encode(), "line 1: '\u0661' is not a number"),
        (b"9" * 19, "is not a number"),
        (b"1\n" * 2 + b"x" * 200, f"line 3: '{'x' * 80}' is not a number"),
        ("1\n".encode("utf-16"), r"^ids.txt is not a text file: it holds zero bytes$"),
    ],
)
def test_a_line_that_is_no_whole_number_is_named(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        numbers_by_line(content, "ids.txt", "give ids")


def test_blank_lines_count_as_lines_and_may_be_refused() -> None:
    assert numbers_by_line(b"\xef\xbb\xbf+1\r\n\r\n -2 ", "ids.txt", "give ids") == {1: 1, 3: -2}
    with pytest.raises(DataError, match="line 2: '' is not a number; give ids"):
        numbers_by_line(b"1\n\n2", "ids.txt", "give ids", skip_blank=False)


def with_packed(model: Path, **files: str) -> Path:
    """A model with files packed behind it, as TFLite metadata have them."""
    model.write_bytes(b"\x1c\0\0\0TFL3" + bytes(100))
    with zipfile.ZipFile(model, "a") as packed:
        for name, text in files.items():
            packed.writestr(f"{name}.txt", text)
    return model


def test_labels_are_those_in_the_metadata_of_the_model(tmp_path: Path) -> None:
    model = with_packed(tmp_path / "m.tflite", labels="cat\ndog\n")
    (tmp_path / "labels.txt").write_text("other\n")
    assert labels_beside(model) == [model, tmp_path / "labels.txt"]
    assert read_labels(model, "--labels").lines == ("cat", "dog")


def test_else_those_of_a_file_beside_the_model(tmp_path: Path) -> None:
    model = with_packed(tmp_path / "m.tflite")
    assert labels_beside(model) == []
    for name in ("labelmap.txt", "labels.txt", "m_labels.txt", "m.txt"):
        (tmp_path / name).write_text("cat\n")
        assert labels_beside(model)[0] == tmp_path / name
    assert len(labels_beside(model)) == 4
    assert labels_beside(tmp_path / "gone.tflite") == []


def test_of_several_those_are_taken_that_have_a_word_of_the_truth(tmp_path: Path) -> None:
    model, truth = with_packed(tmp_path / "m.tflite", labels="cat\ndog\n"), tmp_path / "truth.txt"
    (tmp_path / "labels.txt").write_text("n01\nn02\n")
    for words, expected in (("n02", "labels.txt"), ("dog", "m.tflite"), ("owl", "m.tflite")):
        truth.write_text(f"{words}\n")
        assert fitting_labels(labels_beside(model), truth) == tmp_path / expected
    assert fitting_labels(labels_beside(model), tmp_path / "gone.txt") == model
    assert fitting_labels([], truth) is None


def test_of_several_packed_lists_none_is_taken_for_the_labels(tmp_path: Path) -> None:
    model = with_packed(tmp_path / "m.tflite", first="cat\n", second="dog\n")
    assert labels_beside(model) == []
    with pytest.raises(DataError, match="has 2 label files in its metadata; give a text file of labels"):
        read_labels(model, "--labels")
