"""``--order=random --seed=S``: every task takes the same examples again, and figures are those of these examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltools.commands.evaluation import request_of_task
from evaltools.datasets import sample
from evaltools.datasets.order import places
from evaltools.known_tasks import task_command
from evaltools.runs.task_run import TaskRun
from evaltools.tasks.framework import read
from tests.cli.evaluate.sample_runs import XNNPACK, coco, figures_here, imagenet
from tests.command import evaltools_here
from tests.requests import flags_of
from tests.tasks.declared import OPTIONS, SAMPLE

RANDOM = ("--order=random", "--seed=3")
LIMITS = {"audio": "num_recordings", "text": "num_rows"}
"""Options that limit the number of examples, where that is not ``num_images``."""
EMBEDDINGS = ("models", {"images": Path("../images"), "ground_truth": Path("../ground_truth.txt")})


def drawn(names: list[str], count: int) -> list[str]:
    """The examples that seed 3 takes of all."""
    return [names[place] for place in places(len(names), count, "random", 3)]


def examples_of(task: str, *words: str) -> list[tuple[str, Any]]:
    """The examples of a task on its sample, and what is right for them; nothing is run."""
    folder, options = {**OPTIONS, "embeddings": EMBEDDINGS}[task]
    model = sample.model_file("int8") if task == "embeddings" else SAMPLE / folder / "model.tflite"
    given = [
        f"--{name}={SAMPLE / folder / value if isinstance(value, Path) else value}" for name, value in options.items()
    ]
    command, typed = task_command(task), (f"--model_file={model}", *given, *words)
    run = TaskRun(read(command, request_of_task(command, flags_of(task, *typed), ("evaltools", task, *typed))))
    return [(example.id, example.target) for example in run.task.examples]


@pytest.mark.parametrize("task", [*OPTIONS, "embeddings"])
def test_a_declared_task_takes_the_first_examples_of_the_random_order_with_what_is_right_for_them(task: str) -> None:
    whole = dict(examples_of(task))
    found = examples_of(task, *RANDOM, f"--{LIMITS.get(task, 'num_images')}=4")
    assert [name for name, _ in found] == drawn([*whole], 4)
    assert [str(target) for _, target in found] == [str(whole[name]) for name, _ in found]


def test_the_accuracy_of_a_sample_is_that_of_its_pictures(tmp_path: Path) -> None:
    whole = figures_here(imagenet(XNNPACK, "--record_examples=true", pictures=0), tmp_path / "whole.json")
    command = imagenet(XNNPACK, "--record_examples=true", *RANDOM, pictures=50)
    found = figures_here(command, tmp_path / "some.json")
    columns = ("example", "configuration", "rank")
    rows = list(zip(*(whole["tables"]["examples"][name] for name in columns), strict=True))
    ranks = {example: rank for example, name, rank in rows if name == "test"}
    expected = drawn([*ranks], 50)
    assert list(dict.fromkeys(found["tables"]["examples"]["example"])) == expected
    right = sum(ranks[name] == 0 for name in expected)
    (test,) = (entry for entry in found["rows"] if entry["name"] == "test")
    assert test["figures"]["top1"]["value"] == pytest.approx(right / 50)
    assert (found["given"]["--order"], found["given"]["--seed"]) == ("random", "3")
    assert whole["given"]["--order"] == "native"
    other = figures_here(imagenet(XNNPACK, "--order=random", pictures=5), tmp_path / "other.json")
    assert other["given"]["--seed"] == "1"
    assert other["given"]["ids of examples"] != found["given"]["ids of examples"]


@pytest.mark.once
def test_shards_of_a_sample_are_the_sample_and_a_run_goes_on_with_its_seed_alone(tmp_path: Path) -> None:
    command, record = coco(XNNPACK, *RANDOM, pictures=6), "--record_examples=true"
    run = f"--run_dir={tmp_path / 'run'}"
    whole = figures_here([*command, record, run], tmp_path / "whole.json")
    assert figures_here(["resume", str(tmp_path / "run")], tmp_path / "resumed.json") == whole
    other = evaltools_here(*coco(XNNPACK, "--order=random", "--seed=4", pictures=6), run)
    assert other.code == 2
    assert "seed" in other.err
    folders = [tmp_path / f"shard{index}" for index in range(2)]
    for index, folder in enumerate(folders):
        done = evaltools_here(*command, f"--run_dir={folder}", f"--shard_index={index}", "--shard_count=2")
        assert done.code == 0, done.err
    assert figures_here(["merge", *map(str, reversed(folders)), record], tmp_path / "merged.json") == whole
