"""``evaltools imagenet``: wrong flags, files and pictures, with the exit codes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.command import evaltools, evaltools_here
from tests.evaluation_set import EvaluationSet


def test_corrupt_pictures_are_listed_and_the_rest_is_measured(copied: EvaluationSet) -> None:
    (copied.images / "003.png").write_bytes(b"")
    (copied.images / "010.png").write_bytes((copied.images / "010.png").read_bytes()[:60])
    completed = evaltools_here(*copied.flags("--use_xnnpack=false"))
    assert completed.code == 4
    assert "INFO: Num evaluation runs: 28" in completed.out
    assert f"Top-1 Accuracy: {np.float32(23) / np.float32(28):g}" in completed.out
    assert "failed: 003.png: is no readable PNG picture" in completed.err
    assert "failed: 010.png: " in completed.err


def test_too_many_failures_stop_the_run(copied: EvaluationSet) -> None:
    for index in range(5, 9):
        (copied.images / f"00{index}.png").write_bytes(b"")
    completed = evaltools_here(*copied.flags("--max_failed_examples=2"))
    assert completed.code == 4
    assert "stopped after 8 of 30 examples: more than --max_failed_examples=2 examples failed" in completed.err


def test_an_example_that_fails_while_running_is_recorded(evaluation: EvaluationSet, rounding_delegate: Path) -> None:
    config = f"bad: external_delegate_path={rounding_delegate} external_delegate_options=fail:invoke"
    completed = evaltools(*evaluation.flags("--use_xnnpack=false", "--config", config))
    assert completed.code == 3
    assert "INFO: Configuration: test" in completed.out
    assert "bad: not measured: not one example succeeded" in completed.err
    assert "invoke fails, as option fail asks" in completed.err
    assert "invoke fails, as option fail asks" in completed.err


def test_a_truth_that_is_shifted_by_a_line_is_no_mere_low_figure(copied: EvaluationSet) -> None:
    lines = copied.truths.read_text().splitlines()
    copied.truths.write_text("\n".join([*lines[1:], lines[0]]) + "\n")
    completed = evaltools_here(*copied.flags("--use_xnnpack=false", "--label_check=false"))
    assert completed.code == 0, completed.err
    assert (
        "of 30 first answers are right, no more than of answers that know nothing of the pictures; see" in completed.err
    )


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--use_xnpack=true", "--use_xnpack=true: no such flag. Did you mean --use_xnnpack?"),
        ("--num_images=3x", "--num_images=3x: not a valid value; use a whole number"),
        ("stray", "model stray: no such file. Each word without -- is a model to evaluate"),
        ("-use_gpu=true", "flags start with two dashes: --use_gpu=true"),
        ("--config=x", 'expected "NAME: flag=value flag=value"'),
        ("--configs=/none.yaml", "--configs=/none.yaml cannot be read"),
        ("--reference=use_gpuu", "configuration 'reference': "),
        ("--output_file_path=/none/x.json", "the folder /none does not exist"),
        ("--output_file_path=/tmp", "is a folder; give a file name"),
        ("--external_delegate_path=/none.so", "--external_delegate_path=/none.so: no such file"),
    ],
)
def test_wrong_flags_are_one_message_and_exit_code_2(evaluation: EvaluationSet, flag: str, message: str) -> None:
    completed = evaltools_here(*evaluation.flags("--use_xnnpack=false", flag))
    assert completed.code == 2
    assert completed.out == ""
    assert "Traceback" not in completed.err
    assert message in completed.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model", "model.tflite is empty"),
        ("labels", "labels.txt is empty"),
        ("truths", "truths.txt is empty"),
    ],
)
def test_empty_files_are_refused(copied: EvaluationSet, name: str, message: str) -> None:
    getattr(copied, name).write_bytes(b"")
    completed = evaltools_here(*copied.flags())
    assert completed.code == 2
    assert message in completed.err


def test_an_empty_folder_is_refused(copied: EvaluationSet) -> None:
    shutil.rmtree(copied.images)
    assert "no such folder" in evaltools_here(*copied.flags()).err
    copied.images.mkdir()
    completed = evaltools_here(*copied.flags())
    assert completed.code == 2
    assert "has no pictures (no files)" in completed.err


def test_a_label_count_that_does_not_fit_the_pictures(copied: EvaluationSet) -> None:
    copied.truths.write_text("class1\n")
    completed = evaltools_here(*copied.flags())
    assert completed.code == 2
    assert "has 30 pictures" in completed.err
    assert "has 1 lines" in completed.err


def test_the_native_tool_stops_at_the_first_picture_that_fails(copied: EvaluationSet) -> None:
    (copied.images / "000.png").write_bytes(b"")
    completed = evaltools_here(*copied.flags("--use_xnnpack=false", "--compat=native"))
    assert completed.code == 4
    assert "stopped after 1 of 30 examples: an example failed, and the native tool stops there" in completed.err


def test_a_label_list_without_the_background_line(copied: EvaluationSet) -> None:
    lines = copied.labels.read_text().splitlines()
    copied.labels.write_text("\n".join(lines[1:]) + "\n")
    completed = evaltools_here(*copied.flags())
    assert completed.code == 2
    assert "has 11 lines, the model's output has 12" in completed.err
    assert "--label_offset=1" in completed.err
    fixed = evaltools_here(*copied.flags("--label_offset=1", "--use_xnnpack=false"))
    assert copied.answers[6:].count(0) == 1, "the one picture whose label is missing now"
    assert f"Top-1 Accuracy: {23 / 30:g}\n" in fixed.out
