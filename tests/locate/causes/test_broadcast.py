"""The smaller operand spread over the output in another way, and operands swapped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.locate.causes import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, model, random, whole
from tests.tflite_writer import Quantization

OPERATORS: dict[str, tuple[str, Callable[..., npt.NDArray[np.float32]]]] = {
    "ADD": ("AddOptions", np.add),
    "SUB": ("SubOptions", np.subtract),
    "MUL": ("MulOptions", np.multiply),
    "DIV": ("DivOptions", np.divide),
    "MAXIMUM": ("MaximumMinimumOptions", np.maximum),
    "MINIMUM": ("MaximumMinimumOptions", np.minimum),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_first_element_for_all(tmp_path: Path, operator: str) -> None:
    options, function = OPERATORS[operator]
    values, vector = random((1, 6, 5, 8), 1), random((8,), 2)
    content = model(operator, [values], values.shape, [vector], options)
    (cause,) = find_causes(case(tmp_path, operator, content, [values], lambda _: function(values, vector[0])))
    assert cause.name == "wrong broadcast"
    assert "operand 1, 'c0' [8], whose first element was taken for all" in cause.shown_by
    assert cause.link.endswith("/tensorflow/issues/60043")


def test_a_constant_as_the_first_operand(tmp_path: Path) -> None:
    values, vector = random((1, 6, 5, 8), 1), random((8,), 2)
    content = model("SUB", [values], values.shape, [vector], "SubOptions", constants_first=True)
    (cause,) = find_causes(case(tmp_path, "SUB", content, [values], lambda _: vector[0] - values))
    assert "operand 0, 'c0'" in cause.shown_by


def test_spread_along_another_dimension(tmp_path: Path) -> None:
    inputs: list[Array] = [random((1, 6, 6, 6), 1), random((1, 1, 1, 6), 2)]
    content = model("MUL", inputs, (1, 6, 6, 6), options="MulOptions")
    turned = inputs[1].reshape(1, 6, 1, 1)
    (cause,) = find_causes(case(tmp_path, "MUL", content, inputs, lambda _: np.multiply(inputs[0], turned)))
    assert "spread along other dimensions" in cause.shown_by


def test_repeated_in_the_order_of_memory(tmp_path: Path) -> None:
    inputs: list[Array] = [random((1, 6, 4, 5), 1), random((1, 6, 1, 1), 2)]
    content = model("ADD", inputs, (1, 6, 4, 5), options="AddOptions")
    flat = np.resize(inputs[1], (1, 6, 4, 5))
    (cause,) = find_causes(case(tmp_path, "ADD", content, inputs, lambda _: np.add(inputs[0], flat)))
    assert "repeated in the order of memory" in cause.shown_by


def test_a_single_channel_that_is_followed_by_zeros(tmp_path: Path) -> None:
    inputs: list[Array] = [random((1, 6, 4, 8), 1), random((1, 6, 4, 1), 2)]
    content = model("ADD", inputs, (1, 6, 4, 8), options="AddOptions")
    spread = np.where(np.arange(8) % 4 == 0, inputs[1], np.float32(0))
    (cause,) = find_causes(case(tmp_path, "ADD", content, inputs, lambda _: np.add(inputs[0], spread)))
    assert "the first of each four channels alone" in cause.shown_by


def test_whole_numbers(tmp_path: Path) -> None:
    inputs = [whole((1, 6, 5, 8), 1), whole((8,), 2)]
    quantizations = [Quantization(0.5, -3), Quantization(0.5, 9), Quantization(1.0, 5)]
    content = model("ADD", [inputs[0]], (1, 6, 5, 8), [inputs[1]], "AddOptions", quantizations)
    real = (inputs[0].astype(float) + 3) * 0.5 + (float(inputs[1][0]) - 9) * 0.5
    given = np.clip(np.rint(real + 5), -128, 127).astype(np.int8)
    (cause,) = find_causes(case(tmp_path, "ADD", content, [inputs[0]], lambda _expected: given))
    assert cause.name == "wrong broadcast"


def test_with_an_activation_built_in(tmp_path: Path) -> None:
    values, vector = random((1, 6, 5, 8), 1), random((8,), 2)
    content = model("ADD", [values], values.shape, [vector], "AddOptions", FusedActivationFunction=models.RELU)
    (cause,) = find_causes(case(tmp_path, "ADD", content, [values], lambda _: np.maximum(values + vector[0], 0)))
    assert cause.name == "wrong broadcast"


def test_operands_swapped(tmp_path: Path) -> None:
    inputs: list[Array] = [random((1, 60), 1), random((1, 60), 2) + np.float32(3)]
    content = model("DIV", inputs, (1, 60), options="DivOptions")
    (cause,) = find_causes(case(tmp_path, "DIV", content, inputs, lambda _: np.divide(inputs[1], inputs[0])))
    assert cause.name == "operands swapped"


def test_noise_is_no_broadcast(tmp_path: Path) -> None:
    values, vector = random((1, 6, 5, 8), 1), random((8,), 2)
    content = model("ADD", [values], values.shape, [vector], "AddOptions")
    noise = random(values.shape, 3)
    assert not find_causes(case(tmp_path, "ADD", content, [values], lambda y: np.add(y, noise)))
