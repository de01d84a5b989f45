"""What a child does: it calls the functions that its parent orders, and answers, until there is nothing more to do."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import socket
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NoReturn

from msgspec import Raw

from evaltools.errors import EvaltoolsError
from evaltools.runtime.memory import peak_memory_kb
from evaltools.runtime.process.messages import SIZE, Answer, Failure, encoded, framed
from evaltools.runtime.process.printed import flush_printed, print_to
from evaltools.runtime.process.shared_arrays import SharedArrays
from evaltools.runtime.session import Session, TensorSpec
from evaltools.signals import ENDINGS

_COPY: Final = 86
"""The exit code of a copy of a child, which a fork in native code made."""


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


def be_child(end: int, printed: int, memory: int) -> NoReturn:
    """Be the child that was forked: a session of its own, signals as they are by default, and orders from ``end``."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (*ENDINGS, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        print_to(printed)
        _answer_all(socket.socket(fileno=end), Held(memory))
        code = 0
    except BaseException:  # what is printed goes to the parent, and the exit code says it, too
        traceback.print_exc()
    finally:
        flush_printed()
        if not code:
            ctypes.CDLL(None).exit(code)  # with what libraries want to do at their end, unlike Python's
        os._exit(code)


def _answer_all(end: socket.socket, held: Held) -> None:
    owner, question = os.getpid(), 0
    with suppress(BrokenPipeError), end.makefile("rb") as orders:
        while head := orders.read(SIZE.size):
            function, arguments = pickle.loads(orders.read(*SIZE.unpack(head)))
            question += 1
            try:
                answer = Answer(Raw(encoded(function(held, *arguments))), None, peak_memory_kb())
            except EvaltoolsError as error:
                answer = Answer(failure=Failure.of(error), peak_memory_kb=peak_memory_kb())
            flush_printed()
            end.sendall(framed(question, encoded(answer)))
            if os.getpid() != owner:  # a copy has told that it is there
                os._exit(_COPY)
