"""A model with an operator of MediaPipe's that XNNPACK takes whole, and the builtin kernels do not know."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from tests.command import evaltools_here
from tests.tflite_writer import Graph


def transposed_convolution() -> bytes:
    """One node: input, weights, biases; its options are padding and the two strides."""
    graph = Graph()
    fed = graph.tensor("x", (1, 4, 4, 3))
    weights = graph.constant("w", np.random.default_rng(0).normal(size=(2, 2, 2, 3)).astype(np.float32))
    biases = graph.constant("b", np.zeros(2, np.float32))
    given = graph.tensor("y", (1, 8, 8, 2))
    graph.node("Convolution2DTransposeBias", [fed, weights, biases], given, options=struct.pack("<iii", 1, 2, 2))
    return graph.to_bytes([fed], [given])


def test_the_reference_that_runs_is_named_and_runs(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(transposed_convolution())
    fp16, fp32 = "--config=fp16: use_xnnpack=true xnnpack_force_fp16=true", "--config=fp32: use_xnnpack=true"
    words = ("diff", "m.tflite", fp16, fp32, "--num_runs=3")
    lost = evaltools_here(*words, cwd=tmp_path)
    assert lost.code == 3, lost.err
    assert 'Nothing was compared, as "reference" was not measured.' in lost.err
    assert '--reference="use_xnnpack=true" compares with what runs: "fp32"' in lost.err
    found = evaltools_here(*words, "--reference=use_xnnpack=true", cwd=tmp_path)
    assert found.code == 0, found.err
    assert "Nothing was compared" not in found.err
