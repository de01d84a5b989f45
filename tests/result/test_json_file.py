"""Writing, reading and checking results."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import msgspec
import pytest
from msgspec.structs import replace

import evaltools
from evaltools.errors import DataError
from evaltools.result.json_file import encode_json
from evaltools.result.result import Result
from evaltools.result_file import read_result
from tests.results import configuration, result
from tests.tasks.coco.results import detection_result
from tests.tasks.inference_diff.results import comparison, judged
from tests.tasks.inference_diff.results import result as diff_result

SCHEMA = json.loads((Path(evaltools.__file__).parent / "result" / "result.schema.json").read_text())


def test_a_result_reads_back_as_it_was(tmp_path: Path) -> None:
    made = result(configuration("reference", "reference"), configuration("test"))
    (tmp_path / "r.json").write_bytes(encode_json(made))
    assert read_result(tmp_path / "r.json") == made


def test_a_result_of_before_a_field_was_added_is_written_with_that_field(tmp_path: Path) -> None:
    content = encode_json(result(configuration("reference", "reference"), configuration("test")))
    document = json.loads(content)
    for name in ("device_run", "limits_broken", "not_saved"):
        del document[name]
    (tmp_path / "r.json").write_text(json.dumps(document))
    assert encode_json(read_result(tmp_path / "r.json")) == content


def test_the_schema_accepts_a_result_and_refuses_a_damaged_one() -> None:
    document = msgspec.json.decode(encode_json(result(configuration("test"))))
    jsonschema.validate(document, SCHEMA)
    document["rows"][0]["status"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


@pytest.mark.parametrize(
    "made",
    [result(configuration("test")), detection_result("reference", "test"), diff_result(comparison("test", judged()))],
    ids=lambda made: made.command,
)
def test_the_result_of_each_task_reads_back_and_fits_the_schema(tmp_path: Path, made: Result) -> None:
    (tmp_path / "r.json").write_bytes(encode_json(made))
    assert encode_json(read_result(tmp_path / "r.json")) == encode_json(made)
    document = msgspec.json.decode(encode_json(made))
    jsonschema.validate(document, SCHEMA)
    document["rows"][0]["figures"] = {"top1": 0.5}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)
    (tmp_path / "r.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match=r"Expected `object`, got `float` - at `\$\.rows"):
        read_result(tmp_path / "r.json")


def test_a_short_script_without_evaltools_reads_figures(tmp_path: Path) -> None:
    """That of docs/results.md."""
    made = result(configuration("reference", "reference"), configuration("test"))
    (tmp_path / "r.json").write_bytes(encode_json(made))
    rows = [
        (row["name"], name, figure["value"])
        for row in json.loads((tmp_path / "r.json").read_text())["rows"]
        for name, figure in row["figures"].items()
    ]
    assert ("test", "top1", 0.5) in rows


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not an evaltools result"),
        (b"[]", "is not an evaltools result: Expected `object`, got `array`"),
        (b'{"version": "8"}', "missing required field `command`"),
        (b'{"version": "8", "command": "imagenet"}', "missing required field `environment`"),
        (b'{"version": "9", "command": "imagenet"}', "of version '9'; this evaltools reads 8"),
        (b'{"schema_version": "6", "task": "imagenet"}', "written by an earlier evaltools, version 6; measure again"),
        (b'{"schema_version": "3", "task": "imagenet"}', "written by an earlier evaltools, version 3; measure again"),
        (b'{"schema_version": "2", "task": "imagenet"}', "written by an earlier evaltools, version 2; measure again"),
        (b'{"schema_version": "1", "task": "imagenet"}', "written by an earlier evaltools, version 1; measure again"),
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


@pytest.mark.parametrize(
    ("command", "said"),
    [("imagnet", ".*Did you mean imagenet"), ("gift.py:task", ".*gift.py:task' names a file of a task")],
)
def test_a_result_of_a_task_that_is_not_here_is_refused_and_no_code_is_run(
    tmp_path: Path, command: str, said: str
) -> None:
    (tmp_path / "gift.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w')")
    made = replace(result(configuration("test")), command=command.replace("gift.py", str(tmp_path / "gift.py")))
    (tmp_path / "r.json").write_bytes(encode_json(made))
    with pytest.raises(DataError, match=f"is the result of a task that is not here: {said}"):
        read_result(tmp_path / "r.json")
    assert not (tmp_path / "seen").exists()


def test_a_text_with_half_a_character_is_written_without_it() -> None:
    made = encode_json(result(replace(configuration("a"), flags=["--x=\ud800", "--y=\udcff"])))
    assert msgspec.json.decode(made)["rows"][0]["flags"] == ["--x=\ufffd", "--y=\ufffd"]
