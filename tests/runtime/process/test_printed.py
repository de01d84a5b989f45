"""What native code prints: collected, passed on, and read however long it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evaltools.runtime.process.supervisor import bounded_text, native_messages


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


def test_both_streams_are_collected_and_passed_on_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with native_messages() as messages:
        os.write(1, b"one ")
        os.write(2, b"two \xff\n")
    assert messages.text == "one two \ufffd\n"
    print("afterwards")
    out, err = capfd.readouterr()
    assert (out, err) == ("afterwards\n", "one two \ufffd\n")


def test_where_both_streams_are_one_file_nothing_is_lost_in_a_crash(tmp_path: Path) -> None:
    script = (
        "import os\nfrom evaltools.runtime.process.supervisor import native_messages\n"
        "with native_messages() as messages:\n    os.write(1, b'one ')\n    os.write(2, b'two')\n"
        "open('text', 'w').write(messages.text)\n"
        "with native_messages():\n    os.write(2, b' last words')\n    os.abort()\n"
    )
    log = tmp_path / "log"
    with log.open("ab") as file:
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, stdout=file, stderr=file, check=False)
    assert log.read_bytes() == b"one two last words"
    assert (tmp_path / "text").read_text() == "one two"


def test_native_code_cannot_command_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with native_messages() as messages:
        os.write(2, b"\x1b[2Jgone\r\n\tnext\n")
    assert messages.text == "\x1b[2Jgone\r\n\tnext\n"
    assert capfd.readouterr().err == "\\x1b[2Jgone\\r\n\tnext\n"
