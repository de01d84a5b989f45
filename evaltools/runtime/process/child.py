"""A child process with native code, as its parent sees it: functions are called in it, and what it prints is kept.

Whatever happens there ends that process and not this one; whoever called hears how it ended. Orders are pickled, for
they come from here; an answer is read as a value of the type that the called function says it returns.
"""

from __future__ import annotations

import functools
import io
import logging
import os
import pickle
import secrets
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
from evaltools.runtime.process.messages import SECRET_BYTES, SIZE, Answer, Incoming, WrongMessage, decoded
from evaltools.runtime.process.printed import BoundedText, text_of
from evaltools.runtime.process.shared_arrays import memory_file
from evaltools.runtime.process.supervisor import Begun, Ended
from evaltools.runtime.session import Crashes
from evaltools.signals import deferred_interrupt
from evaltools.text import last_words, shortened

_SECONDS_TO_END: Final = 5.0
_LONGEST_QUOTE: Final = 300
_LONGEST_NAMES: Final = 60
LEAST_LIMIT_S = 30.0
"""Neither a run after others nor a process after one that hung gets less, unless the time-out itself is shorter."""
_LONGEST_WAIT_S: Final = 2_000_000.0
"""A little less than what ``poll`` can wait for."""
_LONG_S: Final = 60.0
_PIECE: Final = 1 << 20
"""More than a pipe holds."""
_NOT_STARTED: Final = "it could not be started: the system allows no more processes, or has no memory for one"
_read_report: Final = msgspec.json.Decoder(Begun | Ended).decode
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
        self._begun: Begun | None = None
        self._ended: Ended | None = Ended(0)
        self._over: SessionEnded | None = None
        self._running = False
        self._reporting = threading.Lock()
        self._part_of_report = b""
        self._reading = threading.Lock()
        self._text = BoundedText()
        secret = secrets.token_bytes(SECRET_BYTES)
        self._incoming = Incoming(secret)
        ours = self._resources = ExitStack()
        try:
            with ExitStack() as theirs:
                (self._control, far_control), (self._end, far_end) = (_socket_pair(ours, theirs) for _ in range(2))
                output, printed = os.pipe()
                theirs.callback(os.close, printed)
                self._output = ours.enter_context(io.FileIO(output))
                os.set_blocking(output, False)
                self.memory = ours.enter_context(memory_file()).fileno()
                self._capture = ours.enter_context(memory_file()).fileno()
                descriptors = (far_control, far_end, printed, self.memory, self._capture)
                with deferred_interrupt():
                    self._ended = None
                    server.start_child(secret, descriptors, packages)
        except BaseException:
            ChildProcess.close(self)
            raise

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
        self._running = True
        try:
            limit_s = min(seconds or self.timeout_s, _LONGEST_WAIT_S)
            order, wanted = pickle.dumps((function, arguments)), returns or returned_by(function)
            answer, value = self._answer(order, wanted, moment, limit_s)
        except SessionEnded:
            raise
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
        with suppress(OSError, EOFError):
            self._receive()
        try:
            self._incoming.require_nothing()
        except WrongMessage as error:
            return f"{self._name} sent {error} ({moment})"
        return left_behind(ended).removeprefix("; ")

    def _answer(self, order: bytes, wanted: Any, moment: str, seconds: float) -> tuple[Answer, Any]:
        """The answer to an order, and what it holds: a value of the wanted type, or an error of ours."""
        deadline = time.monotonic() + seconds
        try:
            if self._begun is None:
                self._wait_until_begun()
                deadline = time.monotonic() + seconds
            with self._reading:
                self._text.forget()
            self._send(SIZE.pack(len(order)) + order, deadline)
            self._question += 1
            answer = self._awaited(moment, seconds, deadline)
            value = decoded(answer.value, wanted) if answer.failure is None else answer.failure.error
            return answer, value
        except TimeoutError:
            raise self._hung(moment, seconds if self._begun else server.SECONDS_TO_START) from None
        except WrongMessage as error:
            self.kill()
            text = f"{self._name} sent {error} ({moment}); it was ended{self._quote()}"
            raise self._crashed(SessionEnded(text)) from None
        except (OSError, EOFError, ValueError):
            raise self._died(moment) from None

    def _hung(self, moment: str, seconds: float) -> SessionEnded:
        self.kill()
        may_be_more = self._timeout_flag and seconds >= self.timeout_s
        more = f"; {self._timeout_flag}=SECONDS allows more" if may_be_more else ""
        text = f"no answer within {seconds:g} s {moment}{self._quote()}; it was ended{more}"
        return self._crashed(SessionEnded(text, hung=True))

    def _died(self, moment: str) -> SessionEnded:
        ended = self.ended()
        how = "it closed its pipe" if ended is None else f"{_cause(ended)}{left_behind(ended)}"
        how = _NOT_STARTED if self._begun is None else how
        return self._crashed(SessionEnded(f"{self._name} died {moment} ({how}){self._quote()}"))

    def _crashed(self, ended: SessionEnded) -> SessionEnded:
        """Count an end as a crash, unless it was closed from here meanwhile; returns it."""
        if self._over is None:
            self.crashes = Crashes(1, str(ended))
        self._over = ended
        return ended

    def _awaited(self, moment: str, seconds: float, deadline: float) -> Answer:
        """The next answer; where it takes long, a warning says so while there is time left."""
        warn_at = time.monotonic() + _LONG_S if seconds > 2 * _LONG_S else deadline
        while (answer := self._incoming.answer(self._question)) is None:
            now = time.monotonic()
            if now >= deadline:
                raise TimeoutError
            if now >= warn_at:
                warn_at = deadline
                flag = f" ({self._timeout_flag})" if self._timeout_flag else ""
                _LOG.warning("no answer for %g s %s; the process is ended after %g s%s", _LONG_S, moment, seconds, flag)
            ready = self._ready(warn_at - now, self._end, self._control)
            if self._end.fileno() in ready:
                self._receive()
            elif self._control.fileno() in ready:
                raise EOFError
        self._read_printed()
        return answer

    def _send(self, order: bytes, deadline: float) -> None:
        rest = memoryview(order)
        while rest:
            try:
                rest = rest[self._end.send(rest) :]
            except BlockingIOError:
                self._ready(deadline - time.monotonic(), writes=self._end)
                if time.monotonic() >= deadline:
                    raise TimeoutError from None

    def _receive(self) -> None:
        with suppress(BlockingIOError):
            piece = self._end.recv(_PIECE)
            if not piece:
                raise EOFError
            self._incoming.add(piece)

    def _ready(self, seconds: float, *reads: socket.socket, writes: socket.socket | None = None) -> set[int]:
        """The descriptors on which something has happened within so long; what is printed meanwhile is read."""
        poll = select.poll()
        for each in reads:
            poll.register(each, select.POLLIN)
        if writes is not None:
            poll.register(writes, select.POLLOUT)
        if not self._output.closed:
            poll.register(self._output, select.POLLIN)
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, 1000 * seconds))}
        self._read_printed()
        return ready

    def _read_printed(self) -> None:
        """Read what is there, which is at most what a pipe holds."""
        with self._reading, suppress(ValueError):  # it was closed meanwhile
            piece = self._output.read(_PIECE)
            self._text.add(piece or b"")
            if piece == b"":  # nobody can print any more
                self._output.close()

    def _wait_until_begun(self) -> None:
        if not self._wait_for_report(
            lambda: self._begun is not None or self._ended is not None, server.SECONDS_TO_START
        ):
            raise TimeoutError
        if self._begun is None:
            raise EOFError
        self._incoming.process = self._begun.child

    @property
    def process_id(self) -> int | None:
        """Its number, None once it has ended."""
        return self._begun.child if self._begun is not None and self._ended is None else None

    def ended(self, seconds: float = _SECONDS_TO_END) -> Ended | None:
        """How it ended, None where it has not within so long."""
        self._wait_for_report(lambda: self._ended is not None, seconds)
        return self._ended

    def _wait_for_report(self, is_enough: Callable[[], bool], seconds: float) -> bool:
        """Read what the supervisor reports until that is enough; returns whether it is within so long."""
        deadline = time.monotonic() + seconds
        with self._reporting:
            while not is_enough():
                if self._control.fileno() in self._ready(deadline - time.monotonic(), self._control):
                    self._read_reports()
                elif time.monotonic() >= deadline:
                    return False
        return True

    def _read_reports(self) -> None:
        try:
            piece = self._control.recv(_PIECE)
        except OSError:
            piece = b""
        if not piece:  # the supervisor was killed
            self._kill_group()
            self._ended = Ended(-signal.SIGKILL)
        *lines, self._part_of_report = (self._part_of_report + piece).split(b"\n")
        for line in lines:
            report = _read_report(line)
            self._begun, self._ended = (report, None) if isinstance(report, Begun) else (self._begun, report)

    def _kill_group(self) -> None:
        if self._begun is not None:
            with suppress(OSError):
                os.killpg(self._begun.child, signal.SIGKILL)

    def printed(self) -> str:
        """What it printed since it was asked last; of a long text its head and its tail."""
        self._read_printed()
        return str(self._text)

    def _quote(self) -> str:
        """What it printed last since its last answer, ready to stand behind a reason."""
        text = last_words(f"{self.printed()}{text_of(self._capture)}", _LONGEST_QUOTE)
        return f"; it printed last: {text}" if text else ""

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        if self.ended() is None and self._begun is not None:
            self._kill_group()
            with suppress(OSError):
                os.kill(self._begun.supervisor, signal.SIGKILL)
            self.ended()

    def close(self) -> None:
        """End it where it has not ended, and forget it."""
        self._over = self._over or SessionEnded("the session was closed")
        if self._ended is None:
            self.kill()
        self._resources.close()


def _socket_pair(ours: ExitStack, theirs: ExitStack) -> tuple[socket.socket, int]:
    """An end for this process, which never waits, and the descriptor of the other one."""
    near, far = socket.socketpair()
    ours.enter_context(near).setblocking(False)
    return near, theirs.enter_context(far).fileno()


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


def left_behind(ended: Ended) -> str:
    """The processes that a child left, ready to stand behind what else is said of it."""
    if not ended.left:
        return ""
    names = shortened(", ".join(sorted(set(ended.left))), _LONGEST_NAMES)
    return f"; it left {len(ended.left)} process{'es' if len(ended.left) > 1 else ''} ({names}) that had to be ended"
