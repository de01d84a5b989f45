"""``evaltools inspect`` as a user types it: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evaltools.datasets import sample
from tests import tiny_models
from tests.command import Completed, evaltools_here
from tests.tflite_writer import Graph

EPSILON = 1e-5


def model_with_epsilon(folder: Path) -> Path:
    """ADD of 1e-5, which fp16 holds with few digits, then NEG."""
    graph = Graph()
    fed = graph.tensor("input", (1, 8, 8, 4))
    epsilon = graph.constant("epsilon", np.array([EPSILON], np.float32))
    total = graph.node("ADD", [fed, epsilon], graph.tensor("sum", (1, 8, 8, 4)))
    path = folder / "model.tflite"
    path.write_bytes(graph.to_bytes([fed], [graph.node("NEG", [total], graph.tensor("given", (1, 8, 8, 4)))]))
    return path


def inspect(*arguments: object, cwd: Path | None = None) -> Completed:
    return evaltools_here("inspect", *map(str, arguments), cwd=cwd)


def test_the_findings_are_printed_with_what_they_rest_on(tmp_path: Path) -> None:
    path = model_with_epsilon(tmp_path)
    completed = inspect(path, "--run=false")
    assert (completed.code, completed.err) == (0, "")
    lines = completed.out.splitlines()
    for line in (
        f"model       {path}",
        f"size        {path.stat().st_size} bytes, 4 of them constants",
        f"sha256      {hashlib.sha256(path.read_bytes()).hexdigest()}",
        "graphs      1, 4 tensors, 2 nodes in the main one",
        "operators   ADD x1, NEG x1",
        "signatures  none",
        "metadata    none",
        "input       input: float32[1,8,8,4]",
        "output      given: float32[1,8,8,4]",
        "kind        float32 (from the graph: 2 of 2 operators: float32)",
        'Delegates made for this kind (from the documentation: TensorFlow Lite, "LiteRT delegates")',
        "GPU       yes   Android and iOS",
        "GPU (--use_gpu=true): not tested: --run=false",
        "Known traps of GPUs in this graph (from the graph)",
        "none of those that are known",
        "Float constants that fp16 does not hold (from the graph)",
        "epsilon   ADD #0    1       0            0            1            1e-05 .. 1e-05",
    ):
        assert line in lines


def test_what_was_tested_is_said_to_be(tmp_path: Path) -> None:
    completed = inspect(model_with_epsilon(tmp_path))
    assert completed.code == 0
    tested = [line for line in completed.out.splitlines() if line.startswith("XNNPACK (--runtime=")]
    assert tested
    assert all("2 of 2 nodes in 1 partition (tested here: " in line for line in tested)
    assert "\nGPU (--use_gpu=true): " in completed.out


def test_the_json_file_has_everything(tmp_path: Path) -> None:
    path, output = model_with_epsilon(tmp_path), tmp_path / "out.json"
    completed = inspect(f"--model_file={path}", f"--output_file_path={output}")
    assert completed.code == 0
    found = json.loads(output.read_text())
    assert set(found) == {
        "evaltools", "basis", "model", "kind", "support", "runs", "gpu_traps", "outside_fp16",
    }  # fmt: skip
    assert found["model"]["operators"] == {"ADD": 1, "NEG": 1}
    assert found["kind"]["kind"] == "float32"
    assert [entry["supported"] for entry in found["support"]["delegates"]] == [True, True, False, True]
    assert found["runs"][0]["basis"] == "tested here"
    assert found["outside_fp16"][0]["count"]["smallest"] == pytest.approx(EPSILON)
    assert set(found["basis"]) < set(found)


def test_a_quantised_input_has_its_formula_and_a_signature_its_name(tmp_path: Path) -> None:
    completed = inspect(sample.model_file("int8"), "--run=false")
    assert completed.code == 0
    assert ": int8[1,64,64,3], real = " in completed.out
    assert "in its signature)" in completed.out
    assert "quantisation-aware training: cannot be told from post-training full integer" in completed.out


def test_other_graphs_free_sizes_and_metadata_are_told(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(tiny_models.two_signatures(metadata=b"any"))
    completed = inspect(path, "--run=false")
    assert "graphs      2, 5 tensors, 2 with free sizes, 1 node in the main one" in completed.out
    assert "signatures  double, negate\nmetadata    TFLITE_METADATA\n" in completed.out


def test_names_from_the_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    graph = Graph()
    fed = graph.tensor("a\x1b[31mb\nc[red]", (1, 4))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.to_bytes([fed], [graph.node("evil\x1b[2J", [fed], graph.tensor("x", (1, 4)))]))
    completed = inspect(path, "--run=false")
    assert completed.code == 0
    assert "\x1b" not in completed.out
    assert "a\\x1b[31mb\\nc[red]: float32[1,4]" in completed.out


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "foreign", "cut short"])
def test_what_is_no_model_is_refused_without_a_traceback(tmp_path: Path, kind: str) -> None:
    whole = tiny_models.classifier()
    path = tmp_path / "model.tflite"
    contents = {"empty": b"", "foreign": b"PK\x03\x04" + bytes(100), "cut short": whole[: len(whole) // 2]}
    if kind == "folder":
        path.mkdir()
    elif kind in contents:
        path.write_bytes(contents[kind])
    completed = inspect(path)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith(f"evaltools: {path} ")
    assert "Traceback" not in completed.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing: the model. Give evaltools inspect MODEL.tflite"),
        (["a.tflite", "b.tflite"], "--model_file is given twice, as --model_file=a.tflite and --model_file=b.tflite"),
        (["a.tflite", "--runs=false"], "--runs=false: no such flag. Did you mean --run?"),
        (["a.tflite", "--run=maybe"], "--run=maybe: not a valid value; use true, false, 1 or 0"),
        (["a.tflite", "--output_file_path=out.pb"], "the findings are JSON; give a name that ends in .json"),
        (["a.tflite", "--output_file_path=none/out.json"], "does not exist"),
        (["a.json", "--output_file_path=./a.json"], "would overwrite the model; give another name"),
    ],
)
def test_what_is_typed_wrong_is_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    completed = inspect(*arguments, cwd=tmp_path)
    assert (completed.code, completed.out) == (2, "")
    assert message in completed.err
    assert "Traceback" not in completed.err


def test_findings_that_cannot_be_printed_are_an_error(tmp_path: Path) -> None:
    shutil.copy(sample.model_file("float32"), tmp_path / "model.tflite")
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "evaltools.cli.main", "inspect", "model.tflite", "--run=false"]
        completed = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert completed.returncode == 5
    assert "Traceback" not in completed.stderr
