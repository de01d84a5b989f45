"""Writing, reading and checking results."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import msgspec
import pytest

from evaltools.errors import DataError
from evaltools.result.json_file import json_schema, read_result, to_json
from tests.results import configuration, result


def test_a_result_reads_back_as_it_was(tmp_path: Path) -> None:
    made = result(configuration("reference", "reference"), configuration("test"))
    (tmp_path / "r.json").write_bytes(to_json(made))
    assert read_result(tmp_path / "r.json") == made


def test_the_schema_accepts_a_result_and_refuses_a_damaged_one() -> None:
    document = msgspec.json.decode(to_json(result(configuration("test"))))
    jsonschema.validate(document, json_schema())
    document["configurations"][0]["status"] = "maybe"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json_schema())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no evaltools result"),
        (b"[]", "is no evaltools result: Expected `object`, got `array`"),
        (b'{"schema_version": "2"}', r"Invalid enum value '2' - at `\$\.schema_version`"),
    ],
)
def test_a_file_that_is_no_result_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "r.json").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_result(tmp_path / "r.json")


def test_a_missing_result_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read: No such file"):
        read_result(tmp_path / "none.json")
