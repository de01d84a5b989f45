"""The shards of a run, merged, are the run; what is no shard of it is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evaltools.datasets import sample
from evaltools.preprocess import ImageToTensor, decode_image
from evaltools.result.evaluation import EvaluationResult
from evaltools.result_file import read_result
from tests import tiny_models
from tests.cli.evaluate.sample_runs import (
    XNNPACK,
    coco,
    figures,
    figures_here,
    imagenet,
    inference_diff,
    journal_rows,
    start,
)
from tests.command import Completed, evaltools_here

pytestmark = pytest.mark.once

COUNT = 3
PICTURES = 20
REFERENCE_KERNELS = "plain C++: kernels=reference"


def words_of(command: list[str], folder: Path, index: int, count: int) -> list[str]:
    """The command of a shard, whose folder is given."""
    return [*command, f"--run_dir={folder}", f"--shard_index={index}", f"--shard_count={count}"]


def run_shards(command: list[str], folder: Path, *indices: int, count: int = COUNT) -> list[Path]:
    """Run shards one after the other; their folders."""
    places = [folder / f"shard{index}" for index in indices]
    for place, index in zip(places, indices, strict=True):
        done = evaltools_here(*words_of(command, place, index, count))
        assert done.code == 0, done.err
    return places


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of three shards, which ran at the same time."""
    places = [tmp_path_factory.mktemp("shards") / f"shard{index}" for index in range(COUNT)]
    command = imagenet(XNNPACK, pictures=PICTURES)
    running = [start(words_of(command, place, index, COUNT)) for index, place in enumerate(places)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    return places


def merge(*folders: Path, flags: tuple[str, ...] = ()) -> Completed:
    return evaltools_here("merge", *map(str, folders), *flags)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(imagenet(XNNPACK, "--config", REFERENCE_KERNELS, pictures=PICTURES), id="imagenet"),
        pytest.param(coco("--config", REFERENCE_KERNELS, "--num_threads=1"), id="coco"),
        pytest.param(inference_diff("--config", REFERENCE_KERNELS), id="inference-diff"),
    ],
)
def test_merged_shards_are_the_whole(command: list[str], tmp_path: Path) -> None:
    record = () if command[0] == "inference-diff" else ("--record_examples=true",)
    whole = figures_here([*command, *record], tmp_path / "whole.json")
    folders = run_shards(command, tmp_path, 0, 1, 2)
    parts = [{example for example, _ in journal_rows(folder)} for folder in folders]
    assert [part & other for part in parts for other in parts if part is not other] == [set()] * 6
    assert figures_here(["merge", *map(str, reversed(folders)), *record], tmp_path / "merged.json") == whole


def test_shards_whose_noise_overflows_take_the_same_range_as_the_whole(tmp_path: Path) -> None:
    model = tmp_path / "brighten.tflite"
    model.write_bytes(tiny_models.brighten())
    command = ["inference-diff", f"--model_file={model}", "--num_runs=7", "--noise_floor_runs=3", "--use_xnnpack=true"]
    whole = figures_here([*command, f"--run_dir={tmp_path / 'whole'}"], tmp_path / "whole.json")
    assert read_result(tmp_path / "whole.json").part.inputs[0].range_from == "probe"
    folders = run_shards(command, tmp_path, 0, 1, 2)
    assert figures_here(["merge", *map(str, folders)], tmp_path / "merged.json") == whole


