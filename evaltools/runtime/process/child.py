"""A child process with channels to it, and what its native code prints.

Children start from a server process where the platform has one. Unlike those of :mod:`multiprocessing` they never
import the main module, so that a program needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import multiprocessing
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
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from pathlib import Path
from typing import IO, Any, Final

from evaltools.runtime.process.channel import SECRET_BYTES, Channel, WrongMessage
from evaltools.runtime.process.printed import bounded_text
from evaltools.runtime.process.warden import Ended, watched
from evaltools.text import last_words, printable, shortened

_SECONDS_TO_END: Final = 5.0
_SECONDS_TO_START: Final = 60.0
_SECONDS_TO_TELL: Final = 10.0
_LONGEST_QUOTE: Final = 300
_LONGEST_NAMES: Final = 60
_SAFE_PATH: Final = "PYTHONSAFEPATH"
_LONGEST_LOG: Final = 1 << 20
_MOST_PRINTED: Final = 1 << 30
"""Bytes that a child may print until it answers; more would fill the disk."""
_SECONDS_BETWEEN_LOOKS: Final = 1.0
_PIPES_TO_START: Final = 4
_log = 1
"""The descriptor of the log in a child."""
_ENVIRONMENT: Final = threading.Lock()
_MAIN: Final = threading.Lock()
_STARTING: Final = threading.Lock()
"""One start at a time: what it needs of the descriptors that are left, it has."""
_PRELOADED: Final = [
    "evaltools.runtime.process.isolated",
    "evaltools.runtime.interpreter",
    "evaltools.preprocess",
    "evaltools.runtime.process.freeze_imports",
]
"""What the server of children imports, in this order."""


class ChildProcess:
    """A child with a channel to it, a bell that it can ring, and what it printed.

    ``serve`` is called in the child with its ends of the channel and of the bell, and ``arguments``. It finds the
    packages in the folder ``packages``, if there is one, before those of this process. ``log_place`` is where in its
    log begins what it printed since it told of that place last.
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
        for context in _contexts() if packages is None else [_Spawned()]:
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
            near, far = [], []
            for _ in range(3):
                one, other = socket.socketpair()
                near.append(ours.enter_context(one))
                far.append(theirs.enter_context(other))
                one.setblocking(False)
            given = (serve, *far, secret, name, arguments)
            process = context.Process(target=_begin, args=given, daemon=True)  # type: ignore[attr-defined]
            _require_descriptors()
            with _interrupts_kept_back(), _imports_not_from_this_folder(), _found_first(packages):
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
            while not isinstance(told := self._control.receive(seconds), Ended):
                continue
            return told
        except TimeoutError:
            return None
        except (EOFError, OSError, ValueError):
            return self._found_ended()

    def _found_ended(self) -> Ended | None:
        """How its warden ended, where that could not tell."""
        try:
            self._process.join(_SECONDS_TO_END)
            code = self._process.exitcode
        except ValueError:
            code = None
        return None if code is None else Ended(code)

    def cause_of_death(self) -> str:
        """The signal or exit code of a child that sends nothing any more, and what it left."""
        ended = self.ended()
        return "it closed its pipe" if ended is None else f"{_cause(ended.code)}{left_behind(ended)}"

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


def _cause(code: int) -> str:
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
    printed: str,
    arguments: tuple[Any, ...],
) -> None:
    """What a child does first: leave Ctrl-C to its parent, print into the log; then it is watched while it serves.

    Nobody waits for one without a log: its start was given up meanwhile.
    """
    _leave_interrupts_to_parent()
    try:
        _redirect_output(printed)
    except FileNotFoundError:
        return
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


def start_server() -> None:
    """Start the server of children, where there is one, so that it imports what it needs while its caller does so too.

    Without this the first child starts it, and so it does where this fails.
    """
    if _contexts()[0].get_start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    with suppress(OSError), _interrupts_kept_back(), _imports_not_from_this_folder(), _main_module_hidden():
        forkserver.ensure_running()


