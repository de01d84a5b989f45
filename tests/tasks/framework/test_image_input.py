"""Pictures as inputs: which input takes them, how they are cropped and normalised."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image

from evaltools.errors import ImageError, ModelError, UsageError
from evaltools.model import InputNormalization, TensorInfo
from evaltools.model.graph import DetectionOutputs
from evaltools.tasks.framework.image_input import input_transform
from evaltools.tasks.inference_diff.input_options import InputOptions
from evaltools.tasks.inference_diff.inputs import plan_inputs
from tests.tasks.inference_diff.test_inputs import model, plan, tensor

IMAGE = tensor("image", shape=(1, 8, 8, 3))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A picture that is 8 everywhere but for a white frame, one that is 16, one that is none."""
    framed = np.full((64, 64, 3), 255, np.uint8)
    framed[4:-4, 4:-4] = 8
    Image.fromarray(framed).save(tmp_path / "a.png")
    Image.fromarray(np.full((8, 8, 3), 16, np.uint8)).save(tmp_path / "b.png")
    (tmp_path / "c.png").write_bytes(b"no picture")
    return tmp_path


def test_pictures_are_cropped_for_classifiers_and_not_for_detectors(pictures: Path) -> None:
    whole = replace(IMAGE, dtype="uint8")
    detector = {"detection": DetectionOutputs(0, 1, 2, 3)}
    for facts, brightest, words in (({}, 8, ""), (detector, 255, ", not cropped (detection)")):
        found = plan_inputs(model(whole, **facts), [whole], InputOptions(images=pictures))
        assert int(found.source.inputs(0)[0].max()) == brightest
        assert found.described == (f"pictures in {pictures}, values 0..255 (normalization native){words}",)
        assert found.example_ids == ("run 0: a.png", "run 1: b.png", "run 2: c.png")


def test_a_broken_picture_costs_its_run_alone(pictures: Path) -> None:
    found = plan(IMAGE, tensor("y"), images=pictures, num_runs=5)
    assert found.example_ids[3:] == ("run 3: a.png", "run 4: b.png")
    assert [found.source.inputs(run)[0].shape for run in (0, 1, 4)] == [(1, 8, 8, 3)] * 3
    with pytest.raises(ImageError):
        found.source.inputs(2)


@pytest.mark.parametrize("channels", [3, 1])
def test_planes_get_the_same_pictures(tmp_path: Path, channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 48, 3), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    together = plan(tensor("image", shape=(1, 32, 24, channels)), images=tmp_path).source.inputs(0)[0]
    planes = plan(tensor("image", shape=(1, channels, 32, 24)), images=tmp_path).source.inputs(0)[0]
    np.testing.assert_array_equal(planes.transpose(0, 2, 3, 1), together)
    if channels == 3:
        turned = plan(tensor("image", shape=(1, 3, 32, 24)), images=tmp_path, channel_order="bgr")
        np.testing.assert_array_equal(turned.source.inputs(0)[0], planes[:, ::-1])
        assert turned.described[0].endswith(", BGR")


def test_a_layout_or_an_order_that_does_nothing_is_refused(pictures: Path) -> None:
    with pytest.raises(ModelError, match=r"--input_layout=nchw needs an input \[1,3 or 1,height,width\]"):
        plan(IMAGE, images=pictures, input_layout="nchw")
    with pytest.raises(UsageError, match="--channel_order has no effect without --input_images"):
        plan(tensor(), channel_order="bgr")
    with pytest.raises(UsageError, match="--channel_order=bgr: the input .* is grey"):
        plan(replace(IMAGE, shape=(1, 8, 8, 1)), images=pictures, channel_order="bgr")


@pytest.mark.parametrize("signature", [(-1, -1, -1, 3), (1, 1, -1, -1)])
def test_a_picture_whose_sizes_nobody_states_is_refused(signature: tuple[int, ...]) -> None:
    free = tensor("image", shape=tuple(max(1, size) for size in signature))
    free = replace(free, shape_signature=signature)
    with pytest.raises(UsageError, match="leaves height and width of its input .* open.*--input_shape=image:"):
        plan(free)
    sized = replace(free, shape=tuple(8 if size == -1 else size for size in (1, *signature[1:])))
    assert plan(sized).source.inputs(0)[0].shape == sized.shape
    assert plan(free, native=True).source.inputs(0)[0].shape == free.shape


@pytest.mark.parametrize(
    "inputs",
    [[tensor()], [IMAGE, IMAGE], [replace(IMAGE, shape=(2, 8, 8, 3))], [replace(IMAGE, dtype="int32")]],
)
def test_pictures_need_one_input_that_takes_them(pictures: Path, inputs: list[TensorInfo]) -> None:
    with pytest.raises(ModelError, match="--input_images needs one input"):
        plan(*inputs, images=pictures)


SCALED = replace(IMAGE, dtype="uint8", scale=0.5, zero_point=3)


@pytest.mark.parametrize(
    ("taken", "options", "value"),
    [
        (IMAGE, {}, (51 - 10) / 2),
        (IMAGE, {"native": True}, (51 - 127.5) / 127.5),
        (IMAGE, {"normalization": "unit"}, 0.2),
        (SCALED, {}, 51),
        (SCALED, {"normalization": "none"}, 105),
    ],
)
def test_a_normalisation_in_the_metadata_is_used_for_float_inputs_unless_another_is_asked_for(
    taken: TensorInfo, options: dict[str, Any], value: float
) -> None:
    stated = model(IMAGE, normalization=InputNormalization((10,), (2,)))
    converted = input_transform(stated, taken, **options)(np.full((8, 8, 3), 51, np.uint8))
    assert converted.ravel()[0] == pytest.approx(value)


def test_a_normalisation_in_the_metadata_is_that_of_the_first_input_alone() -> None:
    second = replace(IMAGE, index=1)
    both = model(IMAGE, second, normalization=InputNormalization((10,), (2,)))
    assert input_transform(both, IMAGE).normalization is not None
    assert input_transform(both, second).normalization is None


def test_an_integer_input_without_quantisation_takes_no_real_values() -> None:
    with pytest.raises(ModelError, match="has no per-tensor quantisation"):
        input_transform(model(), replace(IMAGE, dtype="int16"))
    with pytest.raises(ModelError, match="has no per-tensor quantisation"):
        input_transform(model(), replace(IMAGE, dtype="uint8"), "unit")
