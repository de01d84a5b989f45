"""A child process with native code, as its parent sees it: functions are called in it, and what it prints is kept.

Whatever happens there ends that process and not this one; whoever called hears how it ended. Orders are pickled, for
they come from here; an answer is read as a value of the type that the called function says it returns.
"""

from __future__ import annotations

import fcntl
import functools
import logging
import os
import pickle
import select
import signal
import socket
import threading
import time
import typing
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from evaltools.errors import SessionEnded
from evaltools.runtime.memory import MOST_OF_MEMORY
from evaltools.runtime.process import server
from evaltools.runtime.process.messages import HEAD, SIZE, Answer, WrongMessage, answer_size, decoded
from evaltools.runtime.process.printed import text_of
from evaltools.runtime.process.shared_arrays import memory_file
from evaltools.runtime.process.supervisor import Ended
from evaltools.runtime.session import Crashes
from evaltools.signals import deferred_interrupt
from evaltools.text import last_words

_SECONDS_TO_END: Final = 5.0
_LONGEST_QUOTE: Final = 300
LEAST_LIMIT_S = 30.0
"""Neither a run after others nor a process after one that hung gets less, unless the time-out itself is shorter."""
_LONGEST_WAIT_S: Final = 2_000_000.0
"""A little less than what ``poll`` can wait for."""
_LONG_S: Final = 60.0
_PIECE: Final = 1 << 20
_LOG: Final = logging.getLogger("evaltools")
Returned = TypeVar("Returned")


