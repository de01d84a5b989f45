"""The example of a task of one's own, as a project apart that is installed beside evaltools."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests import tiny_models
from tests.command import evaltools

PROJECT = Path(__file__).resolve().parents[2] / "examples" / "own_task"
CLASSES = 4
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
    """A model that gives 4 scores per pixel, pictures and masks."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "model.tflite").write_bytes(tiny_models.conv(shape=(1, 8, 8, 3), filters=CLASSES))
    chance = np.random.default_rng(5)
    for name, shape, values in (("images", (8, 8, 3), 256), ("masks", (8, 8), CLASSES)):
        (folder / name).mkdir()
        for number in range(10):
            pixels = chance.integers(0, values, shape, np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


def test_the_tests_of_the_project_pass(installed: dict[str, str], tmp_path: Path) -> None:
    shutil.copy(PROJECT / "test_segmentation.py", tmp_path)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=_with(installed))
    assert done.returncode == 0, done.stdout


def _with(environment: dict[str, str]) -> dict[str, str]:
    return {**os.environ, **environment}


def test_it_is_a_command_with_its_options(installed: dict[str, str], data: Path, tmp_path: Path) -> None:
    words = [f"--images={data / 'images'}", f"--masks={data / 'masks'}", f"--output_file_path={tmp_path / 'r.json'}"]
    done = evaltools("segmentation", f"--model_file={data / 'model.tflite'}", *words, environment=installed)
    assert done.code == 0, done.err
    assert "INFO: iou: " in done.out
    part = json.loads((tmp_path / "r.json").read_text())["part"]
    assert (part["name"], part["example_count"]) == ("segmentation", 10)
    listed = evaltools("--help", environment=installed)
    assert "Mean intersection over union against masks." in listed.out


def test_it_runs_by_its_name_and_from_python(installed: dict[str, str], data: Path) -> None:
    words = [f"--images={data / 'images'}", f"--masks={data / 'masks'}"]
    done = evaltools("run", "segmentation", str(data / "model.tflite"), *words, environment=installed)
    assert done.code == 0, done.err
    program = (
        "import evaltools as et\n"
        f"folder = {str(data)!r}\n"
        "found = et.run('segmentation', folder + '/model.tflite', images=folder + '/images', masks=folder + '/masks')\n"
        "print(f\"INFO: iou: {found['test'].iou:g}\")\n"
    )
    from_python = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=_with(installed), timeout=120
    )
    assert from_python.stdout.strip() in done.out, from_python.stderr
    assert from_python.stderr == ""
