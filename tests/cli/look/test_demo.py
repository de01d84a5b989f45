"""``evaltools demo`` on what is installed."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.command import Completed, evaltools_here

pytestmark = pytest.mark.once


def demo(folder: Path, *flags: str) -> Completed:
    return evaltools_here("demo", *flags, cwd=folder)


def test_each_question_has_its_command_and_table_and_the_last_lines_say_what_was_learned(
    tmp_path: Path, rounding_delegate: Path
) -> None:
    completed = demo(tmp_path, f"--external_delegate_path={rounding_delegate}")
    assert completed.code == 0, completed.err
    assert completed.out == ""
    questions, _, told = completed.err.partition("\nWhat was learned:\n")
    outputs, mine, classes, boxes, operators = re.split(r"\n\d\. ", questions)[1:]
    assert "\n$ evaltools diff models/float32.tflite\n" in outputs
    assert re.search(r"^xnnpack fp16 .* within fp16 ", outputs, re.M)
    assert re.search(r"^mine .* within bf16 .* 16/19 *$", mine, re.M)
    assert "\n$ evaltools imagenet models/int8.tflite --images=images " in classes
    assert "90.50 % (85.64 to 93.83)" in classes
    assert re.search(r"^nnapi: not measured: .* native tools on Android", classes, re.M)
    assert "\n$ evaltools coco detection/models/int8.tflite " in boxes
    assert re.search(r"^reference +41.30 %", boxes, re.M)
    assert "\nno operator is at fault; the delegate computes in float16" in operators
    learned = told.splitlines()
    assert [line.split()[0] for line in learned[:5]] == ["outputs", "my", "classifier", "detector", "operators"]
    assert any(line.startswith('  my own .so  "mine" is within expected precision of bf16, ') for line in learned)
    assert len(completed.err.splitlines()) <= 100
    assert os.listdir(tmp_path) == []


def test_the_folder_of_the_sample_is_all_that_is_printed(tmp_path: Path) -> None:
    completed = demo(tmp_path, "--where")
    assert (completed.code, completed.err) == (0, "")
    assert Path(completed.out.rstrip("\n"), "models", "int8.tflite").is_file()
