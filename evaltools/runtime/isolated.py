"""Sessions in child processes: native code that crashes, aborts or hangs takes one configuration with it, not the run.

The child holds the real session. Arrays travel through shared memory, everything else through a pipe; times are taken
in the child. What native code prints goes to a file, whose end is quoted when the child dies.

Children start from a server process where the platform has one. As with :mod:`multiprocessing`, a program that uses
this must guard its main module with ``if __name__ == "__main__"``.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import IO, Any, Final

from evaltools.configuration import Configuration
from evaltools.delegates import Delegate
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError
from evaltools.model import ModelFile
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array, Delegation, Inference, RuntimeFacts, Session, TensorSpec
from evaltools.runtime.shared_arrays import Parcel, SharedArrays

_SECONDS_TO_END: Final = 5.0
_LONGEST_QUOTE: Final = 300
_LONGEST_WAIT_S: Final = 2_000_000.0
"""A little less than what ``poll`` can wait for."""
Opener = Callable[[ModelFile, Configuration], Session]


@dataclass(frozen=True)
class _Ready:
    """What the child says once its session is open."""

    facts: RuntimeFacts
    delegation: Delegation
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class _Done:
    """What the child says after a run."""

    outputs: Parcel
    invokes_us: tuple[int, ...]
    read_us: int


def open_isolated(
    model: ModelFile, configuration: Configuration, timeout_s: float = 600.0, opener: Opener = open_session
) -> IsolatedSession:
    """Open a session in a child process of its own.

    ``timeout_s`` limits the opening and every run. Raises what the opening raises, and
    :class:`ConfigurationUnavailable` where the child dies of it or does not answer in time.
    """
    requested = configuration.delegates.requested
    try:
        child = _Child(model, configuration, opener)
    except OSError as error:
        raise ConfigurationUnavailable(f"no process of its own could be started for it: {error}") from error
    return IsolatedSession(child, timeout_s, requested[0] if requested else None)


class IsolatedSession:
    """A session whose work happens in a child process."""

    def __init__(self, child: _Child, timeout_s: float, suspect: Delegate | None) -> None:
        self._child = child
        self._timeout_s = min(timeout_s, _LONGEST_WAIT_S)
        self._ended: str | None = None
        try:
            ready = self._answer("while the model was loaded")
        except InferenceError as error:
            self.close()
            raise ConfigurationUnavailable(str(error), suspect) from None
        except BaseException:
            self.close()
            raise
        assert isinstance(ready, _Ready)
        child.forget_path()
        self.facts: Final = ready.facts
        self.delegation: Final = ready.delegation
        self.inputs: Final = ready.inputs
        self.outputs: Final = ready.outputs
        self._memory = self._share_memory(ready)

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run in the child; raises :class:`InferenceError`, also for a child that has died or does not answer."""
        (outcome,) = self.run_block([inputs], invocations)
        if isinstance(outcome, InferenceError):
            raise outcome
        return outcome

    @property
    def longest_block(self) -> int:
        """How many runs :meth:`run_block` takes at most."""
        return self._memory.slots

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other without waiting for this process in between; an error takes the place of its run."""
        outcomes: list[Inference | InferenceError] = []
        try:
            self._send([self._memory.put_inputs(slot, inputs) for slot, inputs in enumerate(block)], invocations)
            while len(outcomes) < len(block):
                outcomes.append(self._outcome())
        except InferenceError as error:
            return outcomes + [error] * (len(block) - len(outcomes))
        except BaseException:
            self._ended = "it was interrupted during a run"
            raise
        return outcomes

    def _send(self, block: Sequence[Parcel], invocations: int) -> None:
        if self._ended is not None:
            raise InferenceError(self._ended)
        try:
            self._child.connection.send((block, invocations))
        except OSError:
            self._ended = self._obituary("before a run")
            raise InferenceError(self._ended) from None

    def _outcome(self) -> Inference | InferenceError:
        """The next run's; raises :class:`InferenceError` where there will be no other."""
        try:
            done = self._answer("during a run")
        except InferenceError as error:
            if self._ended is not None:
                raise
            return error
        assert isinstance(done, _Done)
        return Inference(self._memory.outputs(done.outputs), done.invokes_us, done.read_us)

    def close(self) -> None:
        """End the child."""
        self._ended = self._ended or "the session was closed"
        self._child.end()

    def _share_memory(self, ready: _Ready) -> SharedArrays:
        try:
            memory = SharedArrays.create(ready.inputs, ready.outputs)
        except OSError as error:
            self.close()
            raise ConfigurationUnavailable(f"no memory for its inputs and outputs: {error.strerror}") from error
        try:
            self._child.connection.send(memory.path)
            self._answer("after the model was loaded")
        except (OSError, InferenceError) as error:
            self.close()
            raise ConfigurationUnavailable(str(error)) from error
        finally:
            memory.forget_path()
        return memory

    def _answer(self, moment: str) -> Any:
        connection = self._child.connection
        try:
            if not connection.poll(self._timeout_s):
                self._child.kill()
                self._ended = f"no answer within {self._timeout_s:g} s {moment}{self._child.quote()}; it was ended"
                raise InferenceError(self._ended)
            answer = connection.recv()
        except (EOFError, OSError):
            self._ended = self._obituary(moment)
            raise InferenceError(self._ended) from None
        if isinstance(answer, EvaltoolsError):
            raise answer
        return answer

    def _obituary(self, moment: str) -> str:
        return f"the process of this configuration died {moment} ({self._child.cause_of_death()}){self._child.quote()}"


