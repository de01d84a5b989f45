"""The test detectors load and find what they should in both runtimes, with every kind of kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.interpreters import RUNTIMES, make_interpreter
from tests.tflite_writer import Quantization
from tests.tiny_detectors import BOXES, ROLES, TF2_ORDER, detector, postprocess_detector

KERNELS = ("AUTO", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
NAN_SCORES = {"scores": np.full((1, 6), np.nan, np.float32)}


def found(interpreter: Any) -> list[Any]:
    """The outputs for a picture with three objects in its cells 0, 2 and 4."""
    picture = np.full((1, 8, 12, 3), -1, np.float32)
    for cell, channel, value in ((0, 0, 0.5), (2, 1, 0.25), (4, 2, 1)):
        row, column = divmod(cell, 3)
        picture[0, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4, channel] = value
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], picture)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize(
    ("content", "order", "first_class"),
    [
        (postprocess_detector(), ROLES, 0),
        (postprocess_detector(TF2_ORDER), TF2_ORDER, 0),
        (detector(first_class=1), TF2_ORDER, 1),
        (detector(ROLES[:3]), ROLES[:3], 0),
    ],
    ids=["operator", "operator in another order", "ordinary", "without a count"],
)
def test_three_objects_are_found(
    runtime: str, kernels: str, content: bytes, order: tuple[str, ...], first_class: int
) -> None:
    outputs = dict(zip(order, found(make_interpreter(runtime, content, kernels=kernels)), strict=True))
    np.testing.assert_allclose(outputs["boxes"][0, :3], BOXES[[4, 0, 2]], atol=1e-6)
    assert (outputs["classes"][0, :3] - first_class).tolist() == [2, 0, 1]
    assert outputs["scores"][0, :3].tolist() == [1, 0.5, 0.25]
    assert "count" not in order or outputs["count"].tolist() == [3]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_an_output_may_be_fixed(runtime: str, kernels: str) -> None:
    scores, _, count, _ = found(make_interpreter(runtime, detector(fixed=NAN_SCORES), kernels=kernels))
    assert np.isnan(scores).all()
    assert count.tolist() == [3]


def test_every_order_is_another_model() -> None:
    assert len({postprocess_detector(order) for order in itertools.permutations(ROLES)}) == 24


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kernels", KERNELS)
def test_outputs_may_be_quantised(runtime: str, kernels: str) -> None:
    content = detector(quantized={"boxes": Quantization(1 / 240, 10), "scores": Quantization(1 / 200, 0)})
    scores, boxes, _, _ = found(make_interpreter(runtime, content, kernels=kernels))
    assert (scores.dtype, scores[0, :3].tolist()) == (np.uint8, [200, 100, 50])
    assert (boxes.dtype, boxes[0, 0].tolist()) == (np.uint8, [130, 90, 250, 170])
