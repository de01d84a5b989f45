"""The kind of a model: one model built for each, and the models of the sample, whose kinds their maker states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from evaltools.datasets import sample
from evaltools.model import read_model
from evaltools.model.contents import read_contents
from evaltools.model.kind import KINDS, ModelKind, quantization_kind, support_of
from tests import tiny_models
from tests.tflite_writer import Graph, Quantization

FLOATS = np.ones((4, 8), np.float32)
BYTES = np.ones((4, 8), np.int8)
SCALED = Quantization(0.5, 0)
ASYMMETRIC = Quantization(0.5, 122)
SYMMETRIC_UINT8 = Quantization(0.5, 128)


def kind_of(folder: Path, content: bytes) -> ModelKind:
    path = folder / "model.tflite"
    path.write_bytes(content)
    return quantization_kind(read_contents(read_model(path)).graphs)


def add_dense(
    graph: Graph,
    fed: int,
    weights: npt.NDArray[np.generic],
    given: str = "float32",
    quantization: Quantization | None = None,
    through: str = "",
) -> int:
    """FULLY_CONNECTED with these weights, perhaps ``through`` DEQUANTIZE; quantised types have a scale."""
    constant = graph.constant("weights", weights, quantization)
    if through:
        constant = graph.node(through, [constant], graph.tensor("real weights", weights.shape))
    scale = Quantization(0.25, 3) if given in ("int8", "uint8", "int16") else None
    return graph.node("FULLY_CONNECTED", [fed, constant], graph.tensor("given", (1, 4), given, scale))


def dense(
    weights: npt.NDArray[np.generic],
    given: str = "float32",
    quantization: Quantization | None = None,
    through: str = "",
) -> bytes:
    graph = Graph()
    fed = graph.tensor("input", (1, 8), given, SCALED if given in ("int8", "uint8", "int16") else None)
    return graph.to_bytes([fed], [add_dense(graph, fed, weights, given, quantization, through)])


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (dense(FLOATS), "float32"),
        (dense(FLOATS.astype(np.float16), through="DEQUANTIZE"), "float16 weights"),
        (dense(FLOATS.astype(np.float16)), "float16 weights"),
        (dense(FLOATS.astype(np.float16), "float16"), "float16 throughout"),
        (dense(BYTES, quantization=SCALED), "dynamic range"),
        (dense(BYTES.astype(np.uint8), quantization=ASYMMETRIC), "dynamic range"),
        (dense(BYTES, quantization=SCALED, through="DEQUANTIZE"), "8-bit weights, float32 computation"),
        (dense(BYTES, "int8", SCALED), "full integer"),
        (dense(BYTES.astype(np.uint8), "uint8", SYMMETRIC_UINT8), "full integer"),
        (dense(BYTES.astype(np.uint8), "uint8", ASYMMETRIC), "full integer"),
        (dense(BYTES, "int16", SCALED), "int16x8"),
        (tiny_models.add_chain(), "float32"),
        (tiny_models.add_chain(dtype="int8"), "full integer"),
        (tiny_models.add_chain(dtype="int32"), "neither float nor quantised"),
        (tiny_models.classifier(input_dtype="uint8", output_dtype="int8"), "float32"),
        (sample.model_file("float32").read_bytes(), "float32"),
        (sample.model_file("float16").read_bytes(), "float16 weights"),
        (sample.model_file("dynamic_range").read_bytes(), "dynamic range"),
        (sample.model_file("int8").read_bytes(), "full integer"),
    ],
    ids=str,
)
def test_each_kind_is_told(tmp_path: Path, content: bytes, kind: str) -> None:
    assert kind in KINDS
    assert kind_of(tmp_path, content).kind == kind


def test_float_and_integer_operators_with_weights_are_a_mixture(tmp_path: Path) -> None:
    graph = Graph()
    fed = graph.tensor("input", (1, 8))
    real = add_dense(graph, fed, FLOATS)
    quantized = graph.node("QUANTIZE", [real], graph.tensor("q", (1, 4), "int8", SCALED))
    last = add_dense(graph, quantized, np.ones((4, 4), np.int8), "int8", SCALED)
    assert kind_of(tmp_path, graph.to_bytes([fed], [last])).kind == "mixed"


def test_an_integer_model_names_what_it_computes_in_float(tmp_path: Path) -> None:
    graph = Graph()
    fed = graph.tensor("input", (1, 8), "int8", SCALED)
    scores = add_dense(graph, fed, BYTES, "int8", SCALED)
    real = graph.node("DEQUANTIZE", [scores], graph.tensor("real", (1, 4)))
    softmax = graph.node("SOFTMAX", [real], graph.tensor("scores", (1, 4)), "SoftmaxOptions", Beta=1.0)
    found = kind_of(tmp_path, graph.to_bytes([fed], [softmax]))
    assert found.kind == "full integer"
    assert found.reason.endswith("; in float32: SOFTMAX x1")


SUPPORTED = {
    "float32": ["GPU", "NNAPI", "Core ML"],
    "float16 weights": ["GPU", "Core ML"],
    "dynamic range": ["GPU", "NNAPI"],
    "full integer": ["GPU", "NNAPI", "Hexagon"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_delegates_fit_as_the_document_says_and_of_other_kinds_nothing_is_known(kind: str) -> None:
    supported = {entry.delegate: entry.supported for entry in support_of(kind)}
    if kind in SUPPORTED:
        assert [delegate for delegate, fits in supported.items() if fits] == SUPPORTED[kind]
    else:
        assert set(supported.values()) == {None}


@pytest.mark.parametrize(("kind", "is_said"), [("float32", True), ("dynamic range", True), ("full integer", False)])
def test_a_float_model_on_a_delegate_for_8_bits_is_said_to_run_on_the_cpu(kind: str, is_said: bool) -> None:
    (hexagon,) = (entry for entry in support_of(kind) if entry.delegate == "Hexagon")
    assert ("runs on the CPU" in hexagon.remark) == is_said
