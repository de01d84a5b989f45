"""Activations left out and added."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evaltools.locate.causes import find_causes
from tests.locate.causes import models
from tests.locate.causes.cases import case, random, run, whole


def test_left_out(tmp_path: Path) -> None:
    content, inputs = models.conv(activation=models.RELU6)
    plain = tmp_path / "plain.tflite"
    plain.write_bytes(models.conv()[0])
    given = run(plain, inputs)
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda _expected: given))
    assert cause.name == "an activation was left out"
    assert "outside the bounds of RELU6" in cause.shown_by


def test_added(tmp_path: Path) -> None:
    content, inputs = models.conv()
    (cause,) = find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.maximum(y, np.float32(0))))
    assert cause.name == "an activation was added"
    assert "cut at the bounds of RELU;" in cause.shown_by


def test_added_to_whole_numbers(tmp_path: Path) -> None:
    content, inputs = models.add_int8()
    (cause,) = find_causes(case(tmp_path, "ADD", content, inputs, lambda y: np.maximum(y, np.int8(5))))
    assert cause.name == "an activation was added"


def test_small_values_within_a_wide_tolerance_have_no_cause(tmp_path: Path) -> None:
    """-1 to 1 is 4 to 6 here, so that all values from -6 to 16 are within 10 steps of what would be cut there.

    They are as near to a multiple of next to nothing.
    """
    content, inputs = models.add_int8()
    near_zero = whole((1, 6, 7, 5), 9, -4, 14)
    assert not find_causes(case(tmp_path, "ADD", content, inputs, lambda _expected: near_zero, tolerance=10.0))


def test_an_operator_that_is_an_activation(tmp_path: Path) -> None:
    content, inputs = models.unary("RELU", random((1, 60)))
    causes = find_causes(case(tmp_path, "RELU", content, inputs, lambda _expected: inputs[0]))
    assert [cause.name for cause in causes] == ["the operator was skipped"]


def test_other_values_outside_are_no_activation_left_out(tmp_path: Path) -> None:
    content, inputs = models.conv(activation=models.RELU6)
    noise = random((1, 12, 12, 8), 3)
    assert not find_causes(case(tmp_path, "CONV_2D", content, inputs, lambda y: np.add(y, noise)))