class ChildProcess:
    """A child in which functions are called from here; with what it printed.

    ``name`` is what messages call the process. ``timeout_s`` limits each call; the user's ``timeout_flag`` sets it, if
    there is one. The child finds the packages in the folder ``packages``, if there is one, before those of this
    process. It shares the file with the descriptor ``memory``. Raises :class:`OSError` where it cannot be started.
    """

    def __init__(self, name: str, timeout_s: float, timeout_flag: str = "", packages: Path | None = None) -> None:
        self.timeout_s = timeout_s
        self.peak_memory_kb = 0
        self.not_clean = ""
        self.crashes = Crashes()
        self._name = name
        self._timeout_flag = timeout_flag
        self._question = 0
        self._ended: Ended | None = None
        self._over: SessionEnded | None = None
        self._running = False
        self._reporting = threading.Lock()
        with ExitStack() as resources:
            self._printed, shared = (resources.enter_context(memory_file()) for _ in range(2))
            self.memory = shared.fileno()
            fcntl.fcntl(self._printed, fcntl.F_SETFL, os.O_APPEND)
            end, far_end = socket.socketpair()
            self._end = resources.enter_context(end)
            with far_end, deferred_interrupt():
                descriptors = (far_end.fileno(), self._printed.fileno(), self.memory)
                control, self._child, self._supervisor = server.start_child(descriptors, packages)
                self._control = resources.enter_context(control)
            self._resources = resources.pop_all()

    def ask(
        self,
        function: Callable[..., Returned],
        *arguments: Any,
        moment: str,
        seconds: float | None = None,
        returns: Any = None,
    ) -> Returned:
        """Call ``function`` there with what the child holds and ``arguments``, all of which must be picklable.

        ``seconds`` is a limit for this call in the place of the time-out. ``returns`` is the type of what comes back
        where the function does not state it. Raises the error of ours that the function raised, and
        :class:`SessionEnded` for a child that has died or does not answer in time.
        """
        if self._over is not None:
            raise self._over
        limit_s = min(seconds or self.timeout_s, _LONGEST_WAIT_S)
        order, wanted = pickle.dumps((function, arguments)), returns or returned_by(function)
        self._running = True
        try:
            answer: Answer = decoded(self._answer(order, moment, limit_s), Answer)
            value = decoded(answer.value, wanted) if answer.failure is None else answer.failure.error
        except TimeoutError:
            raise self._hung(moment, limit_s) from None
        except WrongMessage as error:
            self.kill()
            text = f"{self._name} sent {error} ({moment}); it was ended{self._quote()}"
            raise self._crashed(SessionEnded(text)) from None
        except (OSError, EOFError, ValueError):
            raise self._died(moment) from None
        except BaseException:
            self._over = SessionEnded(f"it was interrupted {moment}")
            raise
        finally:
            self._running = False
        self.peak_memory_kb = answer.peak_memory_kb
        if isinstance(value, Exception):
            raise value
        returned: Returned = value
        return returned

    def limit(self, timeout_s: float, timeout_flag: str) -> None:
        """Give each call from now on another time-out, which the user's ``timeout_flag`` sets, if there is one."""
        self.timeout_s, self._timeout_flag = timeout_s, timeout_flag

    def hurry(self) -> None:
        """Give each call a tenth of the time, half a minute at least: one before it hung, and it will hang as well."""
        self.timeout_s = min(self.timeout_s, max(LEAST_LIMIT_S, self.timeout_s / 10))

    def leave(self, moment: str, seconds: float) -> str:
        """Ask nothing any more, upon which it ends; returns what it sent or left all the same, empty where nothing.

        Raises :class:`SessionEnded` where it does not end in time, or with an error.
        """
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)
        ended = self.ended(seconds)
        if ended is None:
            raise self._hung(moment, seconds)
        if ended.code:
            raise self._died(moment)
        with suppress(OSError):
            self._end.setblocking(False)
            if self._end.recv(1):
                return f"{self._name} sent what nobody asked for ({moment})"
        return _left_behind(ended).removeprefix("; ")

    def _answer(self, order: bytes, moment: str, seconds: float) -> bytes:
        """The answer to an order; where it takes long, a warning says so while there is time left.

        Raises :class:`WrongMessage`, :class:`TimeoutError`, and :class:`OSError`, :class:`EOFError` or
        :class:`ValueError` where the child has ended, or was closed meanwhile.
        """
        deadline = time.monotonic() + seconds
        self._question += 1
        os.ftruncate(self._printed.fileno(), 0)
        self._end.settimeout(seconds)
        self._end.sendall(SIZE.pack(len(order)) + order)
        if seconds > 2 * _LONG_S and not self._ready(_LONG_S):
            flag = f" ({self._timeout_flag})" if self._timeout_flag else ""
            _LOG.warning("no answer for %g s %s; the process is ended after %g s%s", _LONG_S, moment, seconds, flag)
        size = answer_size(self._received(HEAD.size, deadline), self._child, self._question)
        return self._received(size, deadline)

    def _received(self, size: int, deadline: float) -> bytes:
        content = bytearray()
        while len(content) < size:
            ready = self._ready(deadline - time.monotonic())
            if not ready:
                raise TimeoutError
            piece = self._end.recv(min(size - len(content), _PIECE)) if self._end.fileno() in ready else b""
            if not piece:
                raise EOFError
            content += piece
        return bytes(content)

    def _ready(self, seconds: float) -> set[int]:
        """The descriptors of those sockets on which something happens within so long."""
        poll = select.poll()
        for each in (self._end, self._control):
            poll.register(each, select.POLLIN)
        return {descriptor for descriptor, _ in poll.poll(max(0.0, 1000 * seconds))}

    def _hung(self, moment: str, seconds: float) -> SessionEnded:
        self.kill()
        may_be_more = self._timeout_flag and seconds >= self.timeout_s
        more = f"; {self._timeout_flag}=SECONDS allows more" if may_be_more else ""
        text = f"no answer within {seconds:g} s {moment}{self._quote()}; it was ended{more}"
        return self._crashed(SessionEnded(text, hung=True))

    def _died(self, moment: str) -> SessionEnded:
        ended = self.ended()
        how = "it closed its pipe" if ended is None else f"{_cause(ended)}{_left_behind(ended)}"
        return self._crashed(SessionEnded(f"{self._name} died {moment} ({how}){self._quote()}"))

    def _crashed(self, ended: SessionEnded) -> SessionEnded:
        """Count an end as a crash, unless it was closed from here meanwhile; returns it."""
        if self._over is None:
            self.crashes = Crashes(1, str(ended))
        self._over = ended
        return ended

    @property
    def process_id(self) -> int | None:
        """Its number, None once it has ended."""
        return self._child if self._ended is None else None

    def ended(self, seconds: float = _SECONDS_TO_END) -> Ended | None:
        """How it ended, None where it has not within so long."""
        with self._reporting:
            if self._ended is None:
                with suppress(OSError):  # it has not within so long, or was closed meanwhile
                    self._control.settimeout(seconds)
                    self._ended = self._report()
        return self._ended

    def _report(self) -> Ended:
        try:
            return msgspec.msgpack.decode(self._control.recv(_PIECE), type=Ended)
        except (ConnectionError, msgspec.DecodeError):  # the supervisor was killed
            self._kill_group()
            return Ended(-signal.SIGKILL)

    def _kill_group(self) -> None:
        with suppress(OSError):
            os.killpg(self._child, signal.SIGKILL)

    def printed(self) -> str:
        """What it printed since it was asked last; of a long text its head and its tail."""
        with suppress(ValueError):  # it was closed meanwhile
            return text_of(self._printed.fileno())
        return ""

    def _quote(self) -> str:
        """What it printed last since its last answer, ready to stand behind a reason."""
        text = last_words(self.printed(), _LONGEST_QUOTE)
        return f"; it printed last: {text}" if text else ""

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        if self.ended() is None:
            self._kill_group()
            with suppress(OSError):
                os.kill(self._supervisor, signal.SIGKILL)
            self.ended()

    def close(self) -> None:
        """End it where it has not ended, and forget it."""
        self._over = self._over or SessionEnded("the session was closed")
        self.kill()
        self._resources.close()


@functools.lru_cache
def returned_by(function: Callable[..., Any]) -> Any:
    """The type that a function says it returns."""
    return typing.get_type_hints(function)["return"]


def _cause(ended: Ended) -> str:
    code = ended.code
    if ended.too_large:
        share = f"{100 * MOST_OF_MEMORY:.0f} %"
        return f"it was ended when it had {ended.too_large / 1e9:.1f} GB, more than {share} of the memory that there is"
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
    return f"{name}, as when memory runs out" if name == "SIGKILL" else name


def _left_behind(ended: Ended) -> str:
    """The processes that a child left, ready to stand behind what else is said of it."""
    if not ended.left:
        return ""
    return f"; it left {ended.left} process{'es' if ended.left > 1 else ''} ({ended.names}) that had to be ended"
