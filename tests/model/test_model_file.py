"""Reading models: facts, and refusal of everything that could crash a runtime."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evaltools.errors import ModelError
from evaltools.model import TensorInfo, read_model
from tests import tiny_models


def written(folder: Path, content: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return path


def test_inputs_outputs_and_quantisation(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, tiny_models.classifier(classes=7, input_dtype="int8")))
    (image,) = model.inputs
    assert (image.dtype, image.shape, image.scale, image.zero_point) == ("int8", (1, 16, 16, 3), 1 / 128, 0)
    (scores,) = model.outputs
    assert (scores.dtype, scores.shape, scores.scale) == ("float32", (1, 7), None)
    assert model.size_bytes == (tmp_path / "model.tflite").stat().st_size
    assert model.normalization is None


def test_a_tensor_prints_its_name_type_and_shape() -> None:
    assert str(TensorInfo(0, "input", "uint8", (1, 2), (-1, 2), None, None)) == "input: uint8[-1,2]"


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """The root lies at the start and the weights at the end, so each cut removes something."""
    content = tiny_models.classifier()
    path = tmp_path / "cut.tflite"
    for length in range(8, len(content) - 4, 61):
        path.write_bytes(content[:length])
        with pytest.raises(ModelError):
            read_model(path)


def test_no_damage_raises_anything_but_a_model_error(tmp_path: Path) -> None:
    content = tiny_models.classifier()
    chance = random.Random(0)
    refused = 0
    for _ in range(500):
        damaged = bytearray(content)
        for _ in range(chance.randrange(1, 20)):
            damaged[chance.randrange(8, len(damaged))] = chance.randrange(256)
        try:
            read_model(written(tmp_path, bytes(damaged)))
        except ModelError:
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"short", "is no TensorFlow Lite model"),
        (b"PK\x03\x04" + bytes(100), "It looks like a zip or .keras archive. Convert it to .tflite first"),
        (b"\x89HDF\r\n\x1a\n" + bytes(100), "It looks like an HDF5 (.h5) file"),
        (b"\x1c\0\0\0TFL3" + bytes(8), "is damaged or cut short (16 bytes read)"),
        (b"\x08\0\0\0TFL3\xff\xff\xff\x7f" + bytes(8), "is damaged or cut short"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_model(written(tmp_path, content))
    assert message in str(caught.value)


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file or directory"):
        read_model(tmp_path / "none.tflite")
    with pytest.raises(ModelError, match=r"is a folder; give a \.tflite file"):
        read_model(tmp_path)
