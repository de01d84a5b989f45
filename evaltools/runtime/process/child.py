"""A child process with channels to it, and what its native code prints."""

from __future__ import annotations

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
from typing import IO, Any, Final

from evaltools.runtime.memory import MOST_OF_MEMORY
from evaltools.runtime.process.channel import SECRET_BYTES, Channel, WrongMessage
from evaltools.runtime.process.printed import bounded_text
from evaltools.runtime.process.server import Spawned, contexts, imports_not_from_this_folder, interrupts_kept_back
from evaltools.runtime.process.supervisor import Ended, watched
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
_log = 1
"""The descriptor of the log in a child."""
_STARTING: Final = threading.Lock()
"""One start at a time: what it needs of the descriptors that are left, it has."""


class ChildProcess:
    """A child with a channel to it, a bell that it can ring, and what it printed.

    ``serve`` is called in the child with its ends of the channel and of the bell, and ``arguments``. It finds the
    packages in the folder ``packages``, if there is one, before those of this process. ``log_place`` is where in its
    log begins what it printed since it sent that place last.
    """

    channel: Channel
    bell: Channel
    _control: Channel
    _printed: IO[bytes]
    _printed_name: str

    def __init__(self, serve: Callable[..., None], arguments: tuple[Any, ...], packages: Path | None = None) -> None:
        self.log_place = 0
        self._number: int | None = None
        self._ended: Ended | None = None
        self._asking = threading.Lock()
        self._start(serve, arguments, packages)

    def _start(self, serve: Callable[..., None], arguments: tuple[Any, ...], packages: Path | None) -> None:
        """Start it; where the server of children cannot work, or has other packages, as a child of this process.

        Each try has a log of its own: a child whose start failed half-way may have opened that of the first.
        """
        for context in contexts() if packages is None else [Spawned()]:
            try:
                self._start_in(context, serve, arguments, packages)
                return
            except OSError:
                if context.get_start_method() == "spawn":
                    raise

    def _start_in(
        self, context: BaseContext, serve: Callable[..., None], arguments: tuple[Any, ...], packages: Path | None
    ) -> None:
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
            for _ in range(3):
                one, other = socket.socketpair()
                near.append(ours.enter_context(one))
                far.append(theirs.enter_context(other))
                one.setblocking(False)
            given = (serve, *far, secret, log, arguments)
            process = context.Process(target=_begin, args=given, daemon=True)  # type: ignore[attr-defined]
            _require_descriptors()
            with interrupts_kept_back(), imports_not_from_this_folder(), _found_first(packages):
                process.start()
            ours.pop_all()
        self._control = Channel(near[0], secret)
        self.channel, self.bell = (Channel(end, secret, alive=self._control) for end in near[1:])
        self._process, self._printed, self._printed_name = process, printed, name

    def receive(self, channel: Channel, seconds: float) -> Any:
        """Its next message by the channel or the bell; raises what :meth:`Channel.receive` raises.

        It raises :class:`WrongMessage` also where the child prints so much meanwhile that this would fill the disk.
        """
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            try:
                return self._received(channel, max(0.0, min(left, _SECONDS_BETWEEN_LOOKS)))
            except TimeoutError:
                if left <= _SECONDS_BETWEEN_LOOKS:
                    raise
                self._require_few_words()

    def _received(self, channel: Channel, seconds: float) -> Any:
        if self._number is None:
            self._wait_until_begun(seconds)
        return channel.receive(seconds)

    def _wait_until_begun(self, seconds: float) -> None:
        number: int = self._control.receive(seconds)
        for channel in (self.channel, self.bell):
            channel.only_from(number)
        self._number = number

    def _require_few_words(self) -> None:
        printed = os.fstat(self._printed.fileno()).st_size - self.log_place
        if printed > _MOST_PRINTED:
            raise WrongMessage(f"{printed} bytes to stdout and stderr, at most {_MOST_PRINTED} are taken")

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

    def cause_of_death(self) -> str:
        """The signal or exit code of a child that sends nothing any more, and what it left."""
        ended = self.ended()
        return "it closed its pipe" if ended is None else f"{_cause(ended)}{left_behind(ended)}"

    def printed(self) -> str:
        """All that stands in its log, in one line; of a long text its head and its tail."""
        return " ".join(self._text(0).split())

    def printed_since(self) -> str:
        """What it printed from ``log_place`` on; of a long text its head and its tail."""
        return self._text(self.log_place)

    def quote(self) -> str:
        """What it printed last from ``log_place`` on, ready to stand behind a reason."""
        text = last_words(self.printed_since(), _LONGEST_QUOTE)
        return f"; it printed last: {text}" if text else ""

    def _text(self, start: int) -> str:
        try:
            return bounded_text(self._printed, start)
        except (OSError, ValueError):
            return ""

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

    def end(self) -> None:
        """End it where it has not ended, and forget it."""
        if self._ended is None:
            self.kill()
        for closed in (self.channel, self.bell, self._control, self._printed):
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


def _begin(
    serve: Callable[..., None],
    control: socket.socket,
    end: socket.socket,
    bell: socket.socket,
    secret: bytes,
    log: str | Connection,
    arguments: tuple[Any, ...],
) -> None:
    """What a child does first: leave Ctrl-C to its parent, print into the log; then it is watched while it serves."""
    _leave_interrupts_to_parent()
    _redirect_output(log)
    watched(
        Channel(control, secret),
        lambda: serve(Channel(end, secret), Channel(bell, secret), *arguments),
        (end.fileno(), bell.fileno(), _log),
    )


def _leave_interrupts_to_parent() -> None:
    """Ctrl-C on a terminal reaches every process; only the parent acts on it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def log_length() -> int:
    """Where the log of this child ends; one that has grown long is begun anew.

    It has a descriptor of its own: native code may have opened a file of its user's as descriptor 1.
    """
    length = os.fstat(_log).st_size
    if length <= _LONGEST_LOG:
        return length
    os.ftruncate(_log, 0)
    return 0


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
