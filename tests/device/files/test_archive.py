"""What is packed on this computer is laid out on the device, by a Python of its own there as well as here."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaltools.adb.store import MOST_BYTES, archives, names_in
from evaltools.benchmark import command as benchmark
from evaltools.command import Command
from evaltools.device.on_device import lay_out
from evaltools.errors import DataError
from evaltools.known_tasks import task_command, task_names

COCO = task_command("coco")
ALL_COMMANDS: Sequence[Command] = (benchmark.COMMAND, *map(task_command, task_names()))
ODD_NAMES = (
    "plain.png",
    "two words.png",
    " .png",
    "-rf",
    "--",
    "quote'\".png",
    "$HOME;`id`.png",
    "tab\there.png",
    "two\nlines.png",
    "back\\slash.png",
    "ümläut 漢字 🙂.png",
    "e\u0301.png",
    os.fsdecode(b"latin-\xe9.png"),
    "n" * 251 + ".png",
)


def write(folder: Path, names: Sequence[str]) -> list[Path]:
    """A file for each name, with its place and name in it, so that each has another size and content."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, name in enumerate(names):
        (folder / name).write_bytes(os.fsencode(name) + bytes(range(place)))
    return sorted(path for path in folder.iterdir() if path.is_file())


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its name there."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def packed(folder: Path, into: Path, files: Sequence[Path], most_bytes: int = MOST_BYTES) -> list[Path]:
    """The list of the names in a folder and the archives of some of its files."""
    into.mkdir()
    (into / "names.json").write_bytes(names_in(folder))
    sent = [into / "names.json"]
    for number, content in enumerate(archives(folder, files, most_bytes)):
        sent.append(into / f"{number}.tar")
        sent[-1].write_bytes(content)
    return sent


def test_what_a_part_does_not_need_stands_there_by_name_and_size(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    files = write(folder, ODD_NAMES)
    chosen = files[::3]
    sent = packed(folder, tmp_path / "sent", chosen)
    lay_out(tmp_path / "there", sent)
    found = contents(tmp_path / "there")
    assert {name: len(content) for name, content in found.items()} == {
        name: len(content) for name, content in contents(folder).items()
    }
    for path in files:
        own = path.read_bytes()
        assert found[path.name] == (own if path in chosen else bytes(len(own)))


def test_placeholders_take_no_space(tmp_path: Path) -> None:
    """A part of ImageNet has thousands of them."""
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps([["large.png", 1 << 30]]))
    lay_out(tmp_path / "there", [manifest])
    found = (tmp_path / "there" / "large.png").stat()
    assert found.st_size == 1 << 30
    assert found.st_blocks * 512 < 1 << 20


def test_the_same_files_give_the_same_bytes_whenever_and_wherever_they_are_packed(tmp_path: Path) -> None:
    """So that an archive is sent once, though each run packs it anew."""
    packs = []
    for number, folder in enumerate((tmp_path / "one", tmp_path / "two" / "elsewhere")):
        files = write(folder, ODD_NAMES)
        for path in files:
            os.utime(path, (1000 + number, 1000 + number))
            path.chmod(0o600 + number)
        packs.append(packed(folder, tmp_path / f"sent {number}", files))
    first, second = packs
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_link_is_packed_as_what_it_leads_to(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (real,) = write(tmp_path / "elsewhere", ["real"])
    folder.mkdir()
    (folder / "link").symlink_to(real)
    sent = packed(folder, tmp_path / "sent", [folder / "link"])
    lay_out(tmp_path / "there", sent)
    assert not (tmp_path / "there" / "link").is_symlink()
    assert contents(tmp_path / "there") == {"link": real.read_bytes()}


@pytest.mark.parametrize(
    ("sizes", "most", "groups"),
    [
        ([], 4096, []),
        ([1, 9000, 1], 4096, [["00"], ["01"], ["02"]]),
        ([600, 0, 600], 2600, [["00", "01"], ["02"]]),
    ],
)
def test_archives_are_as_large_as_may_be_and_files_stay_whole_and_in_order(
    sizes: Sequence[int], most: int, groups: list[list[str]], tmp_path: Path
) -> None:
    """Each file has a head of 512 bytes, and whole blocks of them."""
    files = []
    for number, size in enumerate(sizes):
        files.append(tmp_path / f"{number:02d}")
        files[-1].write_bytes(bytes(size))
    found = []
    for content in archives(tmp_path, files, most):
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            found.append(archive.getnames())
    assert found == groups


def test_all_files_arrive_under_their_names_however_odd_in_several_archives(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    files = write(folder, ODD_NAMES)
    sent = packed(folder, tmp_path / "sent", files, most_bytes=4096)
    assert len(sent) > 4
    lay_out(tmp_path / "there", sent)
    assert contents(tmp_path / "there") == contents(folder)
    assert len(contents(folder)) == len(ODD_NAMES)


def test_a_file_that_vanished_is_named_with_no_traceback(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.png cannot be read: No such file"):
        list(archives(tmp_path, [tmp_path / "gone.png"]))


# ----- as it runs on a device


def on_device(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The module as a device's Python runs it, in the folder of a part."""
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-m", "evaltools.device.on_device", *words],
        capture_output=True, text=True, timeout=120, cwd=folder,
    )  # fmt: skip


@pytest.mark.once
def test_only_coco_needs_pycocotools(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "pycocotools.py").write_text("raise ImportError('no pycocotools on this board')")
    others = {module for task in ALL_COMMANDS if task is not COCO for module in task.modules_on_devices}
    without = on_device(tmp_path / "part", "--check", *sorted(others))
    assert without.returncode == 0, without.stderr
    needing = on_device(tmp_path / "part", "--check", *COCO.modules_on_devices)
    assert needing.returncode == 1
    assert "no pycocotools on this board" in needing.stderr


def test_an_archive_that_leads_out_of_its_folder_writes_nothing_there(tmp_path: Path) -> None:
    """Where Python has filters: from 3.12 on, and in later releases of those before."""
    if not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python has no filters for archives")
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("../escaped"))
    with pytest.raises(tarfile.OutsideDestinationError):
        lay_out(tmp_path / "there", [tmp_path / "bad.tar"])
    assert not (tmp_path / "escaped").exists()
