"""``evaltools demo`` on what is installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.command import Completed, evaltools, evaltools_here

pytestmark = pytest.mark.once

PICTURE = "demo_disagreements.png"


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
    assert "91.00 ±" in classes
    assert "What to look at" in completed.err
    assert os.listdir(tmp_path) == []


def test_the_demo_evaluates_detectors_and_draws_what_differs_for_the_last(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--models=", "--detectors=float32,int8")
    assert completed.code == 0, completed.err
    assert completed.out == ""
    first, last = steps(completed)
    assert first.startswith("coco --model_file=")
    assert "float32.tflite" in first
    assert "--disagreements_path" not in first
    assert "42.23" in first
    assert last.startswith("coco --model_file=")
    assert "int8.tflite" in last
    assert f" --disagreements_path={PICTURE} " in last
    assert "41.30" in last
    assert f"The boxes that differ most are drawn in {PICTURE}" in completed.err
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG\r\n")
    assert os.listdir(tmp_path) == [PICTURE]


def test_a_picture_of_an_earlier_run_is_not_announced(tmp_path: Path) -> None:
    """The float32 detector gives the same boxes with all kernels, so there is nothing to draw."""
    (tmp_path / "old.png").write_bytes(b"old")
    completed = demo(tmp_path, "--models=", "--detectors=float32", "--disagreements_path=old.png")
    assert completed.code == 0, completed.err
    assert "old.png is not written: no boxes differ" in completed.err
    assert "are drawn in" not in completed.err
    assert (tmp_path / "old.png").read_bytes() == b"old"


def test_no_picture_on_request(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--models=", "--detectors=int8", "--disagreements_path=")
    assert completed.code == 0, completed.err
    assert "--disagreements_path" not in steps(completed)[0]
    assert "are drawn in" not in completed.err
    assert os.listdir(tmp_path) == []


def test_a_picture_in_a_missing_folder_is_refused_at_once(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--disagreements_path=none/a.png")
    assert completed.code == 2
    assert f"--disagreements_path=none/a.png: the folder {tmp_path}/none does not exist" in completed.err
    assert steps(completed) == []


def test_a_picture_that_is_no_png_is_refused_at_once(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--disagreements_path=x.jpg")
    assert completed.code == 2
    assert "--disagreements_path=x.jpg: the picture is a PNG; give a name that ends in .png" in completed.err
    assert steps(completed) == []


def test_where_the_usual_picture_cannot_be_written_the_demo_goes_on_without(tmp_path: Path) -> None:
    (tmp_path / PICTURE).mkdir()
    completed = demo(tmp_path, "--models=", "--detectors=int8")
    assert completed.code == 0, completed.err
    assert f"the boxes that differ are not drawn: --disagreements_path={PICTURE} is a folder" in completed.err
    assert "--disagreements_path" not in steps(completed)[0]
    assert "are drawn in" not in completed.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_the_demo_runs_in_a_folder_that_is_read_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    completed = demo(tmp_path, "--models=", "--detectors=int8")
    tmp_path.chmod(0o700)
    assert completed.code == 0, completed.err
    assert f"no permission to write to {tmp_path}" in completed.err
    assert os.listdir(tmp_path) == []


def test_the_demo_shows_a_delegate_that_takes_nothing(rounding_delegate: Path, tmp_path: Path) -> None:
    flags = ["--models=int8", "--detectors=", f"--external_delegate_path={rounding_delegate}"]
    completed = demo(tmp_path, *flags)
    assert completed.code == 0, completed.err
    assert "not measured: the EXTERNAL delegate was applied but took none of the 19 nodes" in completed.err


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--models=float64", "'float64' is no model of the sample; use some of float32,float16,dynamic_range,int8"),
        ("--detectors=float16", "'float16' is no detector of the sample; use some of float32,int8"),
    ],
)
def test_an_unknown_model_is_refused(tmp_path: Path, flag: str, message: str) -> None:
    completed = demo(tmp_path, flag)
    assert completed.code == 2
    assert message in completed.err
