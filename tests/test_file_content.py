"""The door for files from elsewhere: what is let in, and how much memory a refusal takes."""

from __future__ import annotations

import io
import os
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from evaltools.datasets.input_files import read_arrays
from evaltools.datasets.labels import read_denylist, read_labels
from evaltools.datasets.object_annotations import read_allowlist
from evaltools.errors import DataError
from evaltools.file_content import Unreadable, content_of, text_of, zip_members

_FEW = 1 << 20


def archive(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file."""
    found = io.BytesIO()
    with zipfile.ZipFile(found, "w", method) as packed:
        for name, content in members:
            packed.writestr(name, content)
    return found.getvalue()


def test_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfcat\n")
    assert text_of(tmp_path / "a.txt") == "cat\n"
    (tmp_path / "link.txt").symlink_to("a.txt")
    assert content_of(tmp_path / "link.txt", most_bytes=7) == b"\xef\xbb\xbfcat\n"
    read, write = os.pipe()
    os.write(write, b"{}")
    os.close(write)
    assert content_of(Path(f"/dev/fd/{read}"), may_be_pipe=True) == b"{}"
    os.close(read)


def test_what_is_no_file_or_too_large_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 200 << 30)
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    expected = {
        "none": "No such file",
        ".": "Is a directory",
        "pipe": "it is not a regular file",
        "zeros": "it is not a regular file",
        "sparse": "it is too large: more than 67108864 bytes",
        "latin": "it is not a text in UTF-8",
        "a\0b": "null",
    }
    tracemalloc.start()
    try:
        for name, reason in expected.items():
            with pytest.raises(Unreadable, match=reason):
                text_of(tmp_path / name)
        assert tracemalloc.get_traced_memory()[1] < _FEW
    finally:
        tracemalloc.stop()


def test_lists_that_a_flag_names_are_neither_awaited_nor_read_without_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="--labels=.*pipe cannot be read: it is not a regular file; save what it gives"):
        read_labels(tmp_path / "pipe", "--labels")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 30)
    for read in (read_labels, read_allowlist, lambda path, flag: read_denylist(path, flag, 9)):
        with pytest.raises(
            DataError, match="--list=.*sparse cannot be read: it is too large: more than 67108864 bytes"
        ):
            read(tmp_path / "sparse", "--list")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED])
def test_labels_that_unpack_to_gigabytes_behind_a_model_are_refused(tmp_path: Path, method: int) -> None:
    """By their method, or by what they claim; nothing is unpacked."""
    path = tmp_path / "model.tflite"
    path.write_bytes(b"TFL3" + archive(("labels.txt", bytes(300 << 20)), method=method))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="deflate is read|it unpacks from"):
            read_labels(path, "--labels")
        assert tracemalloc.get_traced_memory()[1] < 2 * _FEW
    finally:
        tracemalloc.stop()


def test_arrays_are_bounded_all_together() -> None:
    """Each of twenty members is small enough by itself."""
    one = io.BytesIO()
    np.save(one, np.zeros(4 << 20, np.float32))
    with pytest.raises(Unreadable, match="it unpacks from"):
        read_arrays(archive(*((f"{place}.npy", one.getvalue()) for place in range(20))))
    assert set(read_arrays(archive(("a.npy", one.getvalue())))) == {"a"}


def test_encrypted_and_damaged_archives_are_refused() -> None:
    packed = bytearray(archive(("a.npy", b"x" * 100)))
    entry = packed.index(b"PK\x01\x02")
    packed[entry + 8] |= 1
    with pytest.raises(Unreadable, match="'a.npy' in it is encrypted"), zip_members(bytes(packed)):
        pass
    whole = archive(("a.npy", os.urandom(1000)), ("b.npy", b"x" * 1000))
    for place in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[place] ^= 0x55
        with suppress(Unreadable), zip_members(bytes(damaged)) as members:
            for name in members.namelist():
                members.read(name)
