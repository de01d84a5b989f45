"""Where files lie on devices: by their content, so that each is sent once, under the name that they have here."""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path

import pytest

from evaltools.device.store import remote_path, sha256_of
from evaltools.errors import DataError

ROOT = "/data/local/tmp/evaltools"


def written(folder: Path, name: str, content: bytes = b"model") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_a_file_lies_in_a_folder_named_after_its_content(tmp_path: Path) -> None:
    path = written(tmp_path, "mobilenet.tflite")
    digest = hashlib.sha256(b"model").hexdigest()
    assert remote_path(ROOT, path) == f"{ROOT}/store/{digest}/mobilenet.tflite"
    assert sha256_of(path) == digest


def test_another_content_of_the_same_name_and_size_lies_elsewhere(tmp_path: Path) -> None:
    """A model that was trained anew often has the size of the old one."""
    one, other = written(tmp_path / "a", "m.tflite", b"12345"), written(tmp_path / "b", "m.tflite", b"12346")
    assert remote_path(ROOT, one) != remote_path(ROOT, other)
    assert posixpath.basename(remote_path(ROOT, one)) == posixpath.basename(remote_path(ROOT, other))


def test_copies_lie_in_one_folder_and_the_same_path_is_given_again(tmp_path: Path) -> None:
    one, other = written(tmp_path / "a", "one.txt"), written(tmp_path / "b", "other.txt")
    assert posixpath.dirname(remote_path(ROOT, one)) == posixpath.dirname(remote_path(ROOT, other))
    assert remote_path(ROOT, one) == remote_path(ROOT, written(tmp_path / "c", "one.txt"))
    assert remote_path(ROOT, one) != remote_path(ROOT, other)


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("my model.tflite", "my model.tflite"),
        ("it's $HOME;`id`.tflite", "it's $HOME;`id`.tflite"),
        ("模型.tflite", "模型.tflite"),
        ("-rf", "-rf"),
        ("two\nlines.tflite", "file.tflite"),
        ("tab\t.tflite", "file.tflite"),
        ("a.two\nlines", "file"),
        ("lines\n", "file"),
        (os.fsdecode(b"latin-\xe9.tflite"), "file.tflite"),
        (os.fsdecode(b"a.\xe9"), "file"),
        ("\x1b[31m.npy", "file.npy"),
    ],
)
def test_a_name_that_is_no_text_of_one_line_leaves_its_ending(name: str, there: str, tmp_path: Path) -> None:
    """Loaders go by the ending; names with control characters or broken bytes pass through no shell unharmed."""
    found = remote_path(ROOT, written(tmp_path, name))
    assert posixpath.basename(found) == there
    assert found.isprintable()


def test_a_large_file_is_summed_up_whole(tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    path = written(tmp_path, "large", content)
    assert sha256_of(path) == hashlib.sha256(content).hexdigest()
    assert sha256_of(written(tmp_path, "empty", b"")) == hashlib.sha256().hexdigest()


def test_a_file_that_cannot_be_read_is_a_data_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tflite cannot be read: No such file or directory"):
        remote_path(ROOT, tmp_path / "none.tflite")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        remote_path(ROOT, tmp_path)
