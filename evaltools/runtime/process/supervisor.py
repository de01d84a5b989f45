"""A process between ours and one with native code: it reports how that ended, and leaves nothing of it.

It runs no native code itself. The child below it has a session of its own: a signal to its group reaches what it
started, and nobody else. On Linux processes that its children left behind become children of the supervisor, also those
with a session of their own.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NoReturn

import msgspec
from msgspec import Struct

from evaltools.runtime.memory import memory_of, most_memory
from evaltools.runtime.process.inside import be_child
from evaltools.runtime.process.printed import LONGEST_PART
from evaltools.text import printable, shortened

DESCRIPTORS: Final = 4
"""What a supervisor gets: a socket of its own, and for its child a socket, where it prints, what it shares."""
BEGUN: Final = struct.Struct("<II")
"""The first report: the numbers of the child, and of its supervisor."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SECONDS_TO_KILL: Final = 5.0
_SECONDS_BETWEEN_LOOKS: Final = 0.01
_SECONDS_BETWEEN_MEASUREMENTS: Final = 0.5
_MOST_PRINTED: Final = 64 << 20
_LONGEST_NAMES: Final = 60


class Ended(Struct, frozen=True):
    """The last report: the exit code of a child, negative for a signal, and the processes that it left and were ended.

    ``too_large``: it was ended from here because it had so many bytes of memory.
    """

    code: int
    left: int = 0
    names: str = ""
    too_large: int = 0


def supervise(descriptors: Sequence[int]) -> NoReturn:
    """What a process does that was forked for a child: fork that, tell when and how it ends, and end itself.

    The child is ended when nobody is at the other end of the first descriptor any more.
    """
    try:
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        close_all_but(descriptors)
        number, end, printed, memory = descriptors
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        child = os.fork()
        if not child:
            _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            os.close(number)
            be_child(end, printed, memory)
        for descriptor in (end, memory):
            os.close(descriptor)
        control = socket.socket(fileno=number)
        control.sendall(BEGUN.pack(child, os.getpid()))
        control.sendall(msgspec.msgpack.encode(_wait_for(child, control.fileno(), printed)))
    except OSError:  # who waits for the child sees that nobody is there
        pass
    finally:
        os._exit(0)


def close_all_but(needed: Iterable[int]) -> None:
    """Native code cannot write to what it does not have; 0 to 2 stay."""
    start = 3
    for descriptor in sorted(needed):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _wait_for(child: int, control: int, printed: int) -> Ended:
    """Wait until the child ends, or must be ended; then end what it left."""
    woken, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    too_large, most = 0, most_memory()
    while not (found := os.waitpid(child, os.WNOHANG))[0]:
        ready = select.select([woken, control], [], [], _SECONDS_BETWEEN_MEASUREMENTS)[0]
        if woken in ready:
            os.read(woken, 1)
        has = memory_of(child)
        if control in ready or has > most > 0:
            too_large = has if has > most > 0 else 0
            os.kill(child, signal.SIGKILL)
            found = os.waitpid(child, 0)
            break
        if (size := os.fstat(printed).st_size) > _MOST_PRINTED:  # of so much in one call, the last is enough
            last = os.pread(printed, LONGEST_PART, size - LONGEST_PART)
            os.ftruncate(printed, 0)
            os.write(printed, last)
    names = _end_group(child)
    listed = shortened(", ".join(sorted(set(names))), _LONGEST_NAMES)
    return Ended(os.waitstatus_to_exitcode(found[1]), len(names), listed, too_large)


def _end_group(group: int) -> list[str]:
    """End the processes of a group and all children of this process; returns the names of those that still ran."""
    names: dict[int, str] = {}
    deadline = time.monotonic() + _SECONDS_TO_KILL
    while _anyone_is_left(group) and time.monotonic() < deadline:
        names |= _killed()
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return list(names.values())


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
                names[process.pid] = printable(process.name())
                process.kill()
    return names


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the platform has it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
