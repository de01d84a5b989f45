"""A process between ours and one with native code: it reports how that ended, and leaves nothing of it.

It runs no native code itself. The child below it has a session of its own: a signal to its group reaches what it
started, and nobody else. On Linux processes that its children left behind become children of the supervisor, also those
with a session of their own.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, NoReturn

import msgspec
from msgspec import Raw, Struct

from evaltools.errors import EvaltoolsError
from evaltools.runtime.memory import memory_of, most_memory, peak_memory_kb
from evaltools.runtime.process.messages import SIZE, Answer, Failure, encoded, frame
from evaltools.runtime.process.printed import capture_in, flush_printed
from evaltools.runtime.process.shared_arrays import SharedArrays
from evaltools.runtime.session import Session, TensorSpec
from evaltools.signals import ENDINGS
from evaltools.text import printable

DESCRIPTORS: Final = 5
"""What a child gets: a socket for the supervisor, one for itself, where it prints, what it shares, what it captures."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_SECONDS_TO_KILL: Final = 5.0
_SECONDS_BETWEEN_LOOKS: Final = 0.01
_SECONDS_BETWEEN_MEASUREMENTS: Final = 0.5
_COPY: Final = 86
"""The exit code of a copy of a child."""


class Begun(Struct, frozen=True, tag=True):
    """A child runs, below its supervisor."""

    child: int
    supervisor: int


class Ended(Struct, frozen=True, tag=True):
    """How a child ended: its exit code, negative for a signal, and the names of processes that it left and were ended.

    ``too_large``: it was ended from here because it had so many bytes of memory.
    """

    code: int
    left: tuple[str, ...] = ()
    too_large: int = 0


class Held:
    """What a child holds: its session, if it has one, and the arrays that it shares with its parent."""

    session: Session
    _arrays: SharedArrays | None = None

    def __init__(self, memory: int) -> None:
        self._memory = memory

    def arrays(self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> SharedArrays:
        """The shared memory, whose size follows from these."""
        if self._arrays is None:
            self._arrays = SharedArrays(self._memory, inputs, outputs, is_child=True)
        return self._arrays


def supervise(secret: bytes, descriptors: Sequence[int]) -> NoReturn:
    """What a process does that was forked for a child: fork that, tell when and how it ends, and end itself.

    The child is ended when nobody is at the other end of the first descriptor any more.
    """
    code = 1
    try:
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        close_all_but(descriptors)
        control = socket.socket(fileno=descriptors[0])
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        woken, waker = os.pipe()
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        child = os.fork()
        if not child:
            _be_child(secret, *descriptors[1:])
        for descriptor in descriptors[1:]:
            os.close(descriptor)
        control.sendall(msgspec.json.encode(Begun(child, os.getpid())) + b"\n")
        ended = _wait_for(child, control.fileno(), woken)
        control.sendall(msgspec.json.encode(ended) + b"\n")
        code = 0
    except OSError:  # who waits for the child sees that nobody is there
        pass
    finally:
        os._exit(code)


def _be_child(secret: bytes, end: int, printed: int, memory: int, capture: int) -> NoReturn:
    """The child: it ends with its parent, and never returns. It leaves Ctrl-C to its parent."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (*ENDINGS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for descriptor in (1, 2):
            os.dup2(printed, descriptor)
        close_all_but((end, memory, capture))
        capture_in(capture)
        _answer_all(socket.socket(fileno=end), secret, Held(memory))
        code = 0
    except BaseException:  # what is printed goes to the parent, and the exit code says it, too
        traceback.print_exc()
    finally:
        flush_printed()
        if not code:
            ctypes.CDLL(None).exit(code)  # with what libraries want to do at their end, unlike Python's
        os._exit(code)


def _answer_all(end: socket.socket, secret: bytes, held: Held) -> None:
    """Call what the parent orders, until it has nothing more to do."""
    owner, question = os.getpid(), 0
    with suppress(BrokenPipeError):
        while head := end.recv(SIZE.size, socket.MSG_WAITALL):
            function, arguments = pickle.loads(_received(end, *SIZE.unpack(head)))
            question += 1
            try:
                answer = Answer(Raw(encoded(function(held, *arguments))), None, peak_memory_kb())
            except EvaltoolsError as error:
                answer = Answer(failure=Failure.of(error), peak_memory_kb=peak_memory_kb())
            flush_printed()
            end.sendall(frame(secret, question, encoded(answer)))
            if os.getpid() != owner:  # a copy has told that it is there
                os._exit(_COPY)


def _received(end: socket.socket, size: int) -> bytearray:
    content = bytearray(size)
    rest = memoryview(content)
    while rest:
        count = end.recv_into(rest)
        if not count:
            raise EOFError
        rest = rest[count:]
    return content


def close_all_but(needed: Iterable[int]) -> None:
    """Native code cannot write to what it does not have; 0 to 2 stay."""
    start = 3
    for descriptor in sorted(needed):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _wait_for(child: int, control: int, woken: int) -> Ended:
    """Wait until the child ends, or must be ended; then end what it left."""
    too_large, most = 0, most_memory()
    while (code := _code_of(child)) is None:
        ready = select.select([woken, control], [], [], _SECONDS_BETWEEN_MEASUREMENTS if most else None)[0]
        if woken in ready:
            os.read(woken, 1)
        has = memory_of(child) if most else 0
        if control in ready or has > most:
            too_large = has if has > most else 0
            os.kill(child, signal.SIGKILL)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            break
    return Ended(code, _end_group(child), too_large)


def _code_of(child: int) -> int | None:
    """How the child ended, None while it runs."""
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
                names[process.pid] = printable(process.name())
                process.kill()
    return names


def _prctl(option: int, value: int) -> None:
    """Set an attribute of this process, where the platform has it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
