"""What is packed on this computer is laid out on the device, by a Python of its own there as well as here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaltools.benchmark import kind as benchmark
from evaltools.device.on_device import lay_out, main
from evaltools.device.store import MOST_BYTES, chunks, write_archive, write_manifest
from evaltools.errors import DataError, OutputError
from evaltools.task_kind import RequestKind, kind_names
from evaltools.tasks.shared.declared import declared_task

COCO = declared_task("coco")
KINDS: Sequence[RequestKind] = (benchmark.KIND, *map(declared_task, kind_names()))
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


def packed(folder: Path, into: Path, files: Sequence[Path], most_bytes: int = MOST_BYTES) -> tuple[Path, list[Path]]:
    """The manifest of a folder and the archives of some of its files."""
    into.mkdir()
    write_manifest(into / "manifest.json", folder, sorted(path for path in folder.rglob("*") if path.is_file()))
    archives = []
    for number, group in enumerate(chunks(files, most_bytes)):
        archives.append(into / f"{number}.tar")
        write_archive(archives[-1], folder, group)
    return into / "manifest.json", archives


def test_what_a_part_does_not_need_stands_there_by_name_and_size(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    files = write(folder, ODD_NAMES)
    chosen = files[::3]
    manifest, archives = packed(folder, tmp_path / "sent", chosen)
    lay_out(tmp_path / "there", manifest, archives)
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
    lay_out(tmp_path / "there", manifest, [])
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
    (first, (one,)), (second, (other,)) = packs
    assert one.read_bytes() == other.read_bytes()
    assert first.read_bytes() == second.read_bytes()


def test_a_link_is_packed_as_what_it_leads_to(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    (real,) = write(tmp_path / "elsewhere", ["real"])
    folder.mkdir()
    (folder / "link").symlink_to(real)
    manifest, archives = packed(folder, tmp_path / "sent", [folder / "link"])
    lay_out(tmp_path / "there", manifest, archives)
    assert not (tmp_path / "there" / "link").is_symlink()
    assert contents(tmp_path / "there") == {"link": real.read_bytes()}


def sizes_of(groups: Sequence[Sequence[Path]]) -> list[list[int]]:
    return [[path.stat().st_size for path in group] for group in groups]


@pytest.mark.parametrize(
    ("sizes", "most", "groups"),
    [
        ([], 10, []),
        ([1, 11, 1], 10, [[1], [11], [1]]),
        ([10, 0, 10], 10, [[10, 0], [10]]),
        ([6, 6, 1, 3, 1, 9], 10, [[6], [6, 1, 3], [1, 9]]),
    ],
)
def test_archives_are_as_large_as_may_be_and_files_stay_whole_and_in_order(
    sizes: Sequence[int], most: int, groups: list[list[int]], tmp_path: Path
) -> None:
    files = []
    for number, size in enumerate(sizes):
        files.append(tmp_path / f"{number:02d}")
        files[-1].write_bytes(bytes(size))
    found = list(chunks(files, most))
    assert sizes_of(found) == groups
    assert [path for group in found for path in group] == files


def test_all_files_arrive_under_their_names_however_odd_in_several_archives(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    files = write(folder, ODD_NAMES)
    manifest, archives = packed(folder, tmp_path / "sent", files, most_bytes=40)
    assert len(archives) > 3
    lay_out(tmp_path / "there", manifest, archives)
    assert contents(tmp_path / "there") == contents(folder)
    assert len(contents(folder)) == len(ODD_NAMES)


def test_a_file_that_vanished_is_named_with_no_traceback(tmp_path: Path) -> None:
    gone = tmp_path / "gone.png"
    with pytest.raises(DataError, match=r"gone\.png cannot be read: No such file"):
        write_archive(tmp_path / "files.tar", tmp_path, [gone])
    with pytest.raises(DataError, match=r"gone\.png cannot be read: No such file"):
        list(chunks([gone]))
    with pytest.raises(DataError, match=r"gone\.png cannot be read: No such file"):
        write_manifest(tmp_path / "manifest.json", tmp_path, [gone])


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_is_an_output_error(tmp_path: Path) -> None:
    files = write(tmp_path / "pictures", ["a"])
    with pytest.raises(OutputError, match="/dev/full cannot be written: No space left on device; make room"):
        write_archive(Path("/dev/full"), tmp_path / "pictures", files)


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
    others = {module for kind in KINDS if kind is not COCO for module in kind.modules_on_devices}
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
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(tarfile.OutsideDestinationError):
        lay_out(tmp_path / "there", tmp_path / "manifest.json", [tmp_path / "bad.tar"])
    assert not (tmp_path / "escaped").exists()


def test_unknown_words_are_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["--pitcures", "x", "--", "imagenet"])
    assert caught.value.code == 2
    assert "--pitcures" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
