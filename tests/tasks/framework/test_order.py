"""``--order=random --seed=S``: every task takes the same examples again, and figures are those of these examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import evaltools as et
from evaltools.datasets import sample
from evaltools.datasets.order import places
from evaltools.result.metrics import of_task
from evaltools.result.result import EXAMPLES
from tests.cli.evaluate.sample_runs import XNNPACK, coco, figures_here, imagenet
from tests.command import evaltools_here
from tests.tasks.declared import OPTIONS, run_sample

RANDOM = ("--order=random", "--seed=3")
LIMITS = {"audio": "num_recordings", "text": "num_rows"}
"""Options that limit the number of examples, where that is not ``num_images``."""


def scores(result: et.Result) -> dict[str, Any]:
    """The scores of the examples, in their order."""
    whole = result.result
    figures = [figure for row in whole.rows for figure in of_task(row).values()]
    return {
        example: [figure.of_examples[place] for figure in figures]
        for place, example in enumerate(whole.tables[EXAMPLES]["example"])
    }


def drawn(whole: dict[str, Any], count: int) -> list[str]:
    """The examples that seed 3 takes of all."""
    names = [*whole]
    return [names[place] for place in places(len(names), count, "random", 3)]


@pytest.mark.parametrize("task", OPTIONS)
def test_a_declared_task_takes_the_first_examples_of_the_random_order(task: str) -> None:
    limit = {LIMITS.get(task, "num_images"): 4}
    whole = scores(run_sample(task, record_examples=True))
    found = run_sample(task, record_examples=True, order="random", seed=3, **limit)
    assert [*scores(found)] == drawn(whole, 4)
    given = found.result.given
    assert (given["--order"], given["--seed"], found.result.example_count) == ("random", "3", 4)
    if task == "image_to_image":  # its metrics are means, so that an example's scores are its own
        assert scores(found) == {name: whole[name] for name in drawn(whole, 4)}


def test_embeddings_keep_the_labels_of_their_pictures() -> None:
    """With all pictures in another order every recall is the same."""
    given: dict[str, Any] = {"images": sample.images_dir(), "ground_truth": sample.ground_truth_file()}
    orders: tuple[dict[str, Any], ...] = ({}, {"order": "random", "seed": 3})
    native, random = (
        et.run("embeddings", sample.model_file("int8"), tests={"xnnpack": "use_xnnpack=true"}, **given, **order)
        for order in orders
    )
    assert random.result.given["ids of examples"] != native.result.given["ids of examples"]
    recalls = [each["xnnpack"].figures for each in (native, random)]
    assert recalls[1]["recall_at_1"] == pytest.approx(recalls[0]["recall_at_1"], abs=1e-12)
    assert recalls[1]["recall_at_5"] == pytest.approx(recalls[0]["recall_at_5"], abs=1e-12)


def test_the_accuracy_of_a_sample_is_that_of_its_pictures(tmp_path: Path) -> None:
    whole = figures_here(imagenet(XNNPACK, "--record_examples=true", pictures=0), tmp_path / "whole.json")
    command = imagenet(XNNPACK, "--record_examples=true", *RANDOM, pictures=50)
    found = figures_here(command, tmp_path / "some.json")
    columns = ("example", "configuration", "rank")
    rows = list(zip(*(whole["tables"]["examples"][name] for name in columns), strict=True))
    ranks = {example: rank for example, name, rank in rows if name == "test"}
    expected = drawn(ranks, 50)
    assert list(dict.fromkeys(found["tables"]["examples"]["example"])) == expected
    right = sum(ranks[name] == 0 for name in expected)
    (test,) = (entry for entry in found["rows"] if entry["name"] == "test")
    assert test["figures"]["top1"]["value"] == pytest.approx(right / 50)
    assert (found["given"]["--order"], found["given"]["--seed"]) == ("random", "3")
    assert whole["given"]["--order"] == "native"
    assert figures_here(command, tmp_path / "again.json") == found
    other = figures_here(imagenet(XNNPACK, "--order=random", pictures=50), tmp_path / "other.json")
    assert other["given"]["--seed"] == "1"
    assert other["given"]["ids of examples"] != found["given"]["ids of examples"]


@pytest.mark.once
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(imagenet(XNNPACK, *RANDOM, pictures=11), id="imagenet"),
        pytest.param(coco(XNNPACK, *RANDOM, pictures=8), id="coco"),
    ],
)
def test_shards_of_a_sample_are_the_sample(command: list[str], tmp_path: Path) -> None:
    record = "--record_examples=true"
    whole = figures_here([*command, record], tmp_path / "whole.json")
    folders = [tmp_path / f"shard{index}" for index in range(2)]
    for index, folder in enumerate(folders):
        done = evaltools_here(*command, f"--run_dir={folder}", f"--shard_index={index}", "--shard_count=2")
        assert done.code == 0, done.err
    merged = ["merge", *map(str, reversed(folders)), record]
    assert figures_here(merged, tmp_path / "merged.json") == whole


@pytest.mark.once
def test_a_sample_goes_on_with_its_seed_alone(tmp_path: Path) -> None:
    command = imagenet(XNNPACK, f"--run_dir={tmp_path / 'run'}", "--order=random", pictures=5)
    first = figures_here([*command, "--seed=3"], tmp_path / "first.json")
    assert figures_here(["resume", str(tmp_path / "run")], tmp_path / "resumed.json") == first
    other = evaltools_here(*command, "--seed=4")
    assert other.code == 2
    assert "seed" in other.err
