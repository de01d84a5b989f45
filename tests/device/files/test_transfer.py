"""Files sent and fetched by an adb that copies on this machine: whole under their names, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.adb.client import Adb, CommandFailed, ConnectionLost, DeviceError, FileMissing, Link
from evaltools.adb.transfer import pull, push

CONTENT = bytes(range(256)) * 40
HONEST = 'cp "$1" "$2"'
CUT = 'head -c 100 "$1" > "$2"'
FLIPPED = 'tr x y < "$1" > "$2"'
ADB = """#!/bin/sh
case $1 in devices) printf 'List of devices attached\\nR5\\tdevice\\n'; exit ;; -s) shift 2 ;; esac
word=$1
shift
case $word in
shell) sh -c "$*" ;;
push | pull) COPY ;;
esac
"""


def link(folder: Path, copy: str) -> Link:
    """The device is this machine; ``copy`` is what its adb does to send a file."""
    program = folder / "adb"
    program.write_text(ADB.replace("COPY", copy))
    program.chmod(0o755)
    return Link(Adb(str(program)), "R5")


@pytest.fixture
def local(tmp_path: Path) -> Path:
    path = tmp_path / "model of a host.tflite"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return tmp_path / "on the device" / "a model's copy"


def test_a_file_is_sent_once_and_again_where_its_content_is_another(local: Path, remote: Path, tmp_path: Path) -> None:
    device, sent = link(tmp_path, HONEST), list[int]()
    push(device, local, str(remote), sent.append)
    assert remote.read_bytes() == CONTENT
    push(device, local, str(remote), sent.append)
    local.write_bytes(CONTENT[::-1])
    push(device, local, str(remote), sent.append)
    assert remote.read_bytes() == CONTENT[::-1]
    assert sent == [len(CONTENT), len(CONTENT)]
    assert [path.name for path in remote.parent.iterdir()] == [remote.name]


@pytest.mark.parametrize(
    ("copy", "error", "said"),
    [
        (CUT, ConnectionLost, f"100 of {len(CONTENT)} bytes arrived"),
        (FLIPPED, CommandFailed, "did not bring what was sent"),
        ("false", ConnectionLost, f"0 of {len(CONTENT)} bytes arrived"),
    ],
)
def test_what_does_not_arrive_whole_takes_nobodys_place(
    copy: str, error: type[DeviceError], said: str, local: Path, remote: Path, tmp_path: Path
) -> None:
    remote.parent.mkdir()
    remote.write_bytes(b"what was there")
    with pytest.raises(error, match=said):
        push(link(tmp_path, copy), local, str(remote))
    assert [path.read_bytes() for path in remote.parent.iterdir()] == [b"what was there"]
    fetched = tmp_path / "fetched"
    fetched.write_bytes(b"of an earlier run")
    with pytest.raises(error, match=said):
        pull(link(tmp_path, copy), str(local), fetched)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("fetched")]


def test_a_file_is_fetched_in_the_place_of_an_old_one_which_goes_where_there_is_none(
    local: Path, tmp_path: Path
) -> None:
    device, fetched = link(tmp_path, HONEST), tmp_path / "fetched"
    fetched.write_bytes(b"of an earlier run")
    pull(device, str(local), fetched)
    assert fetched.read_bytes() == CONTENT
    with pytest.raises(FileMissing, match="there is no file"):
        pull(device, str(tmp_path / "gone"), fetched)
    assert not fetched.exists()
