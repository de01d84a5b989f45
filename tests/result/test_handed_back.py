"""A result is the same where it arrives, whatever its numbers and texts are."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from msgspec import Struct

from evaltools.errors import DataError
from evaltools.result.handed_back import encode_exactly, read_exactly


class Finding(Struct, frozen=True):
    name: str
    worst: float
    explained: float | None
    places: tuple[int, ...]


@pytest.mark.parametrize("worst", [math.inf, -math.inf, 5e-324, 0.1])
@pytest.mark.parametrize("explained", [None, math.inf])
def test_numbers_that_json_has_not_arrive(worst: float, explained: float | None, tmp_path: Path) -> None:
    finding, path = Finding("net", worst, explained, (1, 2)), tmp_path / "found.msgpack"
    path.write_bytes(encode_exactly(finding))
    assert read_exactly(path, Finding) == finding


def test_nan_arrives_as_nan(tmp_path: Path) -> None:
    path = tmp_path / "found.msgpack"
    path.write_bytes(encode_exactly(Finding("net", math.nan, None, ())))
    assert math.isnan(read_exactly(path, Finding).worst)


def test_a_name_that_is_no_unicode_does_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "found.msgpack"
    path.write_bytes(encode_exactly(Finding("n\udce9t", 0.0, None, ())))
    assert read_exactly(path, Finding).name == "n\ufffdt"


@pytest.mark.parametrize(
    "content", [b"", b"\xc1", b"{}", b"\x91" * 100_000, b"\x81\xa4name\xa1\xff", encode_exactly({"name": "net"})]
)
def test_what_is_no_result_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "found.msgpack"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"found\.msgpack is no result of this evaltools"):
        read_exactly(path, Finding)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError):
        read_exactly(tmp_path / "none.msgpack", Finding)
