"""A child process with a pipe to it, and what its native code prints.

Children start from a server process where the platform has one. Unlike those of :mod:`multiprocessing` they never
import the main module, so that a program needs no ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import spawn
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from pathlib import Path
from typing import IO, Any, Final

from evaltools.text import last_words

if sys.platform == "linux":
    import fcntl

_SECONDS_TO_END: Final = 5.0
_LONGEST_QUOTE: Final = 300
_SAFE_PATH: Final = "PYTHONSAFEPATH"
_LONGEST_LOG: Final = 1 << 20
_PIPES_TO_START: Final = 4
_log = 1
"""The descriptor of the log in a child."""
_ENVIRONMENT: Final = threading.Lock()
_MAIN: Final = threading.Lock()
_PRELOADED: Final = ["evaltools.runtime.process.isolated", "evaltools.runtime.interpreter", "evaltools.preprocess"]


class ChildProcess:
    """The process, a pipe to it, a bell that it can ring, and what it printed.

    ``serve`` is called in the child with its ends of the pipe and of the bell, the name of the file for what it prints,
    and ``arguments``. It finds the packages in the folder ``packages``, if there is one, before those of this process.
    """

    def __init__(self, serve: Callable[..., None], arguments: tuple[Any, ...], packages: Path | None = None) -> None:
        descriptor, self._printed_name = tempfile.mkstemp(prefix="evaltools-", suffix=".log")
        self._printed: IO[bytes] = os.fdopen(descriptor, "rb")
        try:
            self.connection, self.bell, self._process = self._started(serve, (self._printed_name, *arguments), packages)
        except OSError:
            self._printed.close()
            self.forget_path()
            raise

    @staticmethod
    def _started(
        serve: Callable[..., None], arguments: tuple[Any, ...], packages: Path | None
    ) -> tuple[Connection, Connection, Any]:
        """A child with its pipe; where the server of children cannot work, or has other packages, a child by itself."""
        for context in _contexts() if packages is None else [_Spawned()]:
            connection, theirs = context.Pipe()
            bell, rope = context.Pipe(duplex=False)
            process = context.Process(  # type: ignore[attr-defined]
                target=serve, args=(theirs, rope, *arguments), daemon=True
            )
            try:
                _require_descriptors()
                with interrupts_kept_back(), _imports_not_from_this_folder(), _found_first(packages):
                    process.start()
                return connection, bell, process
            except OSError:
                connection.close()
                bell.close()
                if context.get_start_method() == "spawn":
                    raise
            finally:
                theirs.close()
                rope.close()
        raise AssertionError("the last context is spawn")

    @property
    def process_id(self) -> int | None:
        """Its number, None once it was ended."""
        try:
            number: int | None = self._process.pid
        except ValueError:
            return None
        return number

    def forget_path(self) -> None:
        """Take the log's name away once the child has opened it."""
        Path(self._printed_name).unlink(missing_ok=True)

    def cause_of_death(self) -> str:
        """The signal or exit code of a child that has closed its pipe."""
        try:
            self._process.join(_SECONDS_TO_END)
            code = self._process.exitcode
        except ValueError:
            return "it was ended"
        if code is None:
            return "it closed its pipe"
        if code >= 0:
            return f"exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"
        return f"{name}, as when memory runs out" if name == "SIGKILL" else name

    def printed(self, start: int = 0) -> str:
        """What native code printed since that place of the log, in one line."""
        return " ".join(self._text(start).split())

    def quote(self, start: int = 0) -> str:
        """What native code printed last since that place of the log, ready to stand behind a reason."""
        text = last_words(self._text(start), _LONGEST_QUOTE)
        return f"; it printed last: {text}" if text else ""

    def _text(self, start: int) -> str:
        try:
            self._printed.seek(start)
            return self._printed.read().decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def kill(self) -> None:
        """End it at once."""
        with suppress(ValueError):
            self._process.kill()
            self._process.join(_SECONDS_TO_END)

    def end(self) -> None:
        """Close the pipe, at which the child leaves; insist if it does not."""
        self.connection.close()
        self.bell.close()
        with suppress(ValueError):
            self._process.join(_SECONDS_TO_END)
            if self._process.is_alive():
                self.kill()
        self._printed.close()
        self.forget_path()
        with suppress(ValueError):
            self._process.close()


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


def begin_child(printed: str) -> None:
    """What a child does first: leave Ctrl-C to its parent, print into the log, end with its parent."""
    leave_interrupts_to_parent()
    _redirect_output(printed)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _end_with_parent_in_native_code()


def leave_interrupts_to_parent() -> None:
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


def server_context() -> BaseContext:
    """How to start a child: from a server that has imported what it needs, or each for itself."""
    return _contexts()[0]


def start_server() -> None:
    """Start the server of children, where there is one, so that it imports what it needs while its caller does so too.

    Without this the first child starts it, and so it does where this fails.
    """
    if server_context().get_start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    with suppress(OSError), interrupts_kept_back(), _imports_not_from_this_folder(), _main_module_hidden():
        forkserver.ensure_running()


def _end_with_parent() -> None:
    """Native code that hangs never looks at the pipe, so that this must notice that the parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end_with_parent_in_native_code() -> None:
    """The thread above cannot run while native code keeps the interpreter's lock, as CompiledModel does.

    Linux can be asked for a signal when the parent's end of a pipe is closed.
    """
    parent = multiprocessing.parent_process()
    if parent is None or sys.platform != "linux":
        return
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(parent.sentinel, fcntl.F_SETSIG, signal.SIGKILL)
    flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)


def _redirect_output(path: str) -> None:
    """Keep what native code prints away from the parent's stdout and stderr."""
    global _log
    _log = os.open(path, os.O_WRONLY | os.O_APPEND)
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
        @staticmethod
        def _Popen(process_obj: Any) -> Any:  # noqa: N802
            with _main_module_hidden():
                return ForkServerProcess._Popen(process_obj)

    class _FromServer(ForkServerContext):
        Process = _ProcessFromServer


@contextmanager
def _imports_not_from_this_folder() -> Iterator[None]:
    """For the server of children, which may be started here: it would find packages in the folder it is started in.

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
def interrupts_kept_back() -> Iterator[None]:
    """What starts meanwhile never sees Ctrl-C, which is the parent's to handle; the parent gets it afterwards.

    The mask is for what starts. It does not keep the signal from this process where a library has threads of its own,
    so that its handler waits too: half of a start would leave a child without its instructions.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

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
