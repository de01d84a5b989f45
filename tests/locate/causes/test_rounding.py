"""Whole numbers rounded another way, and floats of fewer digits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.locate.causes.table import find_causes
from evaltools.model.rounding import round_to
from tests.locate.causes import models
from tests.locate.causes.cases import Array, case, model, random, whole
from tests.tflite_writer import Quantization


def quantized_mul() -> tuple[bytes, list[Array], Array]:
    """A MUL of bytes, and its products in steps of the output before they are rounded."""
    inputs = [whole((1, 400), 1), whole((1, 400), 2)]
    content = model(
        "MUL", inputs, (1, 400), options="MulOptions",
        quantizations=[Quantization(0.5, 2), Quantization(0.25, -5), Quantization(20.1, 3)],
    )  # fmt: skip
    one, other = (inputs[0].astype(float) - 2) * 0.5, (inputs[1].astype(float) + 5) * 0.25
    return content, inputs, one * other / 20.1 + 3


def test_results_that_were_cut_off(tmp_path: Path) -> None:
    content, inputs, exact = quantized_mul()
    cut = np.clip(np.floor(exact), -128, 127).astype(np.int8)
    (cause,) = find_causes(case(tmp_path, "MUL", content, inputs, lambda _expected: cut, tolerance=0.0))
    assert cause.name == "another rounding of whole numbers"
    assert "0 % of them upwards" in cause.shown_by
    assert "seem to be cut off" in cause.shown_by
    assert cause.link.endswith("/LiteRT/issues/7441")


def test_it_is_found_within_a_tolerance_of_one_step(tmp_path: Path) -> None:
    content, inputs, exact = quantized_mul()
    cut = np.clip(np.floor(exact), -128, 127).astype(np.int8)
    assert find_causes(case(tmp_path, "MUL", content, inputs, lambda _expected: cut))


def test_errors_of_a_step_to_both_sides_are_no_bias(tmp_path: Path) -> None:
    content, inputs, _ = quantized_mul()
    steps = np.random.default_rng(3).integers(-1, 2, (1, 400))
    fault = case(tmp_path, "MUL", content, inputs, lambda y: np.clip(y + steps, -128, 127).astype(np.int8), 0.0)
    assert not find_causes(fault)


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_fewer_digits(tmp_path: Path, precision: str) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: round_to(y, precision)))
    assert cause.name == f"computed in {precision}"
    assert "no fault" in cause.shown_by


def test_few_digits_with_large_errors_are_a_fault(tmp_path: Path) -> None:
    content, inputs = models.conv()
    noise = random((1, 12, 12, 8), 5, 0.3)
    wrong = case(tmp_path, "CONV_2D", content, inputs, lambda y: round_to(np.add(y, noise), "fp16"))
    assert not find_causes(wrong)
