"""What holds of all signatures: noise has no cause, and of several that fit the best one is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.locate.causes.scale import biased_rounding
from evaltools.locate.causes.table import find_causes
from evaltools.locate.causes.view import View
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, random

MODELS: dict[str, Callable[[], tuple[bytes, list[Array]]]] = {
    "ADD": models.add,
    "CONV_2D": models.conv,
    "MAX_POOL_2D": lambda: models.pool("MAX_POOL_2D"),
    "FULLY_CONNECTED": models.fully_connected,
    "LOGISTIC": lambda: models.unary("LOGISTIC", random((1, 9, 6, 4))),
    "RELU": lambda: models.unary("RELU", random((1, 50))),
}


@pytest.mark.parametrize("operator", MODELS)
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("seed", [11, 12])
def test_noise_has_no_cause(tmp_path: Path, operator: str, scale: float, seed: int) -> None:
    content, inputs = MODELS[operator]()
    wrong = case(
        tmp_path, operator, content, inputs, lambda y: np.add(y, random(y.shape, seed, scale * float(np.std(y))))
    )
    assert not find_causes(wrong)


@pytest.mark.parametrize("operator", ["ADD", "CONV_2D"])
@pytest.mark.parametrize("size", [2, 6, 40])
def test_noise_in_whole_numbers_has_no_cause(tmp_path: Path, operator: str, size: int) -> None:
    content, inputs = models.add_int8() if operator == "ADD" else models.conv_int8()

    def fault(expected: Array) -> Array:
        steps = np.random.default_rng(size).integers(-size, size + 1, expected.shape)
        given: Array = np.clip(expected + steps, -128, 127).astype(np.int8)
        return given

    assert not find_causes(case(tmp_path, operator, content, inputs, fault))


def test_what_is_right_has_no_cause(tmp_path: Path) -> None:
    content, inputs = models.conv()
    assert not find_causes(case(tmp_path, "CONV_2D", content, inputs, np.copy))


def test_an_output_of_another_shape(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: y[:, :-1]))
    assert cause.shown_by == "the output is [1, 11, 12, 8], and [1, 12, 12, 8] on the CPU"


def test_a_constant_that_gives_every_value_is_named_before_a_rounding(tmp_path: Path) -> None:
    """Both fit: three steps are few, and all are to the same side."""
    content, inputs = models.add_int8()
    wrong = case(tmp_path, "ADD", content, inputs, lambda y: np.clip(y.astype(int) + 3, -128, 127).astype(np.int8))
    assert biased_rounding(View(wrong)) is not None
    (cause,) = find_causes(wrong)
    assert (cause.name, cause.shown_by) == ("moved by a constant", "all 210 values are the CPU's +3 steps")


def test_constants_of_channels_are_named_before_a_rounding(tmp_path: Path) -> None:
    content, inputs = models.conv_int8()

    def fault(expected: Array) -> Array:
        given: Array = np.clip(expected + np.array([2, 0, 0, 3, 0, 0, 0, 0]), -128, 127).astype(np.int8)
        return given

    wrong = case(tmp_path, "CONV_2D", content, inputs, fault)
    assert biased_rounding(View(wrong)) is not None
    (cause,) = find_causes(wrong)
    assert cause.name == "channels moved by constants"
    assert "from +2 to +3" in cause.shown_by


def test_a_model_that_cannot_be_read_leaves_what_arrays_show(tmp_path: Path) -> None:
    content, inputs = models.conv()
    wrong = case(tmp_path, "CONV_2D", content, inputs, lambda y: np.clip(y, -1.5, 2.5))
    (tmp_path / "part.tflite").write_bytes(b"no model")
    assert [cause.name for cause in find_causes(wrong)] == ["values cut at a bound"]


def test_an_operator_of_another_name_is_none(tmp_path: Path) -> None:
    content, inputs = models.add()
    wrong = case(tmp_path, "ADD", content, inputs, lambda _expected: inputs[0])
    assert not [cause for cause in find_causes(replace(wrong, operator="SUB")) if "operand" in cause.name]