class _Child:
    """The process, its pipe, and what it printed."""

    def __init__(self, model: ModelFile, configuration: Configuration, opener: Opener) -> None:
        descriptor, self._printed_name = tempfile.mkstemp(prefix="evaltools-", suffix=".log")
        self._printed: IO[bytes] = os.fdopen(descriptor, "rb")
        try:
            self.connection, self._process = self._started((self._printed_name, model, configuration, opener))
        except OSError:
            self._printed.close()
            self.forget_path()
            raise

    @staticmethod
    def _started(arguments: tuple[Any, ...]) -> tuple[Connection, Any]:
        """A child with its pipe; where the server of children cannot work, a child of its own."""
        for context in _contexts():
            connection, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, *arguments), daemon=True)  # type: ignore[attr-defined]
            try:
                with _interrupts_kept_back():
                    process.start()
                return connection, process
            except OSError:
                connection.close()
                if context.get_start_method() == "spawn":
                    raise
            finally:
                theirs.close()
        raise AssertionError("the last context is spawn")

    def forget_path(self) -> None:
        """Take the log's name away once the child has opened it."""
        Path(self._printed_name).unlink(missing_ok=True)

    def cause_of_death(self) -> str:
        """The signal or exit code of a child that has closed its pipe."""
        self._process.join(_SECONDS_TO_END)
        code = self._process.exitcode
        if code is None:
            return "it closed its pipe"
        if code >= 0:
            return f"exit code {code}"
        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def quote(self) -> str:
        """The end of what native code printed, ready to stand behind a reason."""
        try:
            self._printed.seek(0)
            text = " ".join(self._printed.read().decode("utf-8", "replace").split())
        except (OSError, ValueError):
            return ""
        return f"; it printed last: {text[-_LONGEST_QUOTE:]}" if text else ""

    def kill(self) -> None:
        self._process.kill()
        self._process.join(_SECONDS_TO_END)

    def end(self) -> None:
        """Close the pipe, at which the child leaves; insist if it does not."""
        self.connection.close()
        self._process.join(_SECONDS_TO_END)
        if self._process.is_alive():
            self.kill()
        self._printed.close()
        self.forget_path()


def _contexts() -> list[BaseContext]:
    """Children come from a server that has imported what they need; where there is none, each imports it anew."""
    contexts: list[BaseContext] = [multiprocessing.get_context("spawn")]
    if "forkserver" in multiprocessing.get_all_start_methods():
        server = multiprocessing.get_context("forkserver")
        server.set_forkserver_preload(["evaltools.runtime.isolated", "evaltools.runtime.interpreter"])
        contexts.insert(0, server)
    return contexts


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


def _serve(
    connection: Connection, printed: str, model: ModelFile, configuration: Configuration, opener: Opener
) -> None:
    """The life of a child: open, say so, run until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _redirect_output(printed)
    try:
        session = opener(model, configuration)
    except EvaltoolsError as error:
        connection.send(error)
        return
    try:
        connection.send(_Ready(session.facts, session.delegation, session.inputs, session.outputs))
        memory = SharedArrays.attach(connection.recv(), session.inputs, session.outputs)
        connection.send(True)
        while True:
            block, invocations = connection.recv()
            for slot, parcel in enumerate(block):
                connection.send(_run(session, memory, slot, parcel, invocations))
    except (EOFError, OSError):
        return


def _run(session: Session, memory: SharedArrays, slot: int, parcel: Parcel, invocations: int) -> _Done | EvaltoolsError:
    try:
        inference = session.run(memory.inputs(parcel), invocations)
    except EvaltoolsError as error:
        return error
    return _Done(memory.put_outputs(slot, inference.outputs), inference.invokes_us, inference.read_us)


def _redirect_output(path: str) -> None:
    """Keep what native code prints away from the parent's stdout and stderr."""
    target = os.open(path, os.O_WRONLY | os.O_APPEND)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    for descriptor in (1, 2):
        os.dup2(target, descriptor)
    os.close(target)
