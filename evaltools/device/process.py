"""One run of the adb binary: with a limit of time, no stdin, and nothing left behind.

A command goes to a device's shell in a form by which the answer proves that it is whole.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from evaltools.device.errors import DeviceError
from evaltools.errors import UsageError
from evaltools.text import last_words, printable

_STOP_LOOK_S: Final = 0.2
_INSTALL: Final = (
    "install Android's platform tools (Debian and Ubuntu: apt install adb), or give --adb=PATH or the variable ADB"
)
_LONGEST_QUOTE: Final = 200
_LAST_LINES: Final = 3


class Answer(Struct, frozen=True):
    """The exit code of a command and what it printed; the code is negative where adb was ended.

    An exit code of 0 of adb itself proves nothing: it also exits with 0 where the connection breaks in the middle of a
    command. That of a command in the device's shell is proven by :func:`read_answer`.
    """

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """What it printed to stdout; bytes that are no UTF-8 are replaced."""
        return self.out.decode("utf-8", "replace")

    def quote(self) -> str:
        r"""The last line of stderr, else of stdout, to be put behind a message; empty where nothing was printed.

        >>> Answer(1, b"one\n", b"two\nthree\n").quote(), Answer(0, b"", b" \n").quote()
        ('; it printed last: three', '')
        """
        lines = (self.err.strip() or self.out.strip()).decode("utf-8", "replace").splitlines()
        return f"; it printed last: {printable(last_words(lines[-1], _LONGEST_QUOTE))}" if lines else ""


def last_lines(text: str, leave_out: str = "") -> str:
    """The last three lines that a program printed, on one line for a message; "nothing" if there are none.

    Blank lines are skipped, as are lines that begin with ``leave_out``, unless that is empty.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not leave_out or not line.startswith(leave_out)]
    return " | ".join(map(printable, kept[-_LAST_LINES:])) or "nothing"


def wrap_command(command: str, mark: str) -> str:
    """The text for the device's shell: ``command``, then a mark on stderr, then a mark and the exit code on stdout.

    ``eval`` in a subshell keeps an ``exit``, an unclosed quote or a comment in the command from taking the marks away.
    ``mark`` must be new for each call.

    >>> wrap_command("exit 3", "m1")
    "( eval 'exit 3' ) < /dev/null; c=$?; printf %s m1e >&2; printf %s-%s. m1 $c"
    """
    return f"( eval {shlex.quote(command)} ) < /dev/null; c=$?; printf %s {mark}e >&2; printf %s-%s. {mark} $c"


def read_answer(out: bytes, err: bytes, mark: str) -> Answer | None:
    r"""The answer in the output of adb; None where the marks do not prove that it is whole.

    >>> read_answer(b"one\nm1-3.", b"m1e", "m1")
    Answer(code=3, out=b'one\n', err=b'')
    >>> read_answer(b"one\n", b"m1e", "m1") is None
    True
    """
    end = re.search(rb"%b-([0-9]{1,3})\." % mark.encode(), out)
    before, error_mark, after = err.partition(f"{mark}e".encode())
    if end is None or not error_mark:
        return None
    return Answer(int(end[1]), out[: end.start()] + out[end.end() :], before + after)


def find_adb(given: str = "", environment: Mapping[str, str] | None = None) -> str:
    """The adb binary: ``given`` (the flag --adb), else the variable ADB, else the one in PATH.

    Raises :class:`UsageError` where one is named and cannot be run, :class:`DeviceError` where there is none.
    """
    variables = os.environ if environment is None else environment
    named = given or variables.get("ADB", "")
    found = shutil.which(named or "adb", path=variables.get("PATH"))
    if found is not None:
        return found
    if named:
        source = f"--adb={given}" if given else f"ADB={named}"
        raise UsageError(f"{source} is not a program; give the path of the adb binary")
    raise DeviceError(f"adb is neither given nor in PATH; {_INSTALL}")


def run_adb(
    command: Sequence[str],
    timeout_s: float,
    environment: Mapping[str, str] | None = None,
    stop: threading.Event | None = None,
) -> Answer:
    """Run adb to its end, or end its process group after ``timeout_s`` seconds, and where ``stop`` is set.

    It writes into files: a server that it starts would keep a pipe open. Raises :class:`DeviceError` where the binary
    cannot be run.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=None if environment is None else dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            raise DeviceError(f"{command[0]} cannot be run: {error.strerror}; {_INSTALL}") from error
        limit = time.monotonic() + timeout_s
        try:
            while process.poll() is None and time.monotonic() < limit and not (stop is not None and stop.is_set()):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_STOP_LOOK_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        out.seek(0)
        err.seek(0)
        return Answer(process.returncode, out.read(), err.read())
