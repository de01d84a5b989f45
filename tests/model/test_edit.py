"""Options of one operator, and constants that hold something else, as the runtime takes them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from evaltools.model.cut import operator_options, with_constants
from tests.interpreters import make_interpreter, run
from tests.tflite_writer import Graph

WEIGHTS = np.arange(18, dtype=np.float32).reshape(1, 3, 3, 2)
IMAGE = np.random.default_rng(1).standard_normal((1, 5, 5, 2)).astype(np.float32)


def convolution() -> bytes:
    graph = Graph()
    image = graph.tensor("image", IMAGE.shape)
    weights, bias = graph.constant("weights", WEIGHTS), graph.constant("bias", np.array([7], np.float32))
    output = graph.tensor("y", (1, 5, 5, 1))
    graph.node(
        "CONV_2D", [image, weights, bias], output, "Conv2DOptions",
        Padding=0, StrideH=1, StrideW=1, DilationHFactor=1, DilationWFactor=1, FusedActivationFunction=1,
    )  # fmt: skip
    return graph.to_bytes([image], [output])


def output_of(content: bytes, image: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    return run(make_interpreter("ai_edge_litert", content), [image]).astype(np.float32)


def test_options_are_read() -> None:
    options = operator_options(convolution(), 0)
    assert (options["padding"], options["strideH"], options["fusedActivationFunction"]) == (0, 1, 1)


def test_an_operator_without_options_has_none() -> None:
    graph = Graph()
    fed, made = graph.tensor("x", (1, 3)), graph.tensor("y", (1, 3))
    graph.node("NEG", [fed], made)
    assert operator_options(graph.to_bytes([fed], [made]), 0) == {}


def test_constants_are_changed_and_the_rest_stays() -> None:
    changed = with_constants(convolution(), {2: bytes(4)})
    before = output_of(convolution(), IMAGE)
    assert np.allclose(output_of(changed, IMAGE)[before > 7], before[before > 7] - 7, atol=1e-4)
    assert np.array_equal(output_of(with_constants(convolution(), {}), IMAGE), before)
