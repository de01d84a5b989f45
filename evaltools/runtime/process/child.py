"""A child process with native code: functions are called in it, and what it prints is kept.

Whatever happens there ends that process and not this one; whoever called hears how it ended.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import spawn
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import IO, Any, Final, TypeVar

from msgspec import Struct

from evaltools.errors import EvaltoolsError, SessionEnded
from evaltools.runtime.memory import MOST_OF_MEMORY
from evaltools.runtime.process.channel import SECRET_BYTES, Channel, WrongMessage
from evaltools.runtime.process.server import Spawned, contexts, imports_not_from_this_folder, interrupts_kept_back
from evaltools.runtime.process.supervisor import Ended, bounded_text, flush_printed, watched
from evaltools.runtime.session import Crashes
from evaltools.signals import ENDINGS
from evaltools.text import last_words, printable, shortened

_SECONDS_TO_END: Final = 5.0
_LONGEST_QUOTE: Final = 300
_LONGEST_NAMES: Final = 60
_LONGEST_LOG: Final = 1 << 20
_MOST_PRINTED: Final = 1 << 30
"""Bytes that a child may print until it answers; more would fill the disk."""
_SECONDS_BETWEEN_LOOKS: Final = 1.0
_PIPES_TO_START: Final = 4
_TO_APPEND: Final = os.O_WRONLY | os.O_APPEND
LEAST_LIMIT_S = 30.0
"""Neither a run after others nor a process after one that hung gets less, unless the time-out itself is shorter."""
_SECONDS_TO_START: Final = 60.0
"""A start is not cut short for a short time-out: what is called has not begun."""
_LONGEST_WAIT_S: Final = 2_000_000.0
"""A little less than what ``poll`` can wait for."""
_LONG_S: Final = 60.0
_BYTES_PER_KB: Final = 1024
_LOG: Final = logging.getLogger("evaltools")
_log = 1
"""The descriptor of the log in a child."""
_STARTING: Final = threading.Lock()
"""One start at a time: what it needs of the descriptors that are left, it has."""
Returned = TypeVar("Returned")


class _Answer(Struct, frozen=True):
    """The child's message after a call: what the function returned, or the error that it raised.

    What it printed meanwhile stands in its log from ``log_start`` to ``log_end``.
    """

    value: Any
    log_start: int
    log_end: int
    peak_memory_kb: int


class ChildProcess:
    """A child that holds an object, on which functions are called from here; with what it printed.

    ``held`` must travel. ``name`` is what messages call the process. ``timeout_s`` limits each call; the user's
    ``timeout_flag`` sets it, if there is one. The child finds the packages in the folder ``packages``, if there is one,
    before those of this process. Raises :class:`OSError` where it cannot be started.
    """

    _channel: Channel
    _control: Channel
    _printed: IO[bytes]
    _printed_name: str

    def __init__(
        self, held: Any, name: str, timeout_s: float, timeout_flag: str = "", packages: Path | None = None
    ) -> None:
        self.timeout_s = timeout_s
        self.peak_memory_kb = 0
        self.not_clean = ""
        self.crashes = Crashes()
        self._name = name
        self._timeout_flag = timeout_flag
        self._log_start = self._log_end = 0
        self._number: int | None = None
        self._ended: Ended | None = None
        self._over: SessionEnded | None = None
        self._running = False
        self._asking = threading.Lock()
        self._start(held, packages)

    def ask(
        self, function: Callable[..., Returned], *arguments: Any, moment: str, seconds: float | None = None
    ) -> Returned:
        """Call ``function`` there with what the child holds and ``arguments``, all of which must travel.

        ``seconds`` is a limit for this call in the place of the time-out. Raises the error of ours that the function
        raised, and :class:`SessionEnded` for a child that has died or does not answer in time.
        """
        if self._over is not None:
            raise self._over
        self._running = True
        try:
            answer = self._answer((function, arguments), moment, min(seconds or self.timeout_s, _LONGEST_WAIT_S))
        except SessionEnded:
            raise
        except BaseException:
            self._over = SessionEnded(f"it was interrupted {moment}")
            raise
        finally:
            self._running = False
        self._log_start, self._log_end, self.peak_memory_kb = answer.log_start, answer.log_end, answer.peak_memory_kb
        if isinstance(answer.value, EvaltoolsError):
            raise answer.value
        returned: Returned = answer.value
        return returned

    def hurry(self) -> None:
        """Give each call a tenth of the time, half a minute at least: one before it hung, and it will hang as well."""
        self.timeout_s = min(self.timeout_s, max(LEAST_LIMIT_S, self.timeout_s / 10))

    def leave(self, moment: str, seconds: float) -> str:
        """Ask nothing any more, upon which it ends; returns what it sent or left all the same, empty where nothing.

        Raises :class:`SessionEnded` where it does not end in time, or with an error.
        """
        self._channel.send_no_more()
        ended = self.ended(seconds)
        if ended is None:
            raise self._hung(moment, seconds)
        if ended.code:
            raise self._died(moment)
        try:
            self._channel.receive(0)
        except WrongMessage as error:
            return f"{self._name} sent {error} ({moment})"
        except (EOFError, OSError):
            pass
        return left_behind(ended).removeprefix("; ")

    def _answer(self, order: Any, moment: str, seconds: float) -> _Answer:
        try:
            if self._number is None:
                self._wait_until_begun(max(seconds, _SECONDS_TO_START))
            self._channel.send(order, seconds)
            return self._awaited(moment, seconds)
        except TimeoutError:
            raise self._hung(moment, seconds) from None
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
        text = f"{self._name} died {moment} ({self._cause_of_death()}){self._quote()}"
        return self._crashed(SessionEnded(text))

    def _crashed(self, ended: SessionEnded) -> SessionEnded:
        """Count an end as a crash, unless it was closed from here meanwhile; returns it."""
        if self._over is None:
            self.crashes = Crashes(1, str(ended))
        self._over = ended
        return ended

    def _awaited(self, moment: str, seconds: float) -> _Answer:
        """The next answer; where it takes long, a warning says so while there is time left.

        Raises :class:`WrongMessage` also where the child prints so much meanwhile that this would fill the disk.
        """
        deadline = time.monotonic() + seconds
        warn_at = time.monotonic() + _LONG_S if seconds > 2 * _LONG_S else deadline
        while True:
            left = deadline - time.monotonic()
            try:
                answer: _Answer = self._channel.receive(max(0.0, min(left, _SECONDS_BETWEEN_LOOKS)))
                return answer
            except TimeoutError:
                if left <= _SECONDS_BETWEEN_LOOKS:
                    raise
            printed = os.fstat(self._printed.fileno()).st_size - self._log_end
            if printed > _MOST_PRINTED:
                raise WrongMessage(f"{printed} bytes to stdout and stderr, at most {_MOST_PRINTED} are taken")
            if time.monotonic() > warn_at:
                warn_at = deadline
                flag = f" ({self._timeout_flag})" if self._timeout_flag else ""
                _LOG.warning("no answer for %g s %s; the process is ended after %g s%s", _LONG_S, moment, seconds, flag)

    def _wait_until_begun(self, seconds: float) -> None:
        number: int = self._control.receive(seconds)
        self._channel.only_from(number)
        self._number = number

    def _start(self, held: Any, packages: Path | None) -> None:
        """Start it; where the server of children cannot work, or has other packages, as a child of this process.

        Each try has a log of its own: a child whose start failed half-way may have opened that of the first.
        """
        for context in contexts() if packages is None else [Spawned()]:
            try:
                self._start_in(context, held, packages)
                return
            except OSError:
                if context.get_start_method() == "spawn":
                    raise

    def _start_in(self, context: BaseContext, held: Any, packages: Path | None) -> None:
        secret = secrets.token_bytes(SECRET_BYTES)
        with _STARTING, ExitStack() as ours, ExitStack() as theirs:
            descriptor, name = tempfile.mkstemp(prefix="evaltools-", suffix=".log")
            ours.callback(_forget, name)
            printed = ours.enter_context(os.fdopen(descriptor, "rb"))
            log: str | Connection = name
            if sys.platform != "win32":  # a descriptor travels, so that whoever is killed leaves no file
                log = theirs.enter_context(Connection(os.open(name, _TO_APPEND), readable=False))
                _forget(name)
            near, far = [], []
            for _ in range(2):
                one, other = socket.socketpair()
                near.append(ours.enter_context(one))
                far.append(theirs.enter_context(other))
                one.setblocking(False)
            given = (*far, secret, log, held)
            process = context.Process(target=_begin, args=given, daemon=True)  # type: ignore[attr-defined]
            _require_descriptors()
            with interrupts_kept_back(), imports_not_from_this_folder(), _found_first(packages):
                process.start()
            ours.pop_all()
        self._control = Channel(near[0], secret)
        self._channel = Channel(near[1], secret, alive=self._control)
        self._process, self._printed, self._printed_name = process, printed, name

    @property
    def process_id(self) -> int | None:
        """Its number, None once it has ended."""
        return self._number if self._ended is None else None

    def ended(self, seconds: float = _SECONDS_TO_END) -> Ended | None:
        """How it ended, None where it has not within so long."""
        with self._asking:
            if self._ended is None:
                self._ended = self._told(seconds)
            return self._ended

    def _told(self, seconds: float) -> Ended | None:
        try:
            while not isinstance(ended := self._control.receive(seconds), Ended):
                continue
            return ended
        except TimeoutError:
            return None
        except (EOFError, OSError, ValueError):
            return self._found_ended()

    def _found_ended(self) -> Ended | None:
        """How its supervisor ended, where that could not say."""
        try:
            self._process.join(_SECONDS_TO_END)
            code = self._process.exitcode
        except ValueError:
            code = None
        return None if code is None else Ended(code)

    def _cause_of_death(self) -> str:
        """The signal or exit code of a child that sends nothing any more, and what it left."""
        ended = self.ended()
        return "it closed its pipe" if ended is None else f"{_cause(ended)}{left_behind(ended)}"

    def printed(self) -> str:
        """All that stands in its log; of a long text its head and its tail."""
        return self._text(0)

    def printed_in_call(self) -> str:
        """What it printed while it did what it was asked last, which it has answered."""
        return self._text(self._log_start)

    def _text(self, start: int) -> str:
        try:
            begun_anew = os.fstat(self._printed.fileno()).st_size < start
            return bounded_text(self._printed, 0 if begun_anew else start)
        except (OSError, ValueError):
            return ""

    def _quote(self) -> str:
        """What it printed last since its last answer, ready to stand behind a reason."""
        text = last_words(self._text(self._log_end), _LONGEST_QUOTE)
        return f"; it printed last: {text}" if text else ""

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        with suppress(OSError):
            self._control.send(None)
        if hasattr(os, "fork") and self.ended() is not None:
            return
        if hasattr(os, "fork") and self._number is not None:
            with suppress(OSError):
                os.killpg(self._number, signal.SIGKILL)
        with suppress(ValueError):
            self._process.kill()
        self.ended()

    def close(self) -> None:
        """End it where it has not ended, and forget it."""
        self._over = self._over or SessionEnded("the session was closed")
        if self._ended is None:
            self.kill()
        for closed in (self._channel, self._control, self._printed):
            closed.close()
        _forget(self._printed_name)
        with suppress(ValueError):
            self._process.join(_SECONDS_TO_END)
            self._process.close()


def _forget(path: str) -> None:
    """Take a file's name away; whoever has opened it goes on using it, where the platform allows that."""
    with suppress(OSError):
        os.unlink(path)


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
    names = shortened(", ".join(printable(name) for name in sorted(set(ended.left))), _LONGEST_NAMES)
    return f"; it left {len(ended.left)} process{'es' if len(ended.left) > 1 else ''} ({names}) that had to be ended"


