"""The answer of every task: one for each configuration that was asked for, whatever was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import tiny_models
from tests.cli.evaluate.sample_runs import coco, imagenet, inference_diff
from tests.command import evaltools_here
from tests.tasks.own.task_files import write_task, write_values

NAMES = ("fast one", "gone", "plain one")


def own_task(folder: Path) -> list[str]:
    (folder / "model.tflite").write_bytes(tiny_models.vector_input(length=4))
    write_task(folder)
    write_values(folder, 3)
    return ["run", f"{folder / 'own.py'}:brightness", str(folder / "model.tflite"), f"--values={folder / 'values.txt'}"]


@pytest.mark.parametrize("task", ["imagenet", "coco", "coco without truth", "inference_diff", "own"])
def test_every_configuration_gets_exactly_one_answer(task: str, tmp_path: Path) -> None:
    """Of few examples, which decide little, with nothing but the answer."""
    without_truth = [word for word in coco(pictures=4) if "annotations" not in word]
    command = {
        "imagenet": lambda: imagenet(pictures=4),
        "coco": lambda: coco(pictures=4),
        "coco without truth": lambda: without_truth,
        "inference_diff": lambda: inference_diff(runs=2),
        "own": lambda: own_task(tmp_path),
    }[task]()
    no_library = tmp_path / "gone.so"
    no_library.touch()
    settings = ("use_xnnpack=true", f"external_delegate_path={no_library}", "kernels=reference")
    configurations = [f"--config={name}: {setting}" for name, setting in zip(NAMES, settings, strict=True)]
    completed = evaltools_here(*command, *configurations, "--quiet")
    answers = [line for line in completed.err.splitlines() if line.startswith(NAMES)]
    named = [name for line in answers for name in line.partition(": ")[0].split(", ")]
    assert sorted(named) == sorted(NAMES), completed.err
