"""``evaltools demo`` on what is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import Completed, evaltools, evaltools_here

pytestmark = pytest.mark.once


def demo(folder: Path, *flags: str) -> Completed:
    return evaltools_here("demo", *flags, cwd=folder)


def steps(completed: Completed) -> list[str]:
    """Each command and what it printed, without what the demo says before and after."""
    return completed.err.partition("\nWhat to look at:")[0].split("\n$ evaltools ")[1:]


def test_the_demo_evaluates_a_model_and_says_what_to_look_at(tmp_path: Path) -> None:
    completed = evaltools("demo", "--models=float32", "--detectors=", cwd=tmp_path)
    assert completed.code == 0, completed.err
    assert completed.out == ""
    difference, classes = steps(completed)
    assert difference.startswith("inference-diff --model_file=")
    assert classes.startswith("imagenet --model_file=")
    assert "91.00 % ±" in classes
    assert "What to look at" in completed.err
    assert os.listdir(tmp_path) == []


def test_the_demo_evaluates_detectors(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--models=", "--detectors=float32,int8")
    assert completed.code == 0, completed.err
    assert completed.out == ""
    first, last = steps(completed)
    assert first.startswith("coco --model_file=")
    assert "float32.tflite" in first
    assert "42.23" in first
    assert last.startswith("coco --model_file=")
    assert "int8.tflite" in last
    assert "41.30" in last
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--models=float64", "'float64' is not a model of the sample; use some of float32,float16,dynamic_range,int8"),
        ("--detectors=float16", "'float16' is not a detector of the sample; use some of float32,int8"),
        ("--where --models=int8", "nothing is evaluated with --where"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(tmp_path: Path, flag: str, message: str) -> None:
    completed = demo(tmp_path, *flag.split())
    assert completed.code == 2
    assert message in completed.err


def test_the_folder_of_the_sample_is_all_that_is_printed(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--where")
    assert (completed.code, completed.err) == (0, "")
    assert Path(completed.out.rstrip("\n"), "models", "int8.tflite").is_file()
