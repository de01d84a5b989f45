"""Where files lie on devices: by their content, so that each is sent once, under the name that they have here."""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path

import pytest

from evaltools.device import detached
from evaltools.device.adb import Adb
from evaltools.device.errors import CommandFailed
from evaltools.device.lock import DeviceLock
from evaltools.device.store import clear, is_there, remote_path, sha256_of
from evaltools.errors import DataError
from tests.device.fixtures import Devices, device_at
from tests.device.shared_folder import SHARED_ROOT, inside

ROOT = "/data/local/tmp/evaltools"
PLACE = "/data/local/tmp/store-test"
"""The folder on devices that are really there."""


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
    assert sha256_of(other) == digest
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


def clean(client: Adb, serial: str) -> int:
    with DeviceLock(client, serial, SHARED_ROOT) as lock:
        return clear(client, serial, lock)


def test_what_was_deleted_is_sent_again_once_the_device_is_looked_at_anew(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    serial, model = devices[0].serial, written(tmp_path, "m")
    store = device_at(client, serial, root=SHARED_ROOT)
    with store.lock as lock:
        store.put(model)
        assert clear(client, serial, lock) > 0
        assert store.is_back()
        assert inside(shared, store.put(model)).read_bytes() == model.read_bytes()
    assert clean(client, serial) > 0
    assert not shared.exists()


@pytest.mark.parametrize("other", ["mine.txt", "store/mine", "runs/a/b", "programs/.hidden", "two\nlines", "-n"])
def test_a_folder_with_a_file_of_others_is_refused(client: Adb, devices: Devices, shared: Path, other: str) -> None:
    path, serial = shared / other, devices[0].serial
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(CommandFailed, match="holds files that are not evaltools'"):
        DeviceLock(client, serial, SHARED_ROOT).take()
    with pytest.raises(CommandFailed, match="not a folder that evaltools has made"):
        is_there(client, serial, SHARED_ROOT)
    assert [each for each in shared.rglob("*") if each.is_file()] == [path]


def test_what_others_keep_in_evaltools_own_folders_stays(
    client: Adb, devices: Devices, shared: Path, tmp_path: Path
) -> None:
    """What has evaltools' own names goes from beside it."""
    serial, store = devices[0].serial, device_at(client, devices[0].serial, root=SHARED_ROOT)
    with DeviceLock(client, serial, SHARED_ROOT) as lock:
        store.put(written(tmp_path, "m"))
        own = [shared / "runs" / "0-of-20-0123abcd0123abcd", shared / "programs" / "0123456789abcdef"]
        names = ["runs/my_experiment/weights", "runs/two\nlines", "runs/-n", "store/my notes", "programs/tool-of-mine"]
        others = sorted(shared / name for name in names)
        for path in (*others, *(folder / "file" for folder in own)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("mine")
        assert clear(client, serial, lock) > 0
    assert sorted(path for path in shared.rglob("*") if path.is_file()) == [shared / ".evaltools", *others]
    assert sorted(path.name for path in shared.rglob("*") if path.is_dir()) == [
        "my_experiment",
        "programs",
        "runs",
        "store",
    ]


def test_an_empty_folder_that_somebody_else_made_is_nothing_to_delete(
    client: Adb, devices: Devices, shared: Path
) -> None:
    assert not is_there(client, devices[0].serial, SHARED_ROOT)
    shared.mkdir()
    assert not is_there(client, devices[0].serial, SHARED_ROOT)


def test_a_run_that_goes_on_is_ended_before_everything_is_deleted(client: Adb, devices: Devices, shared: Path) -> None:
    serial = devices[0].serial
    with DeviceLock(client, serial, SHARED_ROOT):
        detached.start(client, serial, "sleep 300", f"{SHARED_ROOT}/runs", "0-of-1-0123abcd0123abcd")
    leader = (shared / "runs" / "0-of-1-0123abcd0123abcd" / "pid").read_text().split()[0]
    assert client.shell(serial, f"kill -0 {leader}").code == 0
    assert clean(client, serial) > 0
    assert client.shell(serial, f"kill -0 {leader}").code != 0
    assert not shared.exists()
