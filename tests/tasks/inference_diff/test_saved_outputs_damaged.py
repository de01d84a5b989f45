"""Folders that are not what was saved: changed files, damaged manifests, paths that lead elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.errors import DataError, ImageError
from evaltools.tasks.inference_diff.saved_outputs import read_saved_reference
from tests.tasks.inference_diff.test_saved_outputs import IMAGE, write_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def test_a_changed_file_is_noticed(folder: Path) -> None:
    (folder / "inputs" / "00002.npz").write_bytes((folder / "inputs" / "00001.npz").read_bytes())
    saved = read_saved_reference(folder)
    assert saved.inputs(0)[0].tolist() == [0, 0]
    with pytest.raises(ImageError, match=r"00002\.npz is not the file that was saved: its sha256 differs"):
        saved.inputs(1)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "outputs-1-base" / "00000.npz").unlink()
    with pytest.raises(ImageError, match=r"outputs-1-base/00000\.npz cannot be read: .*No such file"):
        read_saved_reference(folder)[0]


def test_a_file_without_an_array_that_the_manifest_states_is_named(folder: Path) -> None:
    saved = read_saved_reference(folder)
    more = replace(saved, manifest=replace(saved.manifest, inputs=[IMAGE, IMAGE]))
    with pytest.raises(ImageError, match=r"00000\.npz cannot be read: .*1"):
        more.inputs(0)


def edited(folder: Path, edit: Callable[[Any], object]) -> str:
    """What is said about the folder after its manifest was edited."""
    path = folder / "manifest.json"
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))
    with pytest.raises(DataError) as caught:
        read_saved_reference(folder)
    return str(caught.value)


@pytest.mark.parametrize(
    "file",
    [
        "../secret/0.npz",
        "/etc/0.npz",
        "inputs/../0.npz",
        "inputs/0/0.npz",
        "0.npz",
        "inputs/0.npy",
        "inputs/0.npz\n",
        "",
    ],
)
@pytest.mark.parametrize("part", ["input_files", "configurations"])
def test_files_outside_the_folder_are_refused(folder: Path, file: str, part: str) -> None:
    def edit(document: Any) -> None:
        entries = document[part] if part == "input_files" else document[part][0]["outputs"]
        entries[0]["file"] = file

    assert f"names the file {file!r}, which is not inside the folder" in edited(folder, edit)


def test_a_manifest_of_another_version_is_refused(folder: Path) -> None:
    assert "schema_version" in edited(folder, lambda document: document.update(schema_version="2"))


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema_version": "2"}'])
def test_damaged_manifests_are_refused(folder: Path, content: bytes) -> None:
    (folder / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=r"manifest\.json is no manifest of saved outputs"):
        read_saved_reference(folder)


def test_a_folder_without_a_manifest_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"manifest\.json cannot be read: No such file"):
        read_saved_reference(tmp_path)


def test_a_manifest_of_nothing_is_refused(folder: Path) -> None:
    def no_common_run(document: Any) -> None:
        document["input_files"] = document["input_files"][1:2]

    assert "has no run with both inputs and outputs" in edited(folder, no_common_run)
    assert "names no outputs" in edited(folder, lambda document: document.update(configurations=[]))
