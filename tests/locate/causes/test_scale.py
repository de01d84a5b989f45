"""Multiples of what is right, values moved by a constant, and channels with scales of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.locate.causes.table import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, random, run

RANDOM = np.random.default_rng(8)


@pytest.mark.parametrize("factor", [0.5, 2.0, 1.01, 128.0])
def test_multiplied(tmp_path: Path, factor: float) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.multiply(y, np.float32(factor))))
    assert cause.name == "multiplied by a constant"
    assert f"are {factor:g} times the CPU's" in cause.shown_by


def test_the_other_sign(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, np.negative))
    assert cause.name == "sign flipped"


def test_whole_numbers_multiplied(tmp_path: Path) -> None:
    content, inputs = models.conv_int8()

    def half(expected: Array) -> Array:
        given: Array = np.rint((expected.astype(float) + 10) * 0.5 - 10).astype(np.int8)
        return given

    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, half))
    assert cause.name == "multiplied by a constant"
    assert "are 0.5" in cause.shown_by or "are 0.49" in cause.shown_by


def test_whole_numbers_moved_by_another_zero_point(tmp_path: Path) -> None:
    content, inputs = models.conv_int8()
    (cause,) = find_causes(
        case(tmp_path, "CONV_2D", content, inputs, lambda y: np.clip(y.astype(int) + 10, -128, 127).astype(np.int8))
    )
    assert cause.name == "moved by a constant"
    assert "the CPU's +10 steps" in cause.shown_by


def test_multiplied_and_moved(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: y * np.float32(0.8) + np.float32(0.3)))
    assert cause.name == "multiplied and moved by constants"
    assert "are 0.8 times the CPU's +0.3" in cause.shown_by


def test_scales_of_channels(tmp_path: Path) -> None:
    content, inputs = models.conv()
    factors = np.ones(8, np.float32)
    factors[[2, 5]] = 0.5, 3
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.multiply(y, factors)))
    assert cause.name == "wrong scale of channels"
    assert "2 of 8 channels (the first is 2)" in cause.shown_by
    assert "from 0.5 to 3" in cause.shown_by


def test_channels_that_are_moved(tmp_path: Path) -> None:
    content, inputs = models.conv()
    shifts = random((8,), 4)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.add(y, shifts)))
    assert cause.name == "channels moved by constants"
    assert "8 of 8 channels" in cause.shown_by


def test_a_bias_that_was_left_out(tmp_path: Path) -> None:
    content, inputs = models.conv(activation=models.RELU)
    path = tmp_path / "without.tflite"
    path.write_bytes(models.conv(activation=models.RELU, bias=False)[0])
    given = run(path, inputs)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "the bias was left out"


def test_a_multiple_with_noise_is_none(tmp_path: Path) -> None:
    content, inputs = models.conv()
    noise = random((1, 12, 12, 8), 3, 0.2)
    wrong = case(tmp_path, "CONV_2D", content, inputs, lambda y: np.add(np.multiply(y, np.float32(1.2)), noise))
    assert not find_causes(wrong)


def test_few_values_fit_any_line(tmp_path: Path) -> None:
    content, inputs = models.fully_connected(units=2)
    wrong = case(tmp_path, "FULLY_CONNECTED", content, inputs, lambda y: np.add(y, np.array([[1, -2]], np.float32)))
    assert not find_causes(wrong)
