"""How children start: from a server process where the platform has one, else each as a new Python.

Unlike those of :mod:`multiprocessing` they never import the main module, so that a program needs no
``if __name__ == "__main__"``.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import util
from multiprocessing.context import BaseContext, SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, Final, NoReturn

from evaltools.runtime.process.supervisor import close_all_but
from evaltools.signals import deferred_interrupt

_SAFE_PATH: Final = "PYTHONSAFEPATH"
_FORGET: Final = "import sys; sys.path[:1] = filter(None, sys.path[:1])"
_SPAWN: Final = util.spawnv_passfds
_STATUS: Final = "/proc/self/status"
_MOST_MEMORY_KB: Final = 64 << 10
"""One and a half times what a command has that has imported what children need."""
_ENVIRONMENT: Final = threading.Lock()
_MAIN: Final = threading.Lock()
_NEEDED: Final = ("evaltools.runtime.process.isolated", "evaltools.runtime.interpreter", "evaltools.preprocess")
"""What children need, in the order in which it is imported."""
_FREEZE: Final = "evaltools.runtime.process.freeze_imports"


def contexts() -> list[BaseContext]:
    """Children come from a server that has imported what they need; where there is none, each imports it anew."""
    found: list[BaseContext] = [Spawned()]
    if "forkserver" in multiprocessing.get_all_start_methods():
        server = _FromServer()
        server.set_forkserver_preload([*_NEEDED, _FREEZE])
        found.insert(0, server)
    return found


@contextmanager
def _main_module_hidden() -> Iterator[None]:
    """A child that starts meanwhile does not get the main module, so that it does not run that again."""
    main = vars(sys.modules["__main__"])
    with _MAIN:
        kept = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
        main["__spec__"] = None
        try:
            yield
        finally:
            main.update({"__spec__": None} | kept)


def start_server() -> None:
    """Start the server of children, where there is one, for a command that is about to need it.

    It is a copy of this process, with which it shares what both have imported. Where this process has other threads,
    which a copy would lack, or much memory, or where this was not called, the first child starts it as a new Python.
    """
    if contexts()[0].get_start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    for name in _NEEDED:
        importlib.import_module(name)
    if _can_be_copied():
        with suppress(OSError), _started_by(_copy), interrupts_kept_back():
            forkserver.ensure_running()


def _can_be_copied() -> bool:
    """Whether this process has one thread, and little memory: what it has is counted as that of each child, too."""
    try:
        facts = dict(line.split(":", 1) for line in Path(_STATUS).read_text().splitlines())
        return int(facts["Threads"]) == 1 and int(facts["VmRSS"].split()[0]) <= _MOST_MEMORY_KB
    except (OSError, KeyError):  # the platform does not say
        return False


@contextmanager
def _started_by(start: Callable[[bytes, Sequence[Any], Sequence[int]], int]) -> Iterator[None]:
    """Where :mod:`multiprocessing` starts a Python meanwhile, ``start`` is called for it."""
    before = util.spawnv_passfds
    util.spawnv_passfds = start  # type: ignore[assignment]
    try:
        yield
    finally:
        util.spawnv_passfds = before


def _copy(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:  # noqa: ARG001 - as multiprocessing calls it
    """A copy of this process, which runs the program of that Python."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    child = os.fork()
    if not child:
        _serve(args[-1], passfds)
    return child


def _serve(program: str, needed: Iterable[int]) -> NoReturn:
    """The copy: it has only the ``needed`` descriptors and 0 to 2, holds no lock, and never returns."""
    from multiprocessing import forkserver

    code = 1
    try:
        close_all_but(needed)
        forkserver._forkserver._lock = threading.Lock()  # type: ignore[attr-defined]
        importlib.import_module(_FREEZE)
        with suppress(SystemExit):
            exec(program, {})
        code = 0
    except OSError:  # as where no process can be had: who waits for a child hears that the server has ended
        pass
    except BaseException:  # the first child then starts another server
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(code)


class _SpawnedProcess(SpawnProcess):
    @staticmethod
    def _Popen(process_obj: Any) -> Any:  # noqa: N802 - the hook of multiprocessing by which a process starts
        with _main_module_hidden():
            return SpawnProcess._Popen(process_obj)


class Spawned(SpawnContext):
    """Each child is a new Python."""

    Process = _SpawnedProcess


if sys.platform != "win32":
    from multiprocessing.context import ForkServerContext, ForkServerProcess

    class _ProcessFromServer(ForkServerProcess):
        """A process that the server starts."""

        @staticmethod
        def _Popen(process_obj: Any) -> Any:  # noqa: N802
            try:
                with _main_module_hidden():
                    return ForkServerProcess._Popen(process_obj)
            except EOFError as error:
                raise OSError("the server of children ended") from error

    class _FromServer(ForkServerContext):
        Process = _ProcessFromServer


@contextmanager
def imports_not_from_this_folder() -> Iterator[None]:
    """For the server of children and its like, which may be started here: they would import from the current folder.

    A checkout of evaltools there is not the evaltools that runs. The environment is the whole process's, so that of
    threads that start children at the same time each waits for the other: what one sets is never what another restores.
    Python 3.10 does not read it; it has another program.
    """
    with _ENVIRONMENT, _started_by(_without_this_folder) if sys.version_info < (3, 11) else nullcontext():
        before = os.environ.get(_SAFE_PATH)
        os.environ[_SAFE_PATH] = "1"
        try:
            yield
        finally:
            if before is None:
                del os.environ[_SAFE_PATH]
            else:
                os.environ[_SAFE_PATH] = before


def _without_this_folder(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """The same Python, whose program first forgets the current folder."""
    program = args.index("-c") + 1
    words = [*args[:program], f"{_FORGET}; {args[program]}", *args[program + 1 :]]
    return _SPAWN(path, words, passfds)


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

    with imports_not_from_this_folder():
        resource_tracker.ensure_running()  # before the mask: its start ends with letting SIGINT through
    with deferred_interrupt():
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