def _require_descriptors() -> None:
    """Raise :class:`OSError` where a child cannot be started for want of descriptors.

    A server of children that is called and then hears nothing prints a traceback.
    """
    opened: list[int] = []
    try:
        for _ in range(_PIPES_TO_START):
            opened.extend(os.pipe())
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _begin(control: socket.socket, end: socket.socket, secret: bytes, log: str | Connection, held: Any) -> None:
    """What a child does first: leave Ctrl-C to its parent, end at other signals, print into the log.

    Then it is watched while it serves.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDINGS:
        signal.signal(number, signal.SIG_DFL)
    _redirect_output(log)
    watched(Channel(control, secret), lambda: _serve(Channel(end, secret), held), (end.fileno(), _log))


def _serve(channel: Channel, held: Any) -> None:
    """The child: call what it is asked to, until the pipe closes."""
    with suppress(EOFError, BrokenPipeError):
        while True:
            function, arguments = channel.receive()
            start = _shortened_log()
            try:
                value = function(held, *arguments)
            except EvaltoolsError as error:
                value = error
            flush_printed()
            channel.send(_Answer(value, start, os.fstat(_log).st_size, peak_memory_kb()))


def _shortened_log() -> int:
    """Where the log of this child ends; one that has grown long is begun anew.

    It has a descriptor of its own: native code may have opened a file of its user's as descriptor 1.
    """
    length = os.fstat(_log).st_size
    if length <= _LONGEST_LOG:
        return length
    os.ftruncate(_log, 0)
    return 0


def peak_memory_kb() -> int:
    """Largest resident memory of this process so far, in units of 1024 bytes; 0 where the platform does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // _BYTES_PER_KB if sys.platform == "darwin" else peak


def _redirect_output(log: str | Connection) -> None:
    """Keep what native code prints away from the parent's stdout and stderr, in its log."""
    global _log
    _log = os.open(log, _TO_APPEND) if isinstance(log, str) else os.dup(log.fileno())
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for descriptor in (1, 2):
        os.dup2(_log, descriptor)


@contextmanager
def _found_first(packages: Path | None) -> Iterator[None]:
    """A child that is spawned meanwhile by this thread finds packages in this folder before all others."""
    if packages is None:
        yield
        return
    whole, thread = spawn.get_preparation_data, threading.get_ident()

    def prepared(name: str) -> dict[str, Any]:
        data = whole(name)
        if threading.get_ident() == thread:
            data["sys_path"] = [str(packages), *data["sys_path"]]
        return data

    spawn.get_preparation_data = prepared
    try:
        yield
    finally:
        spawn.get_preparation_data = whole
