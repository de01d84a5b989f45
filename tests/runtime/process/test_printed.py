"""Reading a text of unknown length."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltools.runtime.process.printed import bounded_text


@pytest.mark.parametrize(
    ("content", "start", "found"),
    [
        (b"", 0, ""),
        (b"abcdefgh", 0, "abcdefgh"),
        (b"abcdefghi", 0, "abcd\n... 1 bytes left out ...\nfghi"),
        (b"--abcdefgh", 2, "abcdefgh"),
        (b"--abcd" + b"x" * 1000 + b"efgh", 2, "abcd\n... 1000 bytes left out ...\nefgh"),
        (b"short", 10, ""),
    ],
)
def test_of_a_long_text_the_head_the_tail_and_the_count_of_the_rest_are_kept(
    content: bytes, start: int, found: str, tmp_path: Path
) -> None:
    (tmp_path / "log").write_bytes(content)
    with (tmp_path / "log").open("rb") as file:
        assert bounded_text(file, start, 4) == found
