"""Sends a command to a device's shell in a form by which the answer proves that it is whole."""

from __future__ import annotations

import re
import shlex
from typing import Final

from msgspec import Struct

from evaltools.text import last_words, printable

LONGEST_COMMAND: Final = 100_000
"""Bytes; adb and the device's kernel refuse single words from about 120 kB on."""
_LONGEST_QUOTE: Final = 200


class ShellAnswer(Struct, frozen=True):
    """The exit code of a command and what it printed."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """What it printed to stdout; bytes that are no UTF-8 are replaced."""
        return self.out.decode("utf-8", "replace")

    def quote(self) -> str:
        """The last line that it printed, for a message."""
        return last_line(self.out, self.err)


def last_line(out: bytes, err: bytes) -> str:
    r"""The last line of stderr, else of stdout, to be put behind a message; empty where nothing was printed.

    Of a long line it is the end, from a word on.

    >>> last_line(b"one\n", b"two\nthree\n"), last_line(b"", b" \n")
    ('; it printed last: three', '')
    >>> last_line(b"", b"abcdefg " * 40)[:30]
    '; it printed last: ... abcdefg'
    """
    lines = (err.strip() or out.strip()).decode("utf-8", "replace").splitlines()
    return f"; it printed last: {printable(last_words(lines[-1], _LONGEST_QUOTE))}" if lines else ""


def wrap_command(command: str, mark: str) -> str:
    """The text for the device's shell: ``command``, then a mark on stderr, then a mark and the exit code on stdout.

    ``eval`` in a subshell keeps an ``exit``, an unclosed quote or a comment in the command from taking the marks away.
    ``mark`` must be new for each call.

    >>> wrap_command("exit 3", "m1")
    "( eval 'exit 3' ) < /dev/null; c=$?; printf %s m1e >&2; printf %s-%s. m1 $c"
    """
    return f"( eval {shlex.quote(command)} ) < /dev/null; c=$?; printf %s {mark}e >&2; printf %s-%s. {mark} $c"


def read_answer(out: bytes, err: bytes, mark: str) -> ShellAnswer | None:
    r"""The answer in the output of adb; None where the marks do not prove that it is whole.

    >>> read_answer(b"one\nm1-3.", b"m1e", "m1")
    ShellAnswer(code=3, out=b'one\n', err=b'')
    >>> read_answer(b"one\n", b"m1e", "m1") is None
    True
    """
    end = re.search(rb"%b-([0-9]{1,3})\." % mark.encode(), out)
    before, error_mark, after = err.partition(f"{mark}e".encode())
    if end is None or not error_mark:
        return None
    return ShellAnswer(int(end[1]), out[: end.start()] + out[end.end() :], before + after)


def has_merged_streams(out: bytes, mark: str) -> bool:
    """Whether what belongs to stderr came on stdout, as from shells without exit codes."""
    return f"{mark}e".encode() in out
