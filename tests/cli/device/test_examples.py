"""Which pictures a device needs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from evaltools.adb.store import archives, names_in
from evaltools.commands.evaluation import request_of_task
from evaltools.commands.names import task_of
from evaltools.device.on_device import lay_out
from evaltools.errors import UsageError
from evaltools.known_tasks import task_command
from evaltools.request.flags import parse_flags
from evaltools.runs.places import examples_of
from evaltools.runs.task_run import TaskRun
from tests.command import evaltools
from tests.detection_set import DetectionSet, make_detection_set
from tests.evaluation_set import EvaluationSet


@pytest.fixture(scope="module")
def detection(tmp_path_factory: pytest.TempPathFactory) -> DetectionSet:
    """Eleven pictures."""
    return make_detection_set(tmp_path_factory.mktemp("detection"), count=11)


def found(arguments: Sequence[str]) -> TaskRun:
    command, *words = arguments
    task = task_of(command)
    assert task is not None
    asked = task_command(task)
    return examples_of(asked, request_of_task(asked, parse_flags(command, "", "", asked.groups, words), []))


def diff(evaluation: EvaluationSet, *more: str) -> list[str]:
    return ["inference-diff", f"--model_file={evaluation.model}", "--noise_floor_runs=0", *more]


def names(examples: TaskRun, flag: str) -> list[str]:
    return [path.name for path in examples.pictures_of(flag)]


def numbered(*numbers: int) -> list[str]:
    return [f"{number:03d}.png" for number in numbers]


def test_a_classification_counts_what_the_denylist_and_num_images_leave(
    evaluation: EvaluationSet, tmp_path: Path
) -> None:
    """The numbers of a denylist count from 1; of thirty pictures 000 and 002 go, then ten stay."""
    (tmp_path / "deny.txt").write_text("1\n3\n")
    examples = found(evaluation.flags(f"--denylist_file_path={tmp_path / 'deny.txt'}", "--num_images=10"))
    assert examples.example_count == 10
    assert names(examples, "ground_truth_images_path") == numbered(1, 3, 4, 5, 6, 7, 8, 9, 10, 11)


def test_a_detection_has_all_its_pictures(detection: DetectionSet) -> None:
    examples = found(detection.flags())
    assert examples.example_count == 11
    assert len(set(names(examples, "ground_truth_images_path"))) == 11


def test_an_inference_diff_on_pictures_has_as_many_examples_as_runs(evaluation: EvaluationSet) -> None:
    images = f"--input_images={evaluation.images}"
    assert found(diff(evaluation, images)).example_count == 30
    few = found(diff(evaluation, images, "--num_runs=4"))
    assert names(few, "input_images") == numbered(0, 1, 2, 3)
    many = found(["diff", *diff(evaluation, images, "--num_runs=65")[1:]])
    assert many.example_count == 65
    assert names(many, "input_images") == numbered(*range(30)), "each is sent once"
    both = found(diff(evaluation, images, "--inputs=both"))
    assert both.example_count == 60
    assert names(both, "input_images") == numbered(*range(30))


@pytest.mark.parametrize("flag", ["output_file_path", "detections_path"])
def test_a_file_that_cannot_be_written_is_said_before_anything_is_sent(
    flag: str, evaluation: EvaluationSet, detection: DetectionSet, tmp_path: Path
) -> None:
    """And not when everything is done."""
    word = f"--{flag}={tmp_path / 'none' / 'result.json'}"
    commands = [detection.flags(word)]
    if flag == "output_file_path":
        commands += [evaluation.flags(word), diff(evaluation, word)]
    for command in commands:
        with pytest.raises(UsageError, match=f"--{flag}=.*none"):
            found(command)


# ----- a device has what it needs


def laid_out(examples: TaskRun, flag: str, pictures: Path, folder: Path) -> Path:
    """The folder of pictures as a device has it."""
    folder.mkdir(parents=True)
    (folder / "all.json").write_bytes(names_in(pictures))
    (content,) = archives(pictures, examples.pictures_of(flag))
    (folder / "some.tar").write_bytes(content)
    lay_out(folder / flag, [folder / "all.json", folder / "some.tar"])
    return folder / flag


@pytest.mark.once
@pytest.mark.parametrize("inputs", ["photos", "both"])
def test_a_diff_finds_every_picture_that_it_uses(inputs: str, evaluation: EvaluationSet, tmp_path: Path) -> None:
    """The others have their names and sizes and are not pictures: a run that took one would fail."""
    output = tmp_path / "result.json"
    command = diff(evaluation, "--num_runs=9", f"--inputs={inputs}")
    examples = found([*command, f"--input_images={evaluation.images}"])
    there = laid_out(examples, "input_images", evaluation.images, tmp_path / "there")
    done = evaltools(
        *(*command, f"--input_images={there}"),
        *(f"--run_dir={tmp_path / 'run'}", f"--output_file_path={output}", "--workers=1"),
    )
    assert done.code == 0, done.err
    result = json.loads(output.read_text())
    assert result["failed"] == []
    assert result["examples_done"] == 9
