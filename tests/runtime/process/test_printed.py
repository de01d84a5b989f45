"""What native code prints: collected, passed on, and read however long it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from evaltools.errors import ConfigurationUnavailable
from evaltools.runtime.process.printed import native_messages, text_of
from tests.runtime.openers import isolated


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", ""),
        (b"abcdefgh", "abcdefgh"),
        (b"abcdefghi", "abcd\n... 1 bytes left out ...\nfghi"),
        (b"abcd" + b"x" * 1000 + b"efgh", "abcd\n... 1000 bytes left out ...\nefgh"),
    ],
)
def test_of_a_long_text_the_head_the_tail_and_the_count_of_the_rest_are_read(
    content: bytes, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltools.runtime.process.printed.LONGEST_PART", 4)
    path = tmp_path / "printed"
    path.write_bytes(b"before" + content)
    with path.open("rb") as file:
        assert text_of(file.fileno(), len("before")) == found


def test_both_streams_are_collected_and_passed_on_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with native_messages() as messages:
        os.write(1, b"one ")
        os.write(2, b"two \xff\n")
    assert messages.text == "one two \ufffd\n"
    print("afterwards")
    out, err = capfd.readouterr()
    assert (out, err) == ("afterwards\n", "one two \ufffd\n")


def aborting(_model: object, _configuration: object) -> NoReturn:
    with native_messages() as messages:
        os.write(1, b"one ")
        os.write(2, b"two")
    os.write(2, f" and {messages.text}".encode())
    with native_messages():
        os.write(2, b", last words")
        os.abort()


def test_what_is_collected_in_a_child_is_not_lost_when_that_crashes() -> None:
    with pytest.raises(ConfigurationUnavailable, match=r"printed last: one two and one two, last words$"):
        isolated(aborting)


def test_native_code_cannot_command_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with native_messages() as messages:
        os.write(2, b"\x1b[2Jgone\r\n\tnext\n")
    assert messages.text == "\x1b[2Jgone\r\n\tnext\n"
    assert capfd.readouterr().err == "\\x1b[2Jgone\\r\n\tnext\n"
