"""What tests run in their own process is what a user gets."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import command
from tests.command import Completed, evaltools, evaltools_here


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--help"],
        ["--version"],
        ["imagnet"],
        ["convert", "coco", "--help"],
        ["imagenet", "--model_file=x"],
        ["power", "--drop=0.005", "--flip_rate=0.01"],
        ["inspect", "missing.tflite"],
    ],
    ids=" ".join,
)
def test_both_ways_give_the_same(arguments: list[str], tmp_path: Path) -> None:
    assert evaltools_here(*arguments, cwd=tmp_path) == evaltools(*arguments, cwd=tmp_path)


def test_what_native_code_prints_is_heard_and_all_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def printing(arguments: Sequence[str]) -> int:
        print(Path.cwd())
        sys.stdout.flush()
        os.write(1, b"native\n")
        os.write(2, b"native error\n")
        return 3

    monkeypatch.setattr(command, "main", printing)
    before = Path.cwd()
    assert evaltools_here(cwd=tmp_path) == Completed(3, f"{tmp_path}\nnative\n", "native error\n")
    print("after")
    os.write(2, b"after, too\n")
    assert capfd.readouterr() == ("after\n", "after, too\n")
    assert Path.cwd() == before


def test_an_error_that_is_no_message_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(arguments: Sequence[str]) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(command, "main", broken)
    with pytest.raises(ZeroDivisionError):
        evaltools_here()
