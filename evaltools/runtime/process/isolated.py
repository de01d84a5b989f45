"""Sessions in child processes: native code that crashes, aborts or hangs takes one configuration with it, not the run.

The child holds the real session. Arrays travel through shared memory, everything else through a pipe; times are taken
in the child. What native code prints goes to a file, whose end is quoted when the child dies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any, Final, TypeVar

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, SessionEnded
from evaltools.model import ModelFile
from evaltools.runtime.process.child import ChildProcess, begin_child, log_length
from evaltools.runtime.process.environments import packages_of
from evaltools.runtime.process.memory import peak_memory_kb
from evaltools.runtime.process.shared_arrays import Parcel, SharedArrays
from evaltools.runtime.registry import open_session
from evaltools.runtime.session import Array, Delegation, Inference, RuntimeFacts, Session, TensorSpec

_LONGEST_WAIT_S: Final = 2_000_000.0
"""A little less than what ``poll`` can wait for."""
_LONGEST_MESSAGES: Final = 2000
_SECONDS_BETWEEN_BELLS: Final = 0.05
_SECONDS_FOR_REST: Final = 1.0
Opener = Callable[[ModelFile, Configuration], Session]
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class _Ready:
    """The child's message once its session is open."""

    facts: RuntimeFacts
    delegation: Delegation
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    log_length: int


@dataclass(frozen=True)
class _Call:
    """A function that the child calls with its session, beside runs."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def answer(self, session: Session) -> Any:
        """The value that the function returned, or the error that it raised."""
        try:
            return self.function(session, *self.arguments)
        except EvaltoolsError as error:
            return error


@dataclass(frozen=True)
class _RunDone:
    """The child's message after a run."""

    outputs: Parcel
    invokes_us: tuple[float, ...]
    read_us: float
    log_length: int
    peak_memory_kb: int


def open_isolated(
    model: ModelFile,
    configuration: Configuration,
    timeout_s: float = 600.0,
    opener: Opener = open_session,
    timeout_flag: str = "",
) -> IsolatedSession:
    """Open a session in a child process of its own.

    ``timeout_s`` limits the opening and every run; the user's ``timeout_flag`` sets it, if there is one. Raises what
    the opening raises, and :class:`ConfigurationUnavailable` where the child dies of it or does not answer in time.
    """
    requested = configuration.delegates.requested
    try:
        child = ChildProcess(_serve, (model, configuration, opener), packages_of(configuration))
    except OSError as error:
        raise ConfigurationUnavailable(f"no process of its own could be started for it: {error}") from error
    return IsolatedSession(child, timeout_s, requested[0].name if requested else "", timeout_flag)


