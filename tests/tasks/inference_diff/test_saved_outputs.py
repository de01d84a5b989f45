"""Inputs and outputs saved in a folder and read again; folders that are not what was saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.errors import DataError, ImageError
from evaltools.result.facts import RuntimeUsed, Tensor
from evaltools.runtime.session import Array
from evaltools.tasks.inference_diff.saved_outputs import (
    INPUTS,
    Manifest,
    OutputsWriter,
    SavedConfiguration,
    read_saved_reference,
)

IMAGE, TEXT = Tensor("image", "float32", [2], None, None), Tensor("text", "string", [1, 2], None, None)


class Numbers:
    """Run i has the inputs [i, i]."""

    def inputs(self, index: int) -> tuple[Array, ...]:
        return (np.full(2, index, np.float32),)


def answers(inputs: Sequence[Array]) -> tuple[Array, ...]:
    """The double, and two texts."""
    values = inputs[0].astype(np.float32)
    return values * np.float32(2), np.array([[b"run", b"\xff" + b"!" * int(values[0])]], object)


def manifest(writer: OutputsWriter, *names: str) -> Manifest:
    runtime = RuntimeUsed("litert", "ai-edge-litert", "1", "builtin")
    configurations = [
        SavedConfiguration(
            name=name,
            role="reference" if name == "base" else "test",
            model_file="m.tflite",
            model_sha256="ab",
            flags=[],
            num_threads=1,
            runtime=runtime,
            tensors=[IMAGE, TEXT],
            outputs=writer.files(name),
        )
        for name in names
    ]
    return Manifest("1", "", 1, 0, [IMAGE], writer.files(INPUTS), configurations)


def write_folder(folder: Path) -> Path:
    """Three runs of a test, and of the reference "base", which failed in the run between."""
    writer = OutputsWriter(folder)
    for run in (0, 2, 1):
        inputs = Numbers().inputs(run)
        writer.save("a/ü", run, inputs, answers(inputs))
        if run != 1:
            writer.save("base", run, inputs, answers([inputs[0].astype(np.float32) + np.float32(10)]))
    writer.finish(manifest(writer, "a/ü", "base"))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def test_the_reference_comes_back_with_the_inputs_of_its_runs(folder: Path) -> None:
    saved = read_saved_reference(folder)
    assert (saved.runs, saved.configuration.name) == ([0, 2], "base")
    assert [saved.inputs(index)[0].tolist() for index in range(2)] == [[0, 0], [2, 2]]
    assert [saved[index][0].tolist() for index in range(2)] == [[20, 20], [24, 24]]
    assert saved[1][0].dtype == np.float32


def test_texts_come_back_as_the_runtimes_give_them(folder: Path) -> None:
    texts = read_saved_reference(folder)[0][1]
    assert (texts.dtype, texts.shape, texts.tolist()) == (np.dtype(object), (1, 2), [[b"run", b"\xff!!!!!!!!!!"]])


def test_without_a_reference_the_first_test_is_one(tmp_path: Path) -> None:
    writer = OutputsWriter(tmp_path)
    for name in ("second", "first"):
        writer.save(name, 0, Numbers().inputs(0), answers([np.zeros(2, np.float32)]))
    writer.finish(manifest(writer, "first", "second"))
    assert read_saved_reference(tmp_path).configuration.name == "first"


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", "complex64"])
def test_every_type_of_number_comes_back_bit_by_bit(tmp_path: Path, dtype: str) -> None:
    values = np.frombuffer(b"\1\0\1\1\0\0\1\1" * 4, dtype).reshape(2, -1)
    writer = OutputsWriter(tmp_path)
    writer.save("a", 0, [values], [values, np.zeros((0, 3), np.float32)])
    made = manifest(writer, "a")
    tensors = [replace(IMAGE, dtype=dtype), IMAGE]
    writer.finish(replace(made, configurations=[replace(made.configurations[0], tensors=tensors)]))
    first, second = read_saved_reference(tmp_path)[0]
    assert (first.dtype, first.shape, first.tobytes()) == (values.dtype, values.shape, values.tobytes())
    assert second.shape == (0, 3)


def test_files_are_plain_npz_in_a_folder_for_each_configuration(folder: Path) -> None:
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*"))
    assert files == ["inputs/00000.npz", "inputs/00001.npz", "inputs/00002.npz", "manifest.json"] + [
        f"outputs-{name}.npz" for name in ("0-a_/00000", "0-a_/00001", "0-a_/00002", "1-base/00000", "1-base/00002")
    ]
    with np.load(folder / "outputs-1-base" / "00002.npz", allow_pickle=False) as archive:
        assert [archive[key].tolist() for key in ("arr_0", "arr_1")] == [[24, 24], [[b"run", b"\xff" + b"!" * 12]]]


def test_inputs_of_several_configurations_are_saved_once(tmp_path: Path) -> None:
    writer = OutputsWriter(tmp_path)
    for name in ("a", "b"):
        for run in (1, 0):
            writer.save(name, run, Numbers().inputs(run), answers(Numbers().inputs(run)))
    assert [entry.run for entry in writer.files(INPUTS)] == [0, 1]
    assert [entry.run for entry in writer.files("b")] == [0, 1]
    assert writer.files("unknown") == []


def test_a_folder_that_has_gone_is_a_failure_that_ends_nothing(tmp_path: Path) -> None:
    writer = OutputsWriter(tmp_path / "gone")
    writer.save("a", 0, [np.zeros(1)], [np.zeros(1)])
    assert writer.failure is not None
    assert "00000.npz cannot be written: No such file" in writer.failure


def test_of_two_runs_that_begin_in_one_folder_the_second_saves_nothing(tmp_path: Path) -> None:
    """Both have found it empty."""
    first, second = OutputsWriter(tmp_path), OutputsWriter(tmp_path)
    for writer, value in ((first, 1.0), (second, 2.0)):
        values = [np.full(2, value, np.float32)]
        writer.save("test", 0, values, values)
    assert first.failure is None
    assert "inputs/00000.npz cannot be written: File exists; the folder is of no use" in str(second.failure)
    with np.load(tmp_path / "inputs" / "00000.npz", allow_pickle=False) as archive:
        assert archive["arr_0"].tolist() == [1.0, 1.0]


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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, "is not a manifest of saved outputs") for content in (b"", b"{", b"[]", b"\xff\xfe")),
        (b'{"schema_version": "2"}', "is not a manifest of saved outputs"),
        (None, "cannot be read: No such file"),
    ],
)
def test_damaged_manifests_are_refused(folder: Path, content: bytes | None, message: str) -> None:
    (folder / "manifest.json").unlink()
    if content is not None:
        (folder / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=rf"manifest\.json {message}"):
        read_saved_reference(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda document: {"schema_version": "2"}, "schema_version"),
        (lambda document: {"input_files": document["input_files"][1:2]}, "has no run with both inputs and outputs"),
        (lambda document: {"configurations": []}, "names no outputs"),
    ],
)
def test_a_manifest_of_another_version_or_of_nothing_is_refused(
    folder: Path, change: Callable[[Any], dict[str, Any]], message: str
) -> None:
    assert message in edited(folder, lambda document: document.update(change(document)))
