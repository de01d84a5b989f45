"""Reading models: facts, and refusal of everything that could crash a runtime."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from evaltools.errors import ModelError
from evaltools.model import TensorInfo, read_model
from tests import tiny_models
from tests.tflite_writer import Graph


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


def test_content_stands_for_the_file(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, tiny_models.add_chain()))
    assert model.read() == tiny_models.add_chain()
    assert model.with_content(b"other").read() == b"other"
    assert model.content is None


def test_free_sizes_may_be_chosen(tmp_path: Path) -> None:
    graph = Graph()
    left = graph.tensor("left", (1, 8), shape_signature=(-1, 8))
    right = graph.tensor("right", (1, 8))
    model = read_model(written(tmp_path, graph.to_bytes([left, right], [left])))
    assert [tensor.shape for tensor in model.with_input_shapes({0: (5, 8)}).inputs] == [(5, 8), (1, 8)]
    assert model.with_input_shapes({0: (5, 8)}).inputs[0].shape_signature == (-1, 8)
    for position, shape in ((0, (5, 9)), (0, (5,)), (0, (0, 8)), (0, (-1, 8)), (0, (5, 8, 1)), (1, (2, 8))):
        with pytest.raises(ModelError, match="only those that the model states as -1 are free"):
            model.with_input_shapes({position: shape})


def test_tensors_go_by_name_signature_name_and_number(tmp_path: Path) -> None:
    model = read_model(written(tmp_path, tiny_models.two_inputs()))
    inputs = [model.inputs[0], replace(model.inputs[1], signature_name="other")]
    assert [model.named("input", name, inputs) for name in ("left", "right", "other", "0", "1")] == [0, 1, 1, 0, 1]


@pytest.mark.parametrize("name", ["", "2", "-1", "lef"])
def test_a_name_that_no_tensor_has_is_refused(tmp_path: Path, name: str) -> None:
    model = read_model(written(tmp_path, tiny_models.two_inputs()))
    with pytest.raises(ModelError, match=f"has no input '{name}'; it has 'left', 'right'"):
        model.named("input", name, model.inputs)


@pytest.mark.parametrize(
    ("scale", "dtype", "quantised"), [(0.5, "int8", True), (0.0, "int8", False), (1, "int32", False)]
)
def test_quantised_is_a_small_whole_type_with_a_scale(scale: float, dtype: str, quantised: bool) -> None:
    assert TensorInfo(0, "x", dtype, (1,), (1,), scale, 0).is_quantized is quantised


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """The root lies at the start and the weights at the end, so each cut removes something."""
    content = tiny_models.classifier()
    path = tmp_path / "cut.tflite"
    for length in range(8, len(content) - 4, 199):
        path.write_bytes(content[:length])
        with pytest.raises(ModelError):
            read_model(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"short", "is not a TensorFlow Lite model"),
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
