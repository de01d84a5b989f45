"""``evaltools inspect`` as a user types it: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.command import Completed, evaltools_here
from tests.example_delegate import build_delegate
from tests.tflite_writer import Graph

EPSILON = 1e-9


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


def test_the_json_file_has_everything(tmp_path: Path) -> None:
    path, output = model_with_epsilon(tmp_path), tmp_path / "out.json"
    completed = inspect(f"--model_file={path}", f"--output_file_path={output}")
    assert completed.code == 0
    found = json.loads(output.read_text())
    assert found["models"][0]["operators"] == {"ADD": 1, "NEG": 1}
    model, *runs = found["rows"]
    assert (model["role"], model["texts"]["kind"]) == ("model", "float32")
    assert [row["texts"]["fits"] for row in model["rows"] if row["role"] == "support"] == ["yes", "yes", "no", "yes"]
    assert (runs[0]["role"], runs[0]["texts"]["basis"]) == ("delegate", "tested here")
    (constant,) = [row for row in model["rows"] if row["role"] == "constant"]
    assert constant["figures"]["smallest"]["value"] == pytest.approx(EPSILON)


def test_it_can_be_a_page(tmp_path: Path) -> None:
    path, output = model_with_epsilon(tmp_path), tmp_path / "out.json"
    assert inspect(path, "--run=false", f"--output={output}").code == 0
    made = evaltools_here("report", str(output), f"--output={tmp_path / 'page.md'}")
    assert made.code == 0, made.err
    page = (tmp_path / "page.md").read_text()
    assert page.startswith("# model.tflite: inspect\n")
    assert "kind: float32 (from the graph" in page


def test_names_from_the_file_cannot_command_the_terminal(tmp_path: Path) -> None:
    graph = Graph()
    fed = graph.tensor("a\x1b[31mb\nc[red]", (1, 4))
    path = tmp_path / "model.tflite"
    path.write_bytes(graph.to_bytes([fed], [graph.node("evil\x1b[2J", [fed], graph.tensor("x", (1, 4)))]))
    completed = inspect(path, "--run=false")
    assert completed.code == 0
    assert "\x1b" not in completed.out
    assert "a\\x1b[31mb\\nc[red]: float32[1,4]" in completed.out


def test_my_own_delegate_comes_first(tmp_path: Path) -> None:
    model, output = model_with_epsilon(tmp_path), tmp_path / "out.json"
    library = build_delegate("rounding_delegate", tmp_path)
    completed = inspect(model, f"--external_delegate_path={library}", f"--output={output}")
    assert completed.code == 0, completed.err
    first = json.loads(output.read_text())["rows"][1]
    assert (first["texts"]["delegate"], first["delegates"][0]["nodes"]) == ("EXTERNAL", 1)
    assert first["delegation"] == {"total_nodes": 2, "delegated_nodes": 1, "cpu_operators": {"NEG": 1}}
    assert [row["name"] for row in first["rows"]] == ["NEG"]


CRASHING = """
#include <stdlib.h>
void *tflite_plugin_create_delegate(char **keys, char **values, size_t count, void (*report)(const char *)) { abort(); }
void tflite_plugin_destroy_delegate(void *delegate) {}
"""


def test_a_delegate_that_crashes_is_a_sentence(tmp_path: Path) -> None:
    model, output = model_with_epsilon(tmp_path), tmp_path / "out.json"
    library = tmp_path / "crashing.so"
    command = [str(shutil.which("cc")), "-shared", "-fPIC", "-o", str(library), "-xc", "-"]
    subprocess.run(command, input=CRASHING, text=True, check=True)
    completed = inspect(model, f"--external_delegate_path={library}", f"--output={output}")
    assert completed.code == 3
    _, first, *others = json.loads(output.read_text())["rows"]
    assert first["texts"]["basis"] == "not tested"
    assert "SIGABRT" in first["reason"]
    assert others[0]["texts"]["basis"] == "tested here"
