"""Which pictures a part needs, and into how many parts a run is divided."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaltools.commands.names import task_of
from evaltools.device.evaluation import examples_of
from evaltools.device.on_device import lay_out
from evaltools.device.pool import parts_of
from evaltools.device.store import archives, names_in
from evaltools.engine.execution import Shard
from evaltools.errors import UsageError
from evaltools.request.flags import parse_flags
from evaltools.tasks.shared.declared import declared_task
from evaltools.tasks.shared.evaluation import Evaluation, pictures_of_shard
from tests.command import evaltools
from tests.detection_set import DetectionSet, make_detection_set
from tests.evaluation_set import EvaluationSet
from tests.tflite_writer import Graph


@pytest.fixture(scope="module")
def detection(tmp_path_factory: pytest.TempPathFactory) -> DetectionSet:
    """Eleven pictures, of which a part of five needs at most three of its own."""
    return make_detection_set(tmp_path_factory.mktemp("detection"), count=11)


def found(arguments: Sequence[str]) -> Evaluation[Any]:
    command, *words = arguments
    task = task_of(command)
    assert task is not None
    kind = declared_task(task)
    return examples_of(kind, kind.request_of_flags(parse_flags(command, "", "", kind.groups, words), []))


def diff(evaluation: EvaluationSet, *more: str) -> list[str]:
    return ["inference-diff", f"--model_file={evaluation.model}", "--noise_floor_runs=0", *more]


def names(examples: Evaluation[Any], flag: str, shard: Shard) -> list[str]:
    return [path.name for path in examples.pictures_of(flag, shard)]


def numbered(*numbers: int) -> list[str]:
    return [f"{number:03d}.png" for number in numbers]


@pytest.mark.parametrize(
    ("examples", "asked", "devices", "parts"),
    [
        (500, 0, 1, 1),
        (501, 0, 1, 2),
        (50_000, 0, 4, 100),
        (50, 0, 2, 5),
        (1000, 0, 5, 20),
        (15, 0, 2, 1),
        (0, 0, 2, 1),
        (50, 7, 3, 7),
        (5, 7, 3, 5),
        (0, 7, 3, 1),
    ],
)
def test_there_are_as_many_parts_as_asked_for_else_as_many_as_make_sense(
    examples: int, asked: int, devices: int, parts: int
) -> None:
    """Several for each device, none of less than ten examples or more than 500."""
    assert parts_of(examples, asked, devices) == parts


@pytest.mark.parametrize("count", [1, 3, 12])
@pytest.mark.parametrize("shared", [0, 4, 100])
def test_all_parts_together_have_all_pictures_and_each_has_the_shared_ones(count: int, shared: int) -> None:
    paths = [Path(f"{number:03d}.png") for number in range(11)]
    shards = [pictures_of_shard(paths, 11, shared, Shard(index, count)) for index in range(count)]
    assert sorted({path for part in shards for path in part}) == paths
    for index, part in enumerate(shards):
        assert list(part) == sorted(set(paths[index::count]) | set(paths[:shared]))


def test_pictures_that_repeat_are_sent_once() -> None:
    """Runs 0 to 9 of three pictures: run 7 has the picture 1 again."""
    paths = [Path("a"), Path("b"), Path("c")]
    assert pictures_of_shard(paths, 10, 0, Shard(0, 3)) == (Path("a"),), "runs 0, 3, 6 and 9"
    assert pictures_of_shard(paths, 10, 0, Shard(1, 3)) == (Path("b"),)
    assert pictures_of_shard(paths, 10, 0, Shard(1, 2)) == tuple(paths)


def test_a_classification_counts_what_the_denylist_and_num_images_leave(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    """The numbers of a denylist count from 1; of thirty pictures 000 and 002 go, then ten stay."""
    (tmp_path / "deny.txt").write_text("1\n3\n")
    examples = found(evaluation.flags(f"--denylist_file_path={tmp_path / 'deny.txt'}", "--num_images=10"))
    assert (examples.example_count, examples.shared_pictures, examples.task.keeps_state) == (10, 0, False)
    assert names(examples, "ground_truth_images_path", Shard()) == numbered(1, 3, 4, 5, 6, 7, 8, 9, 10, 11)
    assert names(examples, "ground_truth_images_path", Shard(1, 4)) == numbered(3, 7, 11)


def test_a_detection_has_the_first_pictures_in_every_part(detection: DetectionSet) -> None:
    """By them each device finds out which output is what, and which category a class is."""
    examples = found(detection.flags())
    assert (examples.example_count, examples.shared_pictures) == (11, 32)
    assert names(examples, "ground_truth_images_path", Shard(4, 5)) == names(
        examples, "ground_truth_images_path", Shard()
    )


def test_an_inference_diff_on_pictures_has_as_many_examples_as_runs(evaluation: EvaluationSet) -> None:
    images = f"--input_images={evaluation.images}"
    assert found(diff(evaluation, images)).example_count == 30
    few = found(diff(evaluation, images, "--num_runs=4"))
    assert names(few, "input_images", Shard(3, 4)) == numbered(0, 3), "the first one warms up"
    many = found(["diff", *diff(evaluation, images, "--num_runs=65")[1:]])
    assert many.example_count == 65
    assert names(many, "input_images", Shard(2, 31)) == numbered(0, 2, 3, 4), "runs 2, 33 and 64"
    both = found(diff(evaluation, images, "--inputs=both"))
    assert both.example_count == 60
    assert names(both, "input_images", Shard(19, 20)) == numbered(0, 9, 19, 29), "runs 19, 39 and 59"


def test_a_model_with_a_state_is_done_in_one_part(tmp_path: Path) -> None:
    """A shard of its runs would begin with another state."""
    graph = Graph()
    fed, state = graph.tensor("fed", (1, 4)), graph.tensor("state", (1, 4), variable=True)
    output = graph.node("ADD", [fed, state], graph.tensor("sum", (1, 4)), "AddOptions")
    (tmp_path / "state.tflite").write_bytes(graph.to_bytes([fed], [output]))
    examples = found(["inference-diff", f"--model_file={tmp_path / 'state.tflite'}", "--num_runs=100"])
    assert examples.task.keeps_state


@pytest.mark.parametrize("flag", ["output_file_path", "detections_path"])
def test_a_file_that_cannot_be_written_is_said_before_anything_is_sent(
    flag: str, evaluation: EvaluationSet, detection: DetectionSet, tmp_path: Path
) -> None:
    """And not when all parts are done."""
    word = f"--{flag}={tmp_path / 'none' / 'result.json'}"
    commands = [detection.flags(word)]
    if flag == "output_file_path":
        commands += [evaluation.flags(word), diff(evaluation, word)]
    for command in commands:
        with pytest.raises(UsageError, match=f"--{flag}=.*none"):
            found(command)


def evaluation_flags(evaluation: EvaluationSet, **changed: Path) -> list[str]:
    names_given = tuple(f"--{name}=" for name in changed)
    kept = [flag for flag in evaluation.flags() if not flag.startswith(names_given)]
    return [*kept, *(f"--{name}={path}" for name, path in changed.items())]


# ----- a part has what it needs


def laid_out(examples: Evaluation[Any], flag: str, pictures: Path, shard: Shard, folder: Path) -> Path:
    """The folder of pictures as a device has it for a part."""
    folder.mkdir(parents=True)
    (folder / "all.json").write_bytes(names_in(pictures))
    (content,) = archives(pictures, examples.pictures_of(flag, shard))
    (folder / "some.tar").write_bytes(content)
    lay_out(folder / flag, [folder / "all.json", folder / "some.tar"])
    return folder / flag


@pytest.mark.once
@pytest.mark.parametrize("inputs", ["photos", "both"])
def test_a_part_of_a_diff_finds_every_picture_that_it_uses(
    inputs: str, evaluation: EvaluationSet, tmp_path: Path
) -> None:
    """The others have their names and sizes and are not pictures: a run that took one would fail."""
    shard, output = Shard(2, 3), tmp_path / "result.json"
    command = diff(evaluation, "--num_runs=40", f"--inputs={inputs}")
    examples = found([*command, f"--input_images={evaluation.images}"])
    there = laid_out(examples, "input_images", evaluation.images, shard, tmp_path / "there")
    done = evaltools(
        *(*command, f"--input_images={there}", f"--shard_index={shard.index}", f"--shard_count={shard.count}"),
        *(f"--run_dir={tmp_path / 'run'}", f"--output_file_path={output}", "--workers=1"),
    )
    assert done.code == 0, done.err
    result = json.loads(output.read_text())
    assert result["failed"] == []
    assert result["examples_done"] == shard.size_of(40)
