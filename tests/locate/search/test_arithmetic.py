"""By how much right kernels round to one side: those of the runtime, held against what the scales tell."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evaltools.configuration import Configuration
from evaltools.locate.parts.difference import HALVES, ONE_SIDED, one_sided
from evaltools.locate.search.arithmetic import rules_differ, usual_bias
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from tests.locate.causes.cases import Array, model, run, whole
from tests.tflite_writer import Quantization

MIDDLE, NEGATIVE, POSITIVE = 0, 127, -128
"""Zero points with which the real values of bytes have both signs, or one."""
SHAPE = (256, 16)
XNNPACK, REFERENCE = "use_xnnpack=true num_threads=1", "kernels=reference num_threads=1"


def requantized(operator: str, multiplier: float, zero_point: int) -> tuple[bytes, list[Array]]:
    """Bytes that become ``multiplier`` times a whole number."""
    fed, given = Quantization(1.0, zero_point), Quantization(1 / multiplier, zero_point)
    inputs = [whole(SHAPE, 1)]
    if operator == "FULLY_CONNECTED":
        weights, bias = whole((16, 16), 2, -7, 7), np.zeros(16, np.int32)
        scales = [fed, Quantization(1.0, 0), Quantization(1.0, 0), given]
        return model(operator, inputs, SHAPE, [weights, bias], "FullyConnectedOptions", scales), inputs
    if operator == "LEAKY_RELU":
        content = model(operator, inputs, SHAPE, options="LeakyReluOptions", quantizations=[fed, given], Alpha=0.5)
        return content, inputs
    inputs.append(whole(SHAPE, 2))
    options = f"{operator.title()}Options"
    return model(operator, inputs, SHAPE, options=options, quantizations=[fed, fed, given]), inputs


@pytest.mark.parametrize(
    ("operator", "multiplier", "zero_point", "kernels", "is_more_than_most"),
    [
        ("ADD", 1 / 2, NEGATIVE, XNNPACK, True),
        ("ADD", 1 / 2, MIDDLE, XNNPACK, False),
        ("SUB", 1 / 2, NEGATIVE, XNNPACK, True),
        ("LEAKY_RELU", 1 / 3, POSITIVE, XNNPACK, True),
        ("FULLY_CONNECTED", 1 / 2, NEGATIVE, REFERENCE, True),
        ("FULLY_CONNECTED", 1 / 4, NEGATIVE, REFERENCE, True),
        ("FULLY_CONNECTED", 1 / 3, NEGATIVE, REFERENCE, False),
        ("MUL", 3 / 8, POSITIVE, XNNPACK, False),
    ],
)
def test_kernels_of_the_runtime_differ_by_no_more_than_the_scales_tell(
    operator: str, multiplier: float, zero_point: int, kernels: str, is_more_than_most: bool, tmp_path: Path
) -> None:
    content, inputs = requantized(operator, multiplier, zero_point)
    path = tmp_path / "one.tflite"
    path.write_bytes(content)
    other = run(path, inputs, Configuration.from_text("other", kernels))
    bias = abs(one_sided(other, run(path, inputs)))
    graph = read_contents(read_model(path)).main
    assert bias <= usual_bias(graph, graph.nodes[0]) + 0.01
    assert (bias > ONE_SIDED) == is_more_than_most


def test_with_ordinary_scales_rules_differ_by_a_quarter_at_most(tmp_path: Path) -> None:
    for multiplier in (0.001, 0.07, 0.9, 1.0):
        assert rules_differ(multiplier) <= HALVES
        path = tmp_path / "one.tflite"
        path.write_bytes(requantized("FULLY_CONNECTED", multiplier, MIDDLE)[0])
        graph = read_contents(read_model(path)).main
        assert usual_bias(graph, graph.nodes[0]) == HALVES


def test_averages_may_be_halves_whatever_the_scales_are(tmp_path: Path) -> None:
    path = tmp_path / "mean.tflite"
    content = model(
        "MEAN", [whole((1, 4, 8))], (1, 8), [np.array([1], np.int32)], "ReducerOptions",
        [Quantization(0.5, 3), None, Quantization(0.5, 3)],
    )  # fmt: skip
    path.write_bytes(content)
    graph = read_contents(read_model(path)).main
    assert usual_bias(graph, graph.nodes[0]) == pytest.approx(0.5, abs=0.001)