class IsolatedSession:
    """A session whose work happens in a child process."""

    def __init__(self, child: ChildProcess, timeout_s: float, suspect: str, timeout_flag: str = "") -> None:
        self._child = child
        self._timeout_s = min(timeout_s, _LONGEST_WAIT_S)
        self._timeout_flag = timeout_flag
        self._may_be_software = suspect == GPU.name
        self._ended: SessionEnded | None = None
        self._running = False
        self._hung: SessionEnded | None = None
        self._announced = 0
        self._memory: SharedArrays | None = None
        self._log_place = 0
        self.peak_memory_kb = 0
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
        self._log_place = ready.log_length
        self.facts: Final = replace(ready.facts, messages=child.printed()[:_LONGEST_MESSAGES])
        self.delegation: Final = ready.delegation
        self._may_be_software &= any(taken.is_cpu for taken in ready.delegation.delegates)
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
    def process_id(self) -> int | None:
        """The child's number, None once it was ended."""
        return self._child.process_id

    @property
    def longest_block(self) -> int:
        """How many runs :meth:`run_block` takes at most."""
        return self._arrays.slots

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other without waiting for this process in between; an error takes the place of its run."""
        outcomes: list[Inference | InferenceError] = []
        self._running = True
        try:
            if self._ended is not None:
                raise self._ended
            self._send([self._arrays.put_inputs(slot, inputs) for slot, inputs in enumerate(block)], invocations)
            while len(outcomes) < len(block):
                outcomes.append(self._outcome())
        except InferenceError as error:
            return outcomes + [error] * (len(block) - len(outcomes))
        except BaseException:
            self._ended = SessionEnded("it was interrupted during a run")
            raise
        finally:
            self._running = False
        return outcomes

    def _send(self, block: Sequence[Parcel], invocations: int) -> None:
        try:
            self._child.connection.send((block, invocations))
        except OSError:
            self._ended = self._obituary("before a run")
            raise self._ended from None

    def _outcome(self) -> Inference | InferenceError:
        """The next run's outcome; raises :class:`SessionEnded` where no more will come."""
        try:
            if not self._announced and not self._wait_for_bell() and not self._child.connection.poll(_SECONDS_FOR_REST):
                raise self._end()
            answer = self._child.connection.recv()
        except (EOFError, OSError):
            raise self._end() from None
        self._announced = max(0, self._announced - 1)
        if isinstance(answer, InferenceError):
            return answer
        if isinstance(answer, EvaltoolsError):
            raise answer
        self._log_place = answer.log_length
        self.peak_memory_kb = answer.peak_memory_kb
        return Inference(self._arrays.outputs(answer.outputs), answer.invokes_us, answer.read_us)

    def _wait_for_bell(self) -> bool:
        """Whether the bell rings in time. A child that died may have left answers without ringing."""
        try:
            if self._child.bell.poll(self._timeout_s):
                self._announced = int.from_bytes(self._child.bell.recv_bytes(), "little")
                return True
            self._hung = self._given_up("during a run", self._timeout_s)
        except (EOFError, OSError):
            pass
        return False

    def _end(self) -> SessionEnded:
        self._ended = self._hung or self._obituary("during a run")
        return self._ended

    def call(self, function: Callable[..., Returned], *arguments: Any, timeout_s: float = 0.0) -> Returned:
        """Call ``function`` with the child's session and ``arguments``, all of which must travel.

        ``timeout_s`` is what the call may take beyond the time-out of a run. Raises :class:`InferenceError` also for a
        child that has died or does not answer.
        """
        if self._ended is not None:
            raise self._ended
        try:
            self._child.connection.send(_Call(function, arguments))
        except OSError:
            self._ended = self._obituary("before a call")
            raise self._ended from None
        self._running = True
        try:
            returned: Returned = self._answer("during a call", timeout_s)
        finally:
            self._running = False
        return returned

    def close(self) -> None:
        """End the child, at once where another thread waits for it."""
        self._ended = self._ended or SessionEnded("the session was closed")
        if self._running:
            self._child.kill()
        self._child.end()
        if self._memory is not None:
            self._memory.close()

    @property
    def _arrays(self) -> SharedArrays:
        assert self._memory is not None
        return self._memory

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

    def _answer(self, moment: str, more_s: float = 0.0) -> Any:
        connection = self._child.connection
        try:
            seconds = min(self._timeout_s + more_s, _LONGEST_WAIT_S)
            if not connection.poll(seconds):
                self._ended = self._given_up(moment, seconds)
                raise self._ended
            answer = connection.recv()
        except (EOFError, OSError):
            self._ended = self._obituary(moment)
            raise self._ended from None
        if isinstance(answer, EvaltoolsError):
            raise answer
        return answer

    def _given_up(self, moment: str, seconds: float) -> SessionEnded:
        self._child.kill()
        quote = self._child.quote(self._log_place)
        more = f"; {self._timeout_flag}=SECONDS allows more" if self._timeout_flag else ""
        slow = "; a GPU in software is slow" if self._may_be_software else ""
        return SessionEnded(f"no answer within {seconds:g} s {moment}{quote}; it was ended{more}{slow}", hung=True)

    def _obituary(self, moment: str) -> SessionEnded:
        cause = self._child.cause_of_death()
        quote = self._child.quote(self._log_place)
        return SessionEnded(f"the process of this configuration died {moment} ({cause}){quote}")


def _serve(
    connection: Connection,
    bell: Connection,
    printed: str,
    model: ModelFile,
    configuration: Configuration,
    opener: Opener,
) -> None:
    """The child process: open the session, report that, and run until the pipe closes."""
    begin_child(printed)
    try:
        session = opener(model, configuration)
    except EvaltoolsError as error:
        connection.send(error)
        return
    try:
        facts = (session.facts, session.delegation, session.inputs, session.outputs)
        connection.send(_Ready(*facts, log_length()))
        memory = SharedArrays.attach(connection.recv(), session.inputs, session.outputs)
        connection.send(True)
        while True:
            order = connection.recv()
            if isinstance(order, _Call):
                connection.send(order.answer(session))
                continue
            block, invocations = order
            answers = (_run(session, memory, slot, parcel, invocations) for slot, parcel in enumerate(block))
            _send_all(connection, bell, answers, len(block))
    except (EOFError, OSError):
        return


def _send_all(
    connection: Connection, bell: Connection, answers: Iterable[_RunDone | EvaltoolsError], count: int
) -> None:
    """Send each answer at once, so that none is lost, but wake the parent only now and then, for it needs a core.

    The bell says how many answers may be taken. It rings before those that may fill the pipe.
    """
    silent, rung_at = 0, time.monotonic()
    for number, answer in enumerate(answers, 1):
        silent += 1
        fills_pipe = isinstance(answer, _RunDone) and not answer.outputs.is_in_memory
        if not fills_pipe:
            connection.send(answer)
        if fills_pipe or number == count or time.monotonic() - rung_at > _SECONDS_BETWEEN_BELLS:
            bell.send_bytes(silent.to_bytes(4, "little"))
            silent, rung_at = 0, time.monotonic()
        if fills_pipe:
            connection.send(answer)


def _run(
    session: Session, memory: SharedArrays, slot: int, parcel: Parcel, invocations: int
) -> _RunDone | EvaltoolsError:
    try:
        inference = session.run(memory.inputs(parcel), invocations)
    except EvaltoolsError as error:
        return error
    outputs = memory.put_outputs(slot, inference.outputs)
    return _RunDone(outputs, inference.invokes_us, inference.read_us, log_length(), peak_memory_kb())
