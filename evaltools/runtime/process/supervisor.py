"""A process between ours and one with native code: it reports how that ended, and leaves nothing of it.

It runs no native code itself. Where the platform can start a copy of a process, the child with native code is one, with
a process group of its own: a signal to its group reaches what it started, and nobody else. On Linux processes that its
children left behind become children of the supervisor, also those with a session of their own.

What processes and native code print is kept, read again, of which nobody knows how much it is, and passed on.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Final, NoReturn

from msgspec import Struct

from evaltools.runtime.memory import memory_of, most_memory
from evaltools.runtime.process.channel import Channel
from evaltools.text import printable_lines

LONGEST_PART: Final = 1 << 18
"""How many bytes of the head, and as many of the tail, are read of a text."""
_OWN_STDERR: Final = "/proc/self/fd/2"


def flush_printed() -> None:
    """Write down what Python keeps back of what was printed here."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError, ValueError):
            stream.flush()


def bounded_text(file: IO[bytes], start: int = 0, longest_part: int = LONGEST_PART) -> str:
    """What stands in a file from a place on; of a long text its head, its tail, and how much is left out."""
    size = file.seek(0, os.SEEK_END) - start
    file.seek(start)
    if size <= 2 * longest_part:
        return file.read(max(0, size)).decode("utf-8", "replace")
    head = file.read(longest_part).decode("utf-8", "replace")
    file.seek(start + size - longest_part)
    tail = file.read(longest_part).decode("utf-8", "replace")
    return f"{head}\n... {size - 2 * longest_part} bytes left out ...\n{tail}"


class NativeMessages:
    """What was printed, once the block of :func:`native_messages` has ended; of a long text its head and its tail."""

    text = ""


@contextmanager
def native_messages() -> Iterator[NativeMessages]:
    """Collect what is printed to the descriptors 1 and 2 in a block, and print it to stderr at its end.

    Where both go to one file, as in child processes, it is read from there, so that nothing is lost in a crash.
    It holds for the whole process, so that other threads should not print meanwhile.
    """
    messages = NativeMessages()
    if _is_one_file():
        start = os.fstat(2).st_size
        try:
            yield messages
        finally:
            _flush_streams()
            messages.text = _read_from(start)
        return
    with tempfile.TemporaryFile() as file:
        _flush_streams()
        kept = [os.dup(descriptor) for descriptor in (1, 2)]
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
        try:
            yield messages
        finally:
            _flush_streams()
            for descriptor, original in zip((1, 2), kept, strict=True):
                os.dup2(original, descriptor)
                os.close(original)
            messages.text = _pass_on(file)


def _is_one_file() -> bool:
    """Whether both descriptors write to the same file, which can be read again."""
    out, err = os.fstat(1), os.fstat(2)
    same = (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)
    return same and stat.S_ISREG(err.st_mode) and os.access(_OWN_STDERR, os.R_OK)


def _read_from(start: int) -> str:
    with open(_OWN_STDERR, "rb") as file:
        return bounded_text(file, start)


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _pass_on(file: IO[bytes]) -> str:
    text = bounded_text(file)
    os.write(2, printable_lines(text).encode())
    return text


_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SECONDS_TO_KILL: Final = 5.0
_SECONDS_BETWEEN_LOOKS: Final = 0.01
_SECONDS_BETWEEN_MEASUREMENTS: Final = 0.5
_FIRST_OTHER_DESCRIPTOR: Final = 3


class Ended(Struct, frozen=True):
    """How a child ended: its exit code, negative for a signal, and the names of processes that it left and were ended.

    ``too_large``: it was ended from here because it had so many bytes of memory.
    """

    code: int
    left: tuple[str, ...] = ()
    too_large: int = 0


def watched(control: Channel, work: Callable[[], None], needed: Iterable[int]) -> None:
    """Have ``work`` done in a child, which keeps only the ``needed`` descriptors and 0 to 2.

    Sends the child's number by ``control`` and, when it has ended, how. The child is ended when the other end of
    ``control`` is closed, or sends something.
    """
    if not hasattr(os, "fork"):
        control.send(os.getpid())
        work()
        return
    os.setsid()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda _number, _frame: None)
    try:
        child = os.fork()
    except OSError as error:
        sys.exit(f"no process could be started: {error.strerror}")
    if not child:
        _do(work, needed)
    with suppress(OSError):
        os.setpgid(child, child)
    for descriptor in needed:
        os.close(descriptor)
    with suppress(OSError):
        control.send(child)
    ended = _wait_for(child, control, woken)
    with suppress(OSError):
        control.send(ended)


def _do(work: Callable[[], None], needed: Iterable[int]) -> NoReturn:
    """The child: it ends with its parent, and never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        close_all_but(needed)
        work()
        code = 0
    except BaseException:  # what is printed goes to the log, and the exit code says it to the parent
        traceback.print_exc()
    finally:
        flush_printed()
        if not code:
            ctypes.CDLL(None).exit(code)  # with what libraries want to do at their end, unlike Python's
        os._exit(code)


def close_all_but(needed: Iterable[int]) -> None:
    """Native code cannot write to what it does not have: the pipes of our other processes."""
    start = _FIRST_OTHER_DESCRIPTOR
    for descriptor in sorted(needed):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _wait_for(child: int, control: Channel, woken: int) -> Ended:
    """Wait until the child ends, or must be ended; then end what it left."""
    too_large, most = 0, most_memory()
    while (code := _code_of(child)) is None:
        ready = select.select([woken, control.fileno()], [], [], _SECONDS_BETWEEN_MEASUREMENTS if most else None)[0]
        number = os.read(woken, 1)[0] if woken in ready else signal.SIGCHLD
        has = memory_of(child) if most else 0
        if control.fileno() in ready or number == signal.SIGTERM or has > most:
            too_large = has if has > most else 0
            with suppress(OSError):
                os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            break
    return Ended(code, _end_group(child), too_large)


def _code_of(child: int) -> int | None:
    """How the child ended, None while it runs. Other children, which came here as orphans, are taken note of, too."""
    found, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _end_group(group: int) -> tuple[str, ...]:
    """End the processes of a group and all children of this process; returns the names of those that still ran."""
    names: dict[int, str] = {}
    deadline = time.monotonic() + _SECONDS_TO_KILL
    while _anyone_is_left(group) and time.monotonic() < deadline:
        names |= _killed()
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return tuple(names.values())


def _anyone_is_left(group: int) -> bool:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _killed() -> dict[int, str]:
    """Kill all that descend from this process; returns their names by number."""
    import psutil

    names: dict[int, str] = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                names[process.pid] = process.name()
                process.kill()
    return names


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the platform has it."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
