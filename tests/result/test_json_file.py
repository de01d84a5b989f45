"""Writing, reading and checking results."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

from evaltools.errors import DataError
from evaltools.result.evaluation import EvaluationResult
from evaltools.result.json_file import encode_json
from evaltools.result_file import read_result, result_schema
from tests.results import configuration, result
from tests.tasks.coco.results import detection_result
from tests.tasks.inference_diff.test_report import comparison, judged
from tests.tasks.inference_diff.test_report import result as diff_result


def test_a_result_reads_back_as_it_was(tmp_path: Path) -> None:
    made = result(configuration("reference", "reference"), configuration("test"))
    (tmp_path / "r.json").write_bytes(encode_json(made))
    assert read_result(tmp_path / "r.json") == made


def test_a_result_of_before_a_field_was_added_is_written_with_that_field(tmp_path: Path) -> None:
    content = encode_json(result(configuration("reference", "reference"), configuration("test")))
    document = json.loads(content)
    for name in ("execution", "device_run", "pictures_digest"):
        del document[name]
    for name in ("latency_drift", "place", "cannot_exist"):
        del document["configurations"][1][name]
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert encode_json(read_result(tmp_path / "r.json")) == content


def test_the_schema_accepts_a_result_and_refuses_a_damaged_one() -> None:
    document = msgspec.json.decode(encode_json(result(configuration("test"))))
    jsonschema.validate(document, result_schema())
    document["configurations"][0]["status"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, result_schema())


@pytest.mark.parametrize(
    "made",
    [result(configuration("test")), detection_result("reference", "test"), diff_result(comparison("test", judged()))],
    ids=lambda made: made.task,
)
def test_the_result_of_each_task_reads_back_and_fits_the_schema(tmp_path: Path, made: EvaluationResult) -> None:
    (tmp_path / "r.json").write_bytes(encode_json(made))
    assert encode_json(read_result(tmp_path / "r.json")) == encode_json(made)
    document = msgspec.json.decode(encode_json(made))
    jsonschema.validate(document, result_schema())
    document["configurations"][0]["figures"] = {"top1": 0.5}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, result_schema())
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"Expected `object`, got `float` - at `\$\.configurations"):
        read_result(tmp_path / "r.json")


def test_a_short_script_without_evaltools_reads_figures(tmp_path: Path) -> None:
    """That of docs/results.md."""
    made = result(configuration("reference", "reference"), configuration("test"))
    (tmp_path / "r.json").write_bytes(encode_json(made))
    rows = [
        (entry["name"], name, figure["value"])
        for entry in json.loads((tmp_path / "r.json").read_text())["configurations"]
        for name, figure in entry["figures"].items()
    ]
    assert ("test", "top1", 0.5) in rows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an evaltools result"),
        (b"[]", "is not an evaltools result: Expected `object`, got `array`"),
        (b'{"schema_version": "7"}', "missing required field `task`"),
        (b'{"schema_version": "7", "task": "imagenet"}', "missing required field `subject`"),
        (b'{"schema_version": "9", "task": "imagenet"}', "of version '9'; this evaltools reads 7"),
        (b'{"schema_version": "6", "task": "imagenet"}', "written by an earlier evaltools, version 6; measure again"),
        (b'{"schema_version": "3", "task": "imagenet"}', "written by an earlier evaltools, version 3; measure again"),
        (b'{"schema_version": "2", "task": "imagenet"}', "written by an earlier evaltools, version 2; measure again"),
        (b'{"schema_version": "1", "task": "imagenet"}', "written by an earlier evaltools, version 1; measure again"),
        (b'{"schema_version": "7", "task": "imagnet"}', "a task that is not here: .* Did you mean imagenet"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_result(tmp_path / "r.json")


def test_a_missing_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_result(tmp_path / "none.json")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no file without an end")
def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(DataError, match="/dev/zero cannot be read: it is too large"):
        read_result(Path("/dev/zero"))


def test_a_result_that_names_a_file_with_code_is_refused_and_the_code_is_not_run(tmp_path: Path) -> None:
    code, seen = tmp_path / "gift.py", tmp_path / "seen"
    code.write_text(f"open({str(seen)!r}, 'w')")
    (tmp_path / "r.json").write_text(json.dumps({"schema_version": "7", "task": f"{code}:task"}))
    with pytest.raises(
        DataError, match=r"is the result of a task that is not here: .*gift.py:task' names a file of a task"
    ):
        read_result(tmp_path / "r.json")
    assert not seen.exists()


def test_a_text_with_half_a_character_is_written_without_it() -> None:
    made = encode_json(result(replace(configuration("a"), flags=["--x=\ud800", "--y=\udcff"])))
    assert msgspec.json.decode(made)["configurations"][0]["flags"] == ["--x=\ufffd", "--y=\ufffd"]
