"""Files that are changed or deleted while a run goes on: it goes on with what it read."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from evaltools.datasets import sample
from evaltools.engine.run import Turn, Workers
from tests.cli.evaluate.sample_runs import figures_here

COMMANDS = {
    "imagenet": (
        f"--ground_truth_images_path={sample.images_dir()}",
        f"--model_output_labels={sample.labels_file()}",
        "--num_images=12",
    ),
    "inference-diff": ("--num_runs=12", "--noise_floor_runs=3"),
}


def overwrite(path: Path) -> None:
    path.write_bytes(b"x" * path.stat().st_size)


def cut(path: Path) -> None:
    os.truncate(path, 10)


def delete(path: Path) -> None:
    path.unlink()


@pytest.mark.skipif(sys.platform != "linux", reason="files without a name are held there alone")
@pytest.mark.parametrize("lose", [overwrite, cut, delete])
@pytest.mark.parametrize("task", COMMANDS)
def test_a_model_that_is_lost_during_the_run_is_held(
    task: str, lose: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "model.tflite"
    labels = tmp_path / "truth.txt"
    shutil.copy(sample.ground_truth_file(), labels)
    command = [task, f"--model_file={model}", *COMMANDS[task], "--workers=1", "--use_xnnpack=true"]
    lost = [model] if task == "inference-diff" else [model, labels]
    command += [f"--ground_truth_labels={labels}"] if task == "imagenet" else []
    shutil.copy(sample.model_file("float32"), model)
    undisturbed = figures_here(command, tmp_path / "undisturbed.json")
    turns = Workers.turns
    begun: list[bool] = []

    def taken(self: Workers, interrupted: Sequence[int]) -> Iterator[Turn]:
        for turn in turns(self, interrupted):
            if not begun:
                begun.append(True)
                for path in lost:
                    lose(path)
            yield turn

    monkeypatch.setattr(Workers, "turns", taken)
    assert figures_here(command, tmp_path / "result.json") == undisturbed
    assert begun
