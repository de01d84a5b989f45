"""Where files lie on devices: by their content, so that each is sent once, under the name that they have here."""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path

import pytest

from evaltools.adb import detached
from evaltools.adb.client import DeviceError, Link
from evaltools.adb.store import DeviceFolder, remote_path
from evaltools.errors import DataError
from tests.device.fixtures import device_at
from tests.device.shared_folder import SHARED_ROOT, inside

ROOT = "/data/local/tmp/evaltools"


def written(folder: Path, name: str, content: bytes = b"model") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


def test_copies_lie_in_one_folder_and_another_content_elsewhere(tmp_path: Path) -> None:
    """A model that was trained anew often has the name and the size of the old one."""
    one, other = written(tmp_path / "a", "one.txt"), written(tmp_path / "b", "other.txt")
    assert posixpath.dirname(remote_path(ROOT, one)) == posixpath.dirname(remote_path(ROOT, other))
    assert remote_path(ROOT, one) == remote_path(ROOT, written(tmp_path / "c", "one.txt"))
    digest = hashlib.sha256(b"model").hexdigest()
    assert remote_path(ROOT, one) == f"{ROOT}/store/{digest}/one.txt"
    assert remote_path(ROOT, one) != remote_path(ROOT, written(tmp_path / "d", "one.txt", b"nodel"))


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("my model.tflite", "my model.tflite"),
        ("it's $HOME;`id`.tflite", "it's $HOME;`id`.tflite"),
        ("模型.tflite", "模型.tflite"),
        ("two\nlines.tflite", "file.tflite"),
        ("a.two\nlines", "file"),
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


def test_a_file_that_cannot_be_read_is_a_data_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.tflite cannot be read: No such file or directory"):
        remote_path(ROOT, tmp_path / "none.tflite")
    with pytest.raises(DataError, match="cannot be read: Is a directory"):
        remote_path(ROOT, tmp_path)


def clean(link: Link) -> int:
    with DeviceFolder(link, SHARED_ROOT) as folder:
        return folder.clear()


def test_what_was_deleted_is_sent_again_once_the_device_is_looked_at_anew(
    first: Link, shared: Path, tmp_path: Path
) -> None:
    model, store = written(tmp_path, "m"), device_at(first.adb, first.serial, root=SHARED_ROOT)
    with store.folder:
        store.put(model)
        assert DeviceFolder(first, SHARED_ROOT).clear() > 0
        assert store.is_back()
        assert inside(shared, store.put(model)).read_bytes() == model.read_bytes()
    assert clean(first) > 0
    assert not shared.exists()


@pytest.mark.parametrize("other", ["mine.txt", "store/mine", "two\nlines", "-n"])
def test_a_folder_with_a_file_of_others_is_refused(first: Link, shared: Path, other: str) -> None:
    path = shared / other
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(DeviceError, match="holds files that are not evaltools'"):
        DeviceFolder(first, SHARED_ROOT).take()
    with pytest.raises(DeviceError, match="not a folder that evaltools has made"):
        DeviceFolder(first, SHARED_ROOT).is_there()
    assert [each for each in shared.rglob("*") if each.is_file()] == [path]


def test_what_others_keep_beside_evaltools_own_folders_stays(first: Link, shared: Path, tmp_path: Path) -> None:
    store = device_at(first.adb, first.serial, root=SHARED_ROOT)
    with store.folder:
        store.put(written(tmp_path, "m"))
        (shared / "mine").write_text("mine")
        assert DeviceFolder(first, SHARED_ROOT).clear() > 0
    assert sorted(path.name for path in shared.iterdir()) == [".evaltools", "mine"]


def test_an_empty_folder_that_somebody_else_made_is_nothing_to_delete(first: Link, shared: Path) -> None:
    assert not DeviceFolder(first, SHARED_ROOT).is_there()
    shared.mkdir()
    assert not DeviceFolder(first, SHARED_ROOT).is_there()


def test_a_run_that_goes_on_is_ended_before_everything_is_deleted(first: Link, shared: Path) -> None:
    with DeviceFolder(first, SHARED_ROOT):
        detached.start(first, "sleep 300", f"{SHARED_ROOT}/runs/0-of-1-0123abcd0123abcd")
    leader = (shared / "runs" / "0-of-1-0123abcd0123abcd" / "pid").read_text().split()[0]
    assert first.shell(f"kill -0 {leader}").code == 0
    assert clean(first) > 0
    assert first.shell(f"kill -0 {leader}").code != 0
    assert not shared.exists()
