"""Models that were compiled for hardware are said to be, and fit no delegate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.command import evaltools_here
from tests.tflite_writer import Graph, Quantization

BYTES = Quantization(0.5, 0)


def compiled_model(operator: str, path: Path) -> Path:
    """An operator that holds a program, and a head in float that the CPU runs, as of a detector."""
    graph = Graph()
    fed = graph.tensor("image", (1, 8), "uint8", BYTES)
    found = graph.node(operator, [fed], graph.tensor("found", (1, 8), "uint8", BYTES), options=b"a program")
    real = graph.node("DEQUANTIZE", [found], graph.tensor("real", (1, 8)))
    one = graph.constant("one", np.ones(1, np.float32))
    path.write_bytes(graph.to_bytes([fed], [graph.node("ADD", [real, one], graph.tensor("sum", (1, 8)), "AddOptions")]))
    return path


@pytest.mark.parametrize(
    ("operator", "hardware"),
    [
        ("edgetpu-custom-op", "Coral's Edge TPU"),
        ("ethos-u", "Arm's Ethos-U"),
        ("DISPATCH_OP", "the NPU of a chip"),
        ("TFLite_Detection_PostProcess", ""),
    ],
)
def test_it_is_said_which_hardware_can_run_a_compiled_model(tmp_path: Path, operator: str, hardware: str) -> None:
    output = tmp_path / "out.json"
    model = compiled_model(operator, tmp_path / "model.tflite")
    done = evaltools_here("inspect", str(model), f"--output_file_path={output}")
    assert done.code == 0, done.err
    of_model, *tried = json.loads(output.read_text())["rows"]
    compiled = [part["texts"]["hardware"] for part in of_model["rows"] if part["role"] == "compiled"]
    fits = {part["texts"]["fits"] for part in of_model["rows"] if part["role"] == "support"}
    if not hardware:
        assert (compiled, of_model["texts"]["kind"], fits) == ([], "mixed", {"not known"})
        return
    assert f"compiled for {hardware}: {operator} x1" in done.out
    assert "which neither the CPU nor another delegate can run" in done.out
    assert (of_model["texts"]["kind"], compiled, fits) == ("compiled", [hardware], {"no"})
    assert {row["reason"] for row in tried} == {f"{operator} was compiled for {hardware}"}
