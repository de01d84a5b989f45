"""One process that has imported what children need, and forks each of them: a new Python would take 0.2 s.

It is started with the first child, or before, by a command that is about to need some. It has one thread, runs no
native code of a delegate, and ends with the process that started it. Children with packages of their own have a server
that found those first.

macOS: some of its frameworks do not work in a process that was forked after they were used. The server uses none: it
is a new Python there, and loads models and delegates only in the children.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from msgspec import Struct

from evaltools.runtime.process.messages import SIZE
from evaltools.runtime.process.printed import flush_printed
from evaltools.runtime.process.supervisor import BEGUN, DESCRIPTORS, close_all_but, supervise
from evaltools.signals import INTERRUPTS

_NEEDED: Final = ("evaltools.runtime.process.isolated", "evaltools.runtime.interpreter", "evaltools.preprocess")
_STATUS: Final = "/proc/self/status"
_MOST_MEMORY_KB: Final = 64 << 10
"""One and a half times what a command has that has imported what children need."""
_BEGUN_IN: Final = os.getcwd()
"""What an empty entry of the path stands for: where this process may go later, nothing is imported from."""
_TURN: Final = threading.Lock()
SECONDS_TO_START: Final = 60.0
"""A start is not cut short for a short time-out: what is called has not begun."""


class Order(Struct, frozen=True):
    """What a child is as this process is now."""

    path: Sequence[bytes]
    folder: bytes
    environment: dict[bytes, bytes]


class _Server:
    """A server that ``begin`` starts with the other end of a pair of sockets.

    That gives the number of the process, and a function that waits for it.
    """

    def __init__(self, begin: Callable[[socket.socket], tuple[int, Callable[[], object]]]) -> None:
        self._end, theirs = socket.socketpair()
        with theirs:
            self.process_id, self._wait = begin(theirs)
        self._end.settimeout(SECONDS_TO_START)

    def fork(self, order: Order, descriptors: Sequence[int]) -> tuple[socket.socket, int, int] | None:
        """Have it fork a supervisor and a child; their control socket and numbers, None where that failed."""
        content = msgspec.msgpack.encode(order)
        frame = SIZE.pack(len(content)) + content
        control, theirs = socket.socketpair()
        try:
            with theirs:
                self._end.sendall(frame[socket.send_fds(self._end, [frame], [theirs.fileno(), *descriptors]) :])
            control.settimeout(SECONDS_TO_START)
            begun = control.recv(BEGUN.size)
        except BaseException as error:
            control.close()
            if isinstance(error, ConnectionError):
                return None
            raise
        if begun:
            return control, *BEGUN.unpack(begun)
        control.close()
        return None

    def close(self) -> None:
        """End it; children that it forked go on."""
        self._end.close()
        os.kill(self.process_id, signal.SIGKILL)
        self._wait()


def _new_python(packages: Path | None, end: socket.socket) -> tuple[int, Callable[[], object]]:
    """A new Python, which finds packages in that folder first."""
    import subprocess  # most commands get a copy

    found_first = [] if packages is None else [str(packages)]
    path = os.pathsep.join([*found_first, *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, "-m", "evaltools.runtime.process", str(end.fileno())],
        cwd=os.sep,  # where there is nothing to import
        env={**os.environ, "PYTHONPATH": path},
        pass_fds=[end.fileno()],
        start_new_session=True,
    )
    return process.pid, process.wait


def _copy(end: socket.socket) -> tuple[int, Callable[[], object]]:
    """A copy of this process."""
    flush_printed()
    process_id = os.fork()
    if not process_id:
        try:
            os.setsid()
            close_all_but([end.fileno()])
            serve(end)
        finally:
            os._exit(1)
    return process_id, partial(os.waitpid, process_id, 0)


_servers: Final[dict[tuple[int, Path | None], _Server]] = {}
"""By the process that started it, which may be copied, and the folder of packages."""


def start_server() -> None:
    """Start the server, for a command that is about to need children.

    It is a copy of this process, with which it shares what both have imported. Where this process has other threads,
    which a copy would lack, or much memory, which would count as that of each child, the server is a new Python.
    """
    key = (os.getpid(), None)
    if key in _servers:
        return
    for name in _NEEDED:
        importlib.import_module(name)
    with suppress(OSError):
        _servers[key] = _Server(_copy if _can_be_copied() else partial(_new_python, None))


def _can_be_copied() -> bool:
    try:
        facts = dict(line.split(":", 1) for line in Path(_STATUS).read_text().splitlines())
        return int(facts["Threads"]) == 1 and int(facts["VmRSS"].split()[0]) <= _MOST_MEMORY_KB
    except (OSError, KeyError):  # the platform does not say
        return False


def start_child(descriptors: Sequence[int], packages: Path | None = None) -> tuple[socket.socket, int, int]:
    """Start a child with those descriptors; returns the socket of its supervisor, and the numbers of both.

    Raises :class:`OSError` where that is impossible. A server that was interrupted or killed is not kept.
    """
    path = [os.fsencode(entry or _BEGUN_IN) for entry in sys.path]
    first = [] if packages is None else [os.fsencode(packages)]
    folder = b""
    with suppress(OSError):
        folder = os.getcwdb()
    order = Order([*first, *path], folder, dict(os.environb))
    key = (os.getpid(), packages)
    with _TURN:
        for _ in range(2):
            server = _servers.pop(key, None) or _Server(partial(_new_python, packages))
            begun = None
            try:
                begun = server.fork(order, descriptors)
            finally:
                if begun is None:
                    server.close()
            if begun is not None:
                _servers[key] = server
                return begun
    raise OSError("the system allows no more processes, or has no memory for one")


@atexit.register
def _end_servers() -> None:
    for (process, _), server in _servers.items():
        if process == os.getpid():
            server.close()


def serve(end: socket.socket) -> NoReturn:
    """The server: fork whatever is ordered, until the process that started this one is gone.

    It outlives what ends a command, which still starts or ends children.
    """
    for number in INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nothing, descriptor)
    os.close(nothing)
    for name in _NEEDED:
        importlib.import_module(name)
    gc.freeze()  # a child that looks for garbage would go through all of it, and copy most of the memory that it shares
    while True:
        head, descriptors, _, _ = socket.recv_fds(end, SIZE.size, DESCRIPTORS)
        if len(head) < SIZE.size:
            os._exit(0)
        content = end.recv(SIZE.unpack(head)[0], socket.MSG_WAITALL)
        with suppress(OSError):  # who ordered it sees that nobody has the other end
            if not os.fork():
                _be_as_ordered(msgspec.msgpack.decode(content, type=Order))
                supervise(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _be_as_ordered(order: Order) -> None:
    sys.path[:] = map(os.fsdecode, order.path)
    with suppress(OSError):
        os.chdir(order.folder)
    os.environb.clear()
    os.environb.update(order.environment)