def _redirect_output(path: str) -> None:
    """Keep what native code prints away from the parent's stdout and stderr, in a file that needs its name no more."""
    global _log
    _log = os.open(path, os.O_WRONLY | os.O_APPEND)
    _forget(path)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for descriptor in (1, 2):
        os.dup2(_log, descriptor)


def _contexts() -> list[BaseContext]:
    """Children come from a server that has imported what they need; where there is none, each imports it anew."""
    contexts: list[BaseContext] = [_Spawned()]
    if "forkserver" in multiprocessing.get_all_start_methods():
        server = _FromServer()
        if sys.version_info >= (3, 11):
            server.set_forkserver_preload(_PRELOADED)
        contexts.insert(0, server)
    return contexts


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """A child that starts meanwhile is not told of the main module, so that it does not run that again."""
    main = vars(sys.modules["__main__"])
    with _MAIN:
        kept = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
        main["__spec__"] = None
        try:
            yield
        finally:
            main.update({"__spec__": None} | kept)


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


class _SpawnedProcess(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the hook of multiprocessing by which a process starts
        with _main_module_hidden():
            return SpawnProcess._Popen(process_obj)


class _Spawned(SpawnContext):
    Process = _SpawnedProcess


if sys.platform != "win32":
    from multiprocessing.context import ForkServerContext, ForkServerProcess

    class _ProcessFromServer(ForkServerProcess):
        """A process that the server starts, and whose end the server tells."""

        @staticmethod
        def _Popen(process_obj: Any) -> Any:  # noqa: N802
            try:
                with _main_module_hidden(), _server_ended_after(_SECONDS_TO_START):
                    return ForkServerProcess._Popen(process_obj)
            except EOFError as error:
                raise OSError("the server of children ended") from error

        def join(self, timeout: float | None = None) -> None:
            """Wait until it has ended. Without ``timeout``, as at our exit, only for a server that tells of ends."""
            if timeout is None:
                super().join(_SECONDS_TO_TELL)
                if self.exitcode is None:
                    _end_server()
            super().join(timeout)

    class _FromServer(ForkServerContext):
        Process = _ProcessFromServer


@contextmanager
def _server_ended_after(seconds: float) -> Iterator[None]:
    """End the server of children where what is done meanwhile takes longer: who waits for its answer goes on then.

    It is there, but stopped. The next child starts another server.
    """
    timer = threading.Timer(seconds, _end_server)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError as error:  # for want of memory or of processes
        raise OSError(str(error)) from error
    try:
        yield
    finally:
        timer.cancel()


def _end_server() -> None:
    from multiprocessing import forkserver

    process_id = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    if process_id is not None:
        os.kill(process_id, signal.SIGKILL)


@contextmanager
def _imports_not_from_this_folder() -> Iterator[None]:
    """For the server of children and its like, which may be started here: they would import from the current folder.

    A checkout of evaltools there is not the evaltools that runs. Python 3.10 cannot be told so; its server imports
    nothing beforehand. The environment is the whole process's, so that of threads that start children at the same time
    each waits for the other: what one sets is never what another restores.
    """
    with _ENVIRONMENT:
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before


@contextmanager
def _interrupts_kept_back() -> Iterator[None]:
    """What starts meanwhile never sees Ctrl-C, which is the parent's to handle; the parent gets it afterwards.

    The mask is for what starts. It does not keep the signal from this process where a library has threads of its own,
    so that its handler waits too: half of a start would leave a child without its instructions.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    with _imports_not_from_this_folder():
        resource_tracker.ensure_running()  # before the mask: its start ends with letting SIGINT through
    kept: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    waits = handler is not None and threading.current_thread() is threading.main_thread()
    if waits:
        signal.signal(signal.SIGINT, lambda number, _frame: kept.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if waits:
            signal.signal(signal.SIGINT, handler)
        if kept:
            signal.raise_signal(signal.SIGINT)
