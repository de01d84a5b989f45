"""Values beyond what fp16, a quantised range or float holds."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.locate.causes.table import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, model, random, run, whole
from tests.tflite_writer import Quantization


def sum_of_an_image(largest: float = 20.0, operator: str = "SUM") -> tuple[bytes, list[Array]]:
    values = (largest * np.random.default_rng(1).random((1, 112, 112, 4))).astype(np.float32)
    axes = np.array([1, 2], np.int32)
    return model(operator, [values], (1, 1, 1, 4), [axes], "ReducerOptions", KeepDims=True), [values]


def forced_to_fp16(content: bytes, inputs: list[Array], folder: Path) -> Array:
    """What XNNPACK gives in fp16."""
    path = folder / "fp16.tflite"
    path.write_bytes(content)
    flags = "runtime=compiled use_xnnpack=true xnnpack_force_fp16=true"
    return run(path, inputs, Configuration.from_text("fp16", flags))


def test_a_sum_beyond_fp16_on_a_real_delegate(tmp_path: Path) -> None:
    content, inputs = sum_of_an_image()
    given = forced_to_fp16(content, inputs, tmp_path)
    (cause,) = find_causes(case(tmp_path, "SUM", content, inputs, lambda _expected: given))
    assert cause.name == "fp16 overflow"
    assert "which fp16 cannot hold (at most 65504); all 4 such values came as" in cause.shown_by
    assert "--gpu_precision_loss_allowed=false" in cause.remedy
    assert cause.link.endswith("/LiteRT/issues/9249")


@pytest.mark.skipif("EVALTOOLS_EXPECT_GPU" not in os.environ, reason="this machine is not said to have a GPU")
def test_a_sum_beyond_fp16_on_a_real_gpu(tmp_path: Path) -> None:
    content, inputs = sum_of_an_image()
    path = tmp_path / "gpu.tflite"
    path.write_bytes(content)
    given = run(path, inputs, Configuration.from_text("gpu", "runtime=compiled use_gpu=true"))
    (cause,) = find_causes(case(tmp_path, "SUM", content, inputs, lambda _expected: given))
    assert cause.name == "fp16 overflow"


def test_a_sum_that_fp16_holds_is_no_overflow_on_a_real_delegate(tmp_path: Path) -> None:
    content, inputs = sum_of_an_image(4.0)
    given = forced_to_fp16(content, inputs, tmp_path)
    assert "fp16 overflow" not in [
        cause.name for cause in find_causes(case(tmp_path, "SUM", content, inputs, lambda _expected: given))
    ]


@pytest.mark.parametrize("bound", [65504.0, 65500.0, np.inf, np.nan])
def test_values_beyond_fp16_came_as_its_bound(tmp_path: Path, bound: float) -> None:
    content, inputs = models.unary("SQUARE", random((1, 60), 1, 300))

    def fault(expected: Array) -> Array:
        return np.where(expected > 65504, bound, expected).astype(np.float32)

    (cause,) = find_causes(case(tmp_path, "SQUARE", content, inputs, fault))
    assert cause.name == "fp16 overflow"


def test_a_mean_whose_sum_is_beyond_fp16(tmp_path: Path) -> None:
    content, inputs = sum_of_an_image(operator="MEAN")
    bound = np.float32(65504 / 112**2)
    (cause,) = find_causes(case(tmp_path, "MEAN", content, inputs, lambda y: np.full_like(y, bound)))
    assert cause.name == "fp16 overflow"
    assert "the sum of 12544 values is up to 12" in cause.shown_by


def test_large_values_that_are_wrong_otherwise_are_no_overflow(tmp_path: Path) -> None:
    content, inputs = models.unary("SQUARE", random((1, 60), 1, 300))
    noise = random((1, 60), 9, 1e4)
    assert not find_causes(case(tmp_path, "SQUARE", content, inputs, lambda y: np.add(y, noise)))


def test_whole_numbers_that_saturate_within_the_range(tmp_path: Path) -> None:
    content, inputs = models.add_int8()
    (cause,) = find_causes(case(tmp_path, "ADD", content, inputs, lambda y: np.clip(y, -60, 40)))
    assert cause.name == "saturated quantisation"
    assert "values stand at -60 and 40, where the CPU has -" in cause.shown_by


def test_the_largest_being_too_small_is_no_saturation(tmp_path: Path) -> None:
    content, inputs = models.add_int8()

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given.flat[int(np.argmax(given))] -= np.int8(9)
        return given

    assert not find_causes(case(tmp_path, "ADD", content, inputs, fault))


def test_floats_cut_at_a_bound(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.clip(y, -1.5, 2.5)))
    assert cause.name == "values cut at a bound"
    assert "stand at -1.5 and 2.5" in cause.shown_by


def test_whole_numbers_that_wrap_around(tmp_path: Path) -> None:
    inputs = [whole((1, 300), 1), whole((1, 300), 2)]
    same = [Quantization(0.5, 0)] * 3
    content = model("ADD", inputs, (1, 300), options="AddOptions", quantizations=same)
    wrapped = (inputs[0].astype(np.int32) + inputs[1].astype(np.int32)).astype(np.int8)
    (cause,) = find_causes(case(tmp_path, "ADD", content, inputs, lambda _expected: wrapped))
    assert cause.name == "whole numbers wrap around"


def test_a_divisor_that_became_zero(tmp_path: Path) -> None:
    inputs: list[Array] = [random((1, 64), 1, 1e-4), random((1, 64), 2)]
    inputs[1][0, ::9] = 2e-8
    content = model("DIV", inputs, (1, 64), options="DivOptions")
    with np.errstate(divide="ignore"):
        given = (inputs[0] / inputs[1].astype(np.float16).astype(np.float32)).astype(np.float32)
    assert np.isinf(given[:, ::9]).all()
    (cause,) = find_causes(case(tmp_path, "DIV", content, inputs, lambda _expected: given))
    assert cause.name == "NaN or infinity from rare operands"
    assert "at all 8 of them the divisor is smaller than 6.1e-5" in cause.shown_by


def test_a_power_of_a_negative_number(tmp_path: Path) -> None:
    inputs: list[Array] = [random((1, 64), 1)]
    content = model("POW", inputs, (1, 64), [np.array(2, np.float32)], "PowOptions")
    (cause,) = find_causes(
        case(tmp_path, "POW", content, inputs, lambda y: np.where(inputs[0] < 0, np.float32(np.nan), y))
    )
    assert cause.name == "NaN or infinity from rare operands"
    assert "values are NaN" in cause.shown_by
    assert "exp(y log x)" in cause.shown_by


def test_a_row_of_softmax_with_large_values(tmp_path: Path) -> None:
    values = random((8, 10), 1)
    values[3, 2] = values[6, 1] = 12
    content, inputs = models.unary("SOFTMAX", values, "SoftmaxOptions", Beta=1.0)

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given[[3, 6]] = np.nan
        return given

    assert "not subtracted" in find_causes(case(tmp_path, "SOFTMAX", content, inputs, fault))[0].shown_by


def test_operands_that_hold_infinity_already(tmp_path: Path) -> None:
    values = random((1, 50), 1)
    values[0, 7] = -np.inf
    content, inputs = models.unary("RELU", values)

    def fault(expected: Array) -> Array:
        given = expected.copy()
        given[0, 7] = np.nan
        return given

    assert find_causes(case(tmp_path, "RELU", content, inputs, fault))[0].name == "NaN or infinity comes in"


def test_no_numbers_of_which_nothing_is_known(tmp_path: Path) -> None:
    content, inputs = models.conv()
    places = np.random.default_rng(3).random((1, 12, 12, 8)) < 0.1
    (cause,) = find_causes(
        case(tmp_path, "CONV_2D", content, inputs, lambda y: np.where(places, np.float32(np.nan), y))
    )
    assert cause.name == "NaN or infinity"
    assert f"{places.sum()} of 1152 values are NaN" in cause.shown_by


def test_infinity_that_is_lost(tmp_path: Path) -> None:
    values = np.abs(random((1, 50), 1))
    values[0, [3, 8]] = 0
    content, inputs = models.unary("LOG", values)
    (cause,) = find_causes(case(tmp_path, "LOG", content, inputs, lambda y: np.where(np.isinf(y), np.float32(-1e4), y)))
    assert cause.name == "NaN or infinity is lost"
