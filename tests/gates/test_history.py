"""Baselines over time: what belongs together, and what only has the same name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from evaltools.gates.baseline import Baseline, BaselineConfiguration
from evaltools.gates.history import histories_of


def released(day: int, sha256: str = "00", model: str = "m.tflite") -> Baseline:
    entry = BaselineConfiguration("test", [], "litert", {"top1": 0.5})
    return Baseline("1", "imagenet", model, sha256, "0", f"2026-01-0{day}", 200, "same", [entry])


def days(*baselines: Baseline) -> list[list[str]]:
    return [[each.started_at[-1] for each in history.releases] for history in histories_of(baselines)]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ("aaa", [["1", "2", "3"]]),
        ("aab", [["1", "2", "3"]]),
        ("abab", [["1", "3"], ["2", "4"]]),
    ],
    ids=["the same file", "a newer file", "files that take turns"],
)
def test_a_newer_file_is_a_release_and_files_that_take_turns_are_two_models(
    contents: str, expected: list[list[str]]
) -> None:
    assert days(*(released(place, content) for place, content in enumerate(contents, 1))) == expected


def test_a_renamed_file_of_the_same_content_is_one_model() -> None:
    assert days(released(2, model="new.tflite"), released(1, model="old.tflite")) == [["1", "2"]]
    assert days(released(2, "01", "new.tflite"), released(1, "00", "old.tflite")) == [["1"], ["2"]]


@pytest.mark.parametrize(
    "changed",
    [{"examples_sha256": "others"}, {"subject": "coco"}, {"setup": {"--size": "3"}}],
    ids=["examples", "task", "setup"],
)
def test_other_examples_tasks_and_setups_are_apart(changed: dict[str, object]) -> None:
    assert days(released(1), replace(released(2), **changed)) == [["1"], ["2"]]