def test_a_shard_that_gave_the_only_test_up_ends_the_whole_there(rounding_delegate: Path, tmp_path: Path) -> None:
    """The third and the fifth picture make it crash: in a row in one of two shards, not among all."""
    *pictures, bad = sorted(sample.images_dir().iterdir())
    (tmp_path / "images").mkdir()
    for place, picture in enumerate(pictures):
        shutil.copy(bad if place in (2, 4) else picture, tmp_path / "images" / picture.name)
    truth = tmp_path / "truth.txt"
    truth.write_text("".join(sample.ground_truth_file().read_text().splitlines(keepends=True)[:-1]))
    value = ImageToTensor(64, 64, np.dtype(np.float32))(decode_image(bad)).ravel().tolist()[0]
    command = [
        "imagenet", f"--model_file={sample.model_file('float32')}", f"--ground_truth_images_path={tmp_path / 'images'}",
        f"--ground_truth_labels={truth}", f"--model_output_labels={sample.labels_file()}", "--label_check=false",
        f"--external_delegate_path={rounding_delegate}", f"--external_delegate_options=fail:abort;fail_at:{value!r}",
        "--use_xnnpack=false", "--max_crashes=2", "--workers=1", "--reference=none",
    ]  # fmt: skip
    folders = [tmp_path / "even", tmp_path / "odd"]
    codes = [evaltools_here(*words_of(command, place, index, 2)).code for index, place in enumerate(folders)]
    assert codes[0] == 3
    assert "examples are in none of the 1 folders" in merge(folders[0]).err
    merged = merge(*folders, flags=(f"--output_file_path={tmp_path / 'merged.json'}",))
    assert merged.code == 3, merged.err
    result = read_result(tmp_path / "merged.json")
    assert (result.stopped, result.complete) == ("every configuration was given up", False)
    assert 5 < result.examples_done < len(pictures)
    assert "a shard of this run gave it up" in (result.configurations[0].reason or "")


def result_of(arguments: list[str], output: Path) -> EvaluationResult:
    done = evaltools_here(*arguments, f"--output_file_path={output}")
    assert done.code == 0, done.err
    return read_result(output)


def test_a_shard_that_is_missing_is_said(shards: list[Path]) -> None:
    completed = merge(shards[0], shards[2])
    assert (completed.code, completed.out) == (2, "")
    assert completed.err == (
        "evaltools: 7 of 20 examples are in none of the 2 folders; give all shards, "
        "and finish those that were interrupted with evaltools resume\n"
    )


def test_the_same_shard_twice_is_refused(shards: list[Path], tmp_path: Path) -> None:
    copy = shutil.copytree(shards[1], tmp_path / "copy")
    completed = merge(*shards, copy)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err == (
        f"evaltools: {shards[1]} holds shard 1/3, {copy} holds shard 1/3; give each shard of one run once\n"
    )
    completed = merge(*shards, shards[1])
    assert completed.code == 2
    assert completed.err == f"evaltools: {shards[1]} is given twice; give each shard of one run once\n"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            lambda flags: [flag.replace("float32.tflite", "float16.tflite") for flag in flags],
            "the model was 5f06b",
            id="another model",
        ),
        pytest.param(
            lambda flags: [flag for flag in flags if flag != XNNPACK] + ["--use_xnnpack=false"],
            "configuration test, its setting was --use_xnnpack=true, now it is --use_xnnpack=false",
            id="another flag",
        ),
    ],
)
def test_a_shard_of_another_run_is_refused(
    shards: list[Path], tmp_path: Path, change: Callable[[list[str]], list[str]], message: str
) -> None:
    (other,) = run_shards(change(imagenet(XNNPACK, pictures=PICTURES)), tmp_path, 2)
    completed = merge(shards[0], shards[1], other)
    assert (completed.code, completed.out) == (2, "")
    assert completed.err.startswith(f"evaltools: {other} is no shard of the run in {shards[0]}: ")
    assert message in completed.err


def test_the_parts_of_another_division_are_refused(shards: list[Path], tmp_path: Path) -> None:
    (other,) = run_shards(imagenet(XNNPACK, pictures=PICTURES), tmp_path, 1, count=2)
    completed = merge(shards[0], other)
    assert completed.code == 2
    assert f"{shards[0]} holds shard 0/3, {other} holds shard 1/2" in completed.err


def test_a_shard_that_did_not_begin_is_said(shards: list[Path], tmp_path: Path) -> None:
    completed = merge(*shards, tmp_path)
    assert completed.code == 2
    assert f"{tmp_path} is no run folder" in completed.err


def test_shards_are_merged_where_they_were_copied_to(shards: list[Path], tmp_path: Path) -> None:
    """As from other hosts: pictures and labels are here, times of change do not count."""
    copies = [shutil.copytree(folder, tmp_path / folder.name) for folder in shards]
    output = tmp_path / "result.json"
    completed = merge(*copies, flags=(f"--output_file_path={output}",))
    assert completed.code == 0, completed.err
    assert figures(output)["examples_done"] == PICTURES
    assert str(sample.images_dir()) in output.read_text()
