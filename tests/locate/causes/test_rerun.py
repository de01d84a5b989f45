"""Resized or padded otherwise, and in another layout: what the CPU gives for a changed model or input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.locate.causes import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import CPU, Array, case, model, random, run

GPU = Configuration.from_text("gpu", "runtime=compiled use_gpu=true gpu_precision_loss_allowed=false")


def resize(operator: str, corners: bool, centers: bool, size: int = 13) -> tuple[bytes, list[Array]]:
    values = random((1, 8, 8, 3), 1)
    options = "ResizeBilinearOptions" if operator == "RESIZE_BILINEAR" else "ResizeNearestNeighborOptions"
    content = model(
        operator, [values], (1, size, size, 3), [np.array([size, size], np.int32)], options,
        AlignCorners=corners, HalfPixelCenters=centers,
    )  # fmt: skip
    return content, [values]


def given_by(content: bytes, inputs: list[Array], folder: Path, configuration: Configuration = CPU) -> Array:
    path = folder / "other.tflite"
    path.write_bytes(content)
    return run(path, inputs, configuration)


@pytest.mark.parametrize("operator", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
@pytest.mark.parametrize(("own", "other"), [((False, True), (False, False)), ((True, False), (False, True))])
def test_resized_from_other_places(
    tmp_path: Path, operator: str, own: tuple[bool, bool], other: tuple[bool, bool]
) -> None:
    content, inputs = resize(operator, *own)
    given = given_by(resize(operator, *other)[0], inputs, tmp_path)
    (cause,) = find_causes(case(tmp_path, operator, content, inputs, lambda _expected: given))
    assert cause.name == "resized from other places"
    setting = f"align_corners={str(other[0]).lower()}, half_pixel_centers={str(other[1]).lower()}; the model says"
    assert setting in cause.shown_by


def test_noise_is_no_resize(tmp_path: Path) -> None:
    content, inputs = resize("RESIZE_BILINEAR", False, True)
    noise = random((1, 13, 13, 3), 3)
    assert not find_causes(case(tmp_path, "RESIZE_BILINEAR", content, inputs, lambda y: np.add(y, noise)))


def padded_conv(sides: tuple[int, int], mode: Any, folder: Path, stride: int = 2) -> Array:
    """What a VALID convolution gives for an input that was padded by hand."""
    _, (values,) = models.conv(stride=stride)
    padded = np.pad(values, [(0, 0), sides, sides, (0, 0)], mode)
    weights, biases = random((8, 3, 3, 4), 2, 0.3), random((8,), 3)
    out = -(-12 // stride)
    content = model(
        "CONV_2D", [padded], (1, out, out, 8), [weights, biases], "Conv2DOptions",
        Padding=models.VALID, StrideH=stride, StrideW=stride, DilationHFactor=1, DilationWFactor=1,
    )  # fmt: skip
    return given_by(content, [padded], folder)


def test_padded_at_the_other_side(tmp_path: Path) -> None:
    content, inputs = models.conv(stride=2)
    given = padded_conv((1, 0), "constant", tmp_path)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "padded otherwise"
    assert "more at the top and left" in cause.shown_by


@pytest.mark.parametrize(("mode", "words"), [("edge", "the pixels at its border"), ("reflect", "its mirror image")])
def test_padded_with_other_values(tmp_path: Path, mode: str, words: str) -> None:
    content, inputs = models.conv()
    given = padded_conv((1, 1), mode, tmp_path, stride=1)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert words in cause.shown_by


def test_whole_numbers_padded_with_0_instead_of_the_zero_point(tmp_path: Path) -> None:
    content, inputs = models.conv_int8()
    values = inputs[0].astype(np.float64)
    padded = np.pad(values, [(0, 0), (1, 1), (1, 1), (0, 0)]) - 60
    weights = np.random.default_rng(2).integers(-128, 128, (8, 3, 3, 4)).astype(float)
    windows = [[padded[0, row : row + 3, column : column + 3] for column in range(12)] for row in range(12)]
    sums = np.einsum("hwijc,oijc->hwo", np.array(windows), weights) + np.arange(8) * 50
    given = np.clip(np.rint(sums * 0.0005 / 0.3 - 10), -128, 127).astype(np.int8)[None]
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "padded otherwise"
    assert "the stored number 0" in cause.shown_by


def test_an_average_that_counts_the_padding(tmp_path: Path) -> None:
    content, inputs = models.pool("AVERAGE_POOL_2D")
    inside = np.minimum(2 + np.minimum(np.arange(12), np.arange(12)[::-1]), 3)
    share = (inside[:, None] * inside[None, :] / 9).astype(np.float32)[None, :, :, None]
    (cause,) = find_causes(case(tmp_path, "AVERAGE_POOL_2D", content, inputs, lambda y: np.multiply(y, share)))
    assert "with zeros around it that count" in cause.shown_by


def test_a_maximum_that_counts_the_padding(tmp_path: Path) -> None:
    content, inputs = models.pool("MAX_POOL_2D")
    edge = np.ones((1, 12, 12, 1), bool)
    edge[:, 1:-1, 1:-1] = False

    def fault(expected: Array) -> Array:
        return np.where(edge, np.maximum(expected, np.float32(0)), expected)

    (cause,) = find_causes(case(tmp_path, "MAX_POOL_2D", content, inputs, fault))
    assert "with zeros around it that count" in cause.shown_by


@pytest.mark.parametrize("kernel", [1, 3])
def test_strides_that_were_ignored(tmp_path: Path, kernel: int) -> None:
    content, inputs = models.conv(stride=2, kernel=kernel)
    given = given_by(models.conv(kernel=kernel)[0], inputs, tmp_path)[:, :6, :6]
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "the stride was ignored"
    assert "the first of those that the CPU gives with stride 1; the model says 2x2" in cause.shown_by


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
def test_a_real_gpu_ignores_the_strides_of_a_window_of_one_pixel(tmp_path: Path) -> None:
    content, inputs = models.conv_int8(kernel=1, stride=2)
    given = given_by(content, inputs, tmp_path, GPU)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "the stride was ignored"


def test_an_input_in_another_layout(tmp_path: Path) -> None:
    content, inputs = models.conv()
    turned = inputs[0].transpose(0, 3, 1, 2).reshape(inputs[0].shape)
    given = given_by(content, [turned], tmp_path)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "another layout"
    assert "for 'x0' in the order NCHW" in cause.shown_by


def test_an_input_that_was_flattened_in_another_order(tmp_path: Path) -> None:
    content, inputs = models.fully_connected()
    turned = inputs[0].transpose(0, 3, 2, 1).reshape(inputs[0].shape)
    given = given_by(content, [turned], tmp_path)
    (cause,) = find_causes(case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda _expected: given))
    assert "in the order of dimensions [0, 3, 2, 1]" in cause.shown_by
    assert cause.remedy == "put a RESHAPE before a FULLY_CONNECTED that flattens its input itself"


def test_an_input_of_which_little_was_read(tmp_path: Path) -> None:
    content, inputs = models.fully_connected((1, 5, 4, 8))
    some = np.zeros(160, np.float32)
    some[:16] = inputs[0][0, :2, 0].ravel()
    given = given_by(content, [some.reshape(1, 5, 4, 8)], tmp_path)
    (cause,) = find_causes(case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda _expected: given))
    assert cause.name == "most of the input was not read"
    assert "for 16 of the 160 values of 'x0'" in cause.shown_by


@pytest.mark.parametrize("together", [4, 8])
def test_an_input_of_which_little_was_read_with_weights_of_other_outputs(tmp_path: Path, together: int) -> None:
    """What an NVIDIA H200 (4 outputs together) and a GPU in software (8) were seen to do, output by output."""
    content, inputs = models.fully_connected((1, 5, 4, 3), units=20)
    weights, biases = random((20, 60), 2), random((20,), 3)
    read = inputs[0].ravel()[:3]
    given = [weights[unit % together, unit // together * 4 :][:3] @ read + biases[unit] for unit in range(len(biases))]
    found = np.asarray([given], np.float32)
    (cause,) = find_causes(case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda _expected: found))
    assert cause.name == "most of the input was not read"
    assert (
        f"for 3 of the 60 values of 'x0', the first ones of its first column, with the weights of the first {together}"
        in (cause.shown_by)
    )


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
@pytest.mark.parametrize("units", [4, 12, 20])
@pytest.mark.parametrize("shape", [(1, 25, 20, 8), (1, 5, 4, 3), (1, 7, 3, 8), (1, 6, 10)])
def test_a_real_gpu_reads_little_of_what_fully_connected_flattens(
    tmp_path: Path, shape: tuple[int, ...], units: int
) -> None:
    content, inputs = models.fully_connected(shape, units)
    given = given_by(content, inputs, tmp_path, GPU)
    (cause,) = find_causes(case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda _expected: given))
    assert cause.name == "most of the input was not read"


def test_an_input_in_slices_of_channels(tmp_path: Path) -> None:
    content, inputs = models.fully_connected((1, 5, 4, 8))
    turned = inputs[0].reshape(1, 5, 4, 2, 4).transpose(0, 3, 1, 2, 4).reshape(1, 5, 4, 8)
    given = given_by(content, [turned], tmp_path)
    (cause,) = find_causes(case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda _expected: given))
    assert "in slices of 4 channels" in cause.shown_by


def test_an_output_in_another_layout(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(
        case(tmp_path, "CONV_2D", content, inputs, lambda y: y.transpose(0, 3, 1, 2).reshape(y.shape))
    )
    assert "the CPU's in the order NCHW" in cause.shown_by


def test_an_input_in_no_order_is_no_layout(tmp_path: Path) -> None:
    content, inputs = models.fully_connected()
    mixed = np.random.default_rng(5).permutation(inputs[0].ravel()).reshape(inputs[0].shape)
    given = given_by(content, [mixed], tmp_path)
    assert not find_causes(case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda _expected: given))
