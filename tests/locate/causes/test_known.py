"""What is known of an operator is said where the GPU was asked for and nothing explains the values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tflite
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.locate.causes.table import find_causes
from tests.locate.causes.cases import CPU, Array, case, model, random

GPU = Configuration.from_text("gpu", "use_gpu=true")
INPUT, WEIGHTS, BIAS = random((1, 6, 6, 4), 1), random((1, 1, 1, 8), 2), random((8,), 3)


def multiplied(multiplier: int = 2) -> bytes:
    return model(
        "DEPTHWISE_CONV_2D",
        [INPUT],
        (1, 6, 6, 4 * multiplier),
        [WEIGHTS[..., : 4 * multiplier], BIAS[: 4 * multiplier]],
        "DepthwiseConv2DOptions",
        Padding=tflite.Padding.SAME,
        StrideH=1,
        StrideW=1,
        DilationHFactor=1,
        DilationWFactor=1,
        DepthMultiplier=multiplier,
    )


def with_weights_of_other_channels(expected: Array) -> Array:
    """As a GPU in software gives it: weight ``m * 4 + c`` for output ``c * 2 + m``."""
    given = [INPUT[..., out // 2] * WEIGHTS[0, 0, 0, out % 2 * 4 + out // 2] + BIAS[out] for out in range(8)]
    return np.asarray(np.stack(given, -1), expected.dtype)


def test_a_known_fault_of_the_gpu(tmp_path: Path) -> None:
    found = case(tmp_path, "DEPTHWISE_CONV_2D", multiplied(), [INPUT], with_weights_of_other_channels)
    (cause,) = find_causes(replace(found, configuration=GPU))
    assert cause.name == "a known fault of the GPU"
    assert "takes weights of other channels: measured with" in cause.shown_by
    assert cause.remedy == "make it a CONV_2D"
    assert not [cause for cause in find_causes(replace(found, configuration=CPU)) if "known" in cause.name]


def test_an_operator_without_one_has_none(tmp_path: Path) -> None:
    noise = random((1, 6, 6, 4), 9)
    found = case(tmp_path, "DEPTHWISE_CONV_2D", multiplied(1), [INPUT], lambda y: np.add(y, noise))
    assert not [cause for cause in find_causes(replace(found, configuration=GPU)) if "known" in cause.name]


def test_what_explains_the_values_comes_first(tmp_path: Path) -> None:
    found = case(tmp_path, "DEPTHWISE_CONV_2D", multiplied(), [INPUT], lambda y: np.multiply(y, np.float32(2)))
    (cause,) = find_causes(replace(found, configuration=GPU))
    assert cause.name == "multiplied by a constant"
