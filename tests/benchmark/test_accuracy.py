"""Accuracies found in result files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evaltools.benchmark.accuracy import AccuracyGiven, accuracy_of, read_accuracies
from evaltools.errors import DataError
from evaltools.result.json_file import encode_json
from evaltools.result.result import SHARD, Result, Row
from tests import results
from tests.results import Figures, classified, configuration
from tests.tasks.coco.results import detection_result
from tests.tasks.inference_diff.results import comparison
from tests.tasks.inference_diff.results import result as diff_result

NOTHING: Figures = {}


Entry = tuple[Row, float]


def entry(name: str, top_1: float, *flags: str, **changes: Any) -> Entry:
    return replace(configuration(name), flags=list(flags), **changes), top_1


def result(*entries: Entry) -> Result:
    answered = {made.name: classified(top_1, 1.0) for made, top_1 in entries}
    return results.result(*(made for made, _ in entries), answered=answered)


def written(folder: Path, content: Result, name: str = "run.json") -> Path:
    path = folder / name
    path.write_bytes(encode_json(content))
    return path


def test_top_1_is_found_by_model_and_flags_in_any_order_whatever_the_threads_and_the_name(tmp_path: Path) -> None:
    path = written(tmp_path, result(entry("a", 0.5, "--x=1", "--y=2"), entry("b", 0.25, "--num_interpreter_threads=2")))
    known = read_accuracies([path])
    for flags in (["--y=2", "--x=1"], ["--x=1", "--y=2", "--num_interpreter_threads=4"]):
        assert accuracy_of(known, "00", flags) == AccuracyGiven("top1", "top-1", 0.5, str(path))
    assert accuracy_of(known, "00", []) == AccuracyGiven("top1", "top-1", 0.25, str(path)), "flags go before names"
    assert accuracy_of(known, "01", []) is accuracy_of(known, "00", ["--x=1"]) is accuracy_of([], "00", []) is None


def test_map_of_a_detection(tmp_path: Path) -> None:
    path = written(tmp_path, detection_result("reference", "b"))
    given = accuracy_of(read_accuracies([path]), "00", [])
    assert given == AccuracyGiven("ap", "mAP", 0.123456, str(path))


def test_two_accuracies_may_be_the_same_and_are_refused_with_their_files_where_they_differ(tmp_path: Path) -> None:
    same = [written(tmp_path, result(entry("a", 0.5)), f"{number}.json") for number in range(2)]
    assert accuracy_of(read_accuracies(same), "00", []) == AccuracyGiven("top1", "top-1", 0.5, str(same[0]))
    other = written(tmp_path, result(entry("a", 0.75)), "2.json")
    with pytest.raises(DataError, match=r"the defaults has more than one accuracy: top-1 0.5 in .*, top-1 0.75 in"):
        accuracy_of(read_accuracies([*same, other]), "00", [])


def test_configurations_not_measured_as_asked_are_left_out(tmp_path: Path) -> None:
    entries = (
        entry("a", 0.5),
        entry("b", 0.25, fallback="no GPU"),
        entry("c", 0.25, status="not measured", reason="no"),
    )
    assert [known.given.value for known in read_accuracies([written(tmp_path, result(*entries))])] == [0.5]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            diff_result(comparison("a")),
            "is of inference_diff, which holds no accuracy; give the result of another task",
        ),
        (detection_result("a", "b", truth=None), "none of its configurations was measured on examples with a truth"),
        (replace(result(entry("a", 0.5)), complete=False, stopped="interrupted"), r"ended early \(interrupted\)"),
        (replace(result(entry("a", 0.5)), given={SHARD: "1/3"}), "is shard 1/3, a part of the examples"),
        (result(entry("a", 0.5, fallback="no GPU")), "none of its configurations was measured"),
        (results.result(configuration("a"), answered={"a": NOTHING}), "none of its configurations was measured"),
    ],
)
def test_a_file_without_accuracies_of_all_examples_is_refused(content: Result, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read_accuracies([written(tmp_path, content)])
