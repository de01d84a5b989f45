"""The example of a task of one's own, as a project apart that is installed beside evaltools."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.command import evaltools
from tests.tflite_writer import Graph

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "own_task"
VOCABULARY, LENGTH = 6, 5
TEXTS = ([1, 2, 3, 4, 5], [3, 3, 0], [5, 1])
pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the project is installed; nothing is installed for other tests."""
    folder = tmp_path_factory.mktemp("project")
    shutil.copytree(PROJECT, folder / "source")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--target", str(folder / "installed")]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(folder / "source")], check=True)
    return {"PYTHONPATH": str(folder / "installed")}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that looks the scores of the next token up, and some texts."""
    folder = tmp_path_factory.mktemp("data")
    graph = Graph()
    tokens = graph.tensor("tokens", (1, LENGTH), "int32")
    table = graph.constant("table", scores())
    looked_up = graph.tensor("scores", (1, LENGTH, VOCABULARY))
    graph.node("GATHER", [table, tokens], looked_up, "GatherOptions", Axis=0)
    (folder / "model.tflite").write_bytes(graph.to_bytes([tokens], [looked_up]))
    (folder / "texts.txt").write_text("".join(f"{' '.join(map(str, text))}\n" for text in TEXTS))
    return folder


def scores() -> npt.NDArray[np.float32]:
    return np.random.default_rng(8).normal(0, 2, (VOCABULARY, VOCABULARY)).astype(np.float32)


def expected() -> float:
    """The perplexity, token by token."""
    logarithms = [
        math.log(math.exp(scores()[before, after]) / sum(map(math.exp, scores()[before].tolist())))
        for text in TEXTS
        for before, after in pairwise(text)
    ]
    return math.exp(-sum(logarithms) / len(logarithms))


def test_the_tests_of_the_project_pass(installed: dict[str, str], tmp_path: Path) -> None:
    shutil.copy(PROJECT / "test_language_model.py", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=_with(installed))
    assert done.returncode == 0, done.stdout


def _with(environment: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **environment}


def words(data: Path) -> list[str]:
    return [str(data / "model.tflite"), f"--tokens={data / 'texts.txt'}", "--runtime=litert"]


def test_it_is_a_command_with_its_options(installed: dict[str, str], data: Path, tmp_path: Path) -> None:
    output = f"--output_file_path={tmp_path / 'r.json'}"
    done = evaltools("language-model", *words(data), output, environment=installed)
    assert done.code == 0, done.err
    assert "INFO: same_next_token: 1" in done.out
    result = json.loads((tmp_path / "r.json").read_text())
    assert (result["subject"], result["example_count"]) == ("language_model", len(TEXTS))
    perplexities = [entry["figures"]["perplexity"]["value"] for entry in result["rows"]]
    assert perplexities == [pytest.approx(expected())] * 2
    listed = evaltools("--help", environment=installed)
    assert "Perplexity of a language model" in listed.out


def test_it_runs_by_its_name_and_from_python(installed: dict[str, str], data: Path) -> None:
    done = evaltools("run", "language_model", *words(data), environment=installed)
    assert done.code == 0, done.err
    program = (
        "import evaltools as et\n"
        f"folder = {str(data)!r}\n"
        "found = et.run('language_model', folder + '/model.tflite', tokens=folder + '/texts.txt', "
        "tests='runtime=litert')\n"
        "print(f\"INFO: perplexity: {found['test'].perplexity:g}\")\n"
    )
    from_python = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=_with(installed), timeout=120
    )
    assert from_python.stdout.strip() in done.out, from_python.stderr
    assert from_python.stderr == ""
