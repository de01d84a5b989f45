"""Sessions in child processes: native code that crashes, aborts or hangs takes one configuration with it, not the run.

The child holds the real session. Arrays travel through shared memory, everything else through a pipe; times are taken
in the child. What native code prints goes to a file, whose end is quoted when the child dies.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates.gpu import GPU
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, SessionEnded
from evaltools.model import ModelFile
from evaltools.runtime.process.channel import Channel, WrongMessage
from evaltools.runtime.process.child import ChildProcess, left_behind, log_length
from evaltools.runtime.process.environments import packages_of
from evaltools.runtime.process.shared_arrays import Parcel, SharedArrays
from evaltools.runtime.registry import Open, open_session
from evaltools.runtime.session import Array, Crashes, Delegation, Inference, RuntimeFacts, Session, TensorSpec

_LONGEST_WAIT_S: Final = 2_000_000.0
_LONG_S: Final = 60.0
_LOG: Final = logging.getLogger("evaltools")
"""A little less than what ``poll`` can wait for."""
_LONGEST_MESSAGES: Final = 2000
_SECONDS_TO_FREE: Final = 60.0
_FREEING: Final = "while its model and delegates were released"
_LEAVING: Final = "when it had released its model and delegates, at its exit"
_SECONDS_BETWEEN_BELLS: Final = 0.2
"""A block takes about as long. Its parent may give a run up so much too early, since it waits from the last bell on."""
Returned = TypeVar("Returned")
_BYTES_PER_KB: Final = 1024


class _Ready(Struct, frozen=True):
    """The child's message once its session is open."""

    facts: RuntimeFacts
    delegation: Delegation
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    log_length: int
    load_ms: float


class _Call(Struct, frozen=True):
    """A function that the child calls with its session, beside runs."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def answer(self, session: Session) -> Any:
        """The value that the function returned, or the error that it raised."""
        try:
            return self.function(session, *self.arguments)
        except EvaltoolsError as error:
            return error


class _Free(Struct, frozen=True):
    """The parent's last order: release the session, and end."""


class _RunDone(Struct, frozen=True):
    """The child's message after a run."""

    outputs: Parcel
    invokes_us: tuple[float, ...]
    read_us: float
    log_length: int
    peak_memory_kb: int
    largest: float = 0.0


def open_isolated(
    model: ModelFile,
    configuration: Configuration,
    timeout_s: float = 600.0,
    opener: Open = open_session,
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
        self._announced = 0
        self._memory: SharedArrays | None = None
        self.peak_memory_kb = 0
        self.not_clean = ""
        self.crashes = Crashes()
        try:
            ready = self._answer("while the model was loaded")
        except InferenceError as error:
            self.close()
            raise ConfigurationUnavailable(str(error), suspect, crashed=isinstance(error, SessionEnded)) from None
        except BaseException:
            self._child.end()
            raise
        assert isinstance(ready, _Ready)
        child.log_place = ready.log_length
        messages = child.printed()[:_LONGEST_MESSAGES]
        self.facts: Final = replace(ready.facts, messages=messages, load_ms=ready.load_ms)
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
            parcels = [self._arrays.put_inputs(slot, inputs) for slot, inputs in enumerate(block)]
            self._send((parcels, invocations), "before a run")
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

    def _send(self, message: Any, moment: str) -> None:
        """Raises :class:`SessionEnded` where the child takes it no more."""
        try:
            self._child.channel.send(message, self._timeout_s)
        except TimeoutError:
            raise self._crashed(self._given_up(moment, self._timeout_s)) from None
        except OSError:
            raise self._crashed(self._crash_error(moment)) from None

    def _outcome(self) -> Inference | InferenceError:
        """The next run's outcome; raises :class:`SessionEnded` where no more will come."""
        if not self._announced and self._ended is None:
            with suppress(SessionEnded):  # what it answered before its end comes first
                self._announced = self._received(self._child.bell, "during a run", self._timeout_s)
        if self._ended is None:
            answer = self._received(self._child.channel, "during a run", self._timeout_s)
        else:
            answer = self._last_answer(self._ended)
        self._announced = max(0, self._announced - 1)
        if isinstance(answer, InferenceError):
            return answer
        if isinstance(answer, EvaltoolsError):
            raise answer
        self._child.log_place = answer.log_length
        self.peak_memory_kb = answer.peak_memory_kb
        return Inference(self._arrays.outputs(answer.outputs), answer.invokes_us, answer.read_us, answer.largest)

    def _last_answer(self, ended: SessionEnded) -> Any:
        """An answer that a child sent before it ended; where there is none, the reason of its end is raised."""
        try:
            return self._child.receive(self._child.channel, 0)
        except (WrongMessage, EOFError, OSError, ValueError):
            raise ended from None

    def call(self, function: Callable[..., Returned], *arguments: Any, timeout_s: float = 0.0) -> Returned:
        """Call ``function`` with the child's session and ``arguments``, all of which must travel.

        ``timeout_s`` is what the call may take beyond the time-out of a run. Raises :class:`InferenceError` also for a
        child that has died or does not answer.
        """
        if self._ended is not None:
            raise self._ended
        self._send(_Call(function, arguments), "before a call")
        self._running = True
        try:
            returned: Returned = self._answer("during a call", timeout_s)
        finally:
            self._running = False
        return returned

    def close(self) -> None:
        """Release the model and its delegates, and end the child, at once where another thread waits for it.

        What goes wrong meanwhile stands in ``not_clean`` from then on; a crash counts in ``crashes``.
        """
        had_ended = self._ended is not None
        self._ended = self._ended or SessionEnded("the session was closed")
        try:
            if not had_ended and not self._running:
                self.not_clean = self._freed()
        finally:
            self._child.end()
            if self._memory is not None:
                self._memory.close()

    def _freed(self) -> str:
        """Have the child release its session and end; what went wrong, empty where nothing did."""
        seconds = min(self._timeout_s, _SECONDS_TO_FREE)
        try:
            self._send(_Free(), _FREEING)
            self._received(self._child.channel, _FREEING, seconds)
            ended = self._child.ended(seconds)
            if ended is None:
                raise self._given_up(_LEAVING, seconds)
            if ended.code:
                raise self._crash_error(_LEAVING)
        except SessionEnded as error:
            self.crashes = Crashes(1, str(error))
            return str(error)
        try:
            self._child.receive(self._child.channel, 0)
        except WrongMessage as error:
            return f"the process of this configuration sent {error} ({_LEAVING})"
        except (EOFError, OSError):
            pass
        return left_behind(ended).removeprefix("; ")

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
            self._send(memory.path, "after the model was loaded")
            self._answer("after the model was loaded")
        except InferenceError as error:
            self.close()
            raise ConfigurationUnavailable(str(error), crashed=isinstance(error, SessionEnded)) from error
        finally:
            memory.forget_path()
        return memory

    def _answer(self, moment: str, more_s: float = 0.0) -> Any:
        answer = self._received(self._child.channel, moment, min(self._timeout_s + more_s, _LONGEST_WAIT_S))
        if isinstance(answer, EvaltoolsError):
            raise answer
        return answer

    def _received(self, channel: Channel, moment: str, seconds: float) -> Any:
        """The child's next message; raises :class:`SessionEnded` where none comes."""
        try:
            return self._awaited(channel, moment, seconds)
        except TimeoutError:
            ended = self._given_up(moment, seconds)
        except WrongMessage as error:
            self._child.kill()
            said = f"the process of this configuration sent {error} ({moment}); it was ended"
            ended = SessionEnded(said + self._child.quote())
        except (EOFError, OSError, ValueError):
            ended = self._crash_error(moment)
        raise self._crashed(ended)

    def _awaited(self, channel: Channel, moment: str, seconds: float) -> Any:
        """The next message; where it takes long, a warning says so while there is time left."""
        if seconds <= 2 * _LONG_S:
            return self._child.receive(channel, seconds)
        try:
            return self._child.receive(channel, _LONG_S)
        except TimeoutError:
            flag = f" ({self._timeout_flag})" if self._timeout_flag else ""
            _LOG.warning("no answer for %g s %s; the process is ended after %g s%s", _LONG_S, moment, seconds, flag)
            return self._child.receive(channel, seconds - _LONG_S)

    def _crashed(self, ended: SessionEnded) -> SessionEnded:
        """Count an end as a crash, unless this process had ended the session before; returns it."""
        if self._ended is None:
            self.crashes = Crashes(1, str(ended))
        self._ended = ended
        return ended

    def _given_up(self, moment: str, seconds: float) -> SessionEnded:
        self._child.kill()
        quote = self._child.quote()
        more = f"; {self._timeout_flag}=SECONDS allows more" if self._timeout_flag else ""
        slow = "; a GPU in software is slow" if self._may_be_software else ""
        return SessionEnded(f"no answer within {seconds:g} s {moment}{quote}; it was ended{more}{slow}", hung=True)

    def _crash_error(self, moment: str) -> SessionEnded:
        cause = self._child.cause_of_death()
        quote = self._child.quote()
        return SessionEnded(f"the process of this configuration died {moment} ({cause}){quote}")


def _serve(channel: Channel, bell: Channel, model: ModelFile, configuration: Configuration, opener: Open) -> None:
    """The child process: open the session, report that, and run until it has to release it, or the pipe closes."""
    start = time.perf_counter()
    try:
        session = opener(model, configuration)
    except EvaltoolsError as error:
        channel.send(error)
        return
    load_ms = 1000 * (time.perf_counter() - start)
    try:
        facts = (session.facts, session.delegation, session.inputs, session.outputs)
        channel.send(_Ready(*facts, log_length(), load_ms))
        memory = SharedArrays.attach(channel.receive(), session.inputs, session.outputs)
        memory.forget_path()
        channel.send(True)
        while not isinstance(order := channel.receive(), _Free):
            if isinstance(order, _Call):
                channel.send(order.answer(session))
                continue
            block, invocations = order
            answers = (_run(session, memory, slot, parcel, invocations) for slot, parcel in enumerate(block))
            _send_all(channel, bell, answers, len(block))
        session.close()
        channel.send(True)
    except EOFError:
        return


def _send_all(channel: Channel, bell: Channel, answers: Iterable[_RunDone | EvaltoolsError], count: int) -> None:
    """Send each answer at once, so that none is lost, but wake the parent only now and then, for it needs a core.

    The bell says how many answers may be taken. It rings before those that may fill the pipe, and where it is full.
    """
    silent, rung_at = 0, time.monotonic()

    def ring() -> None:
        nonlocal silent, rung_at
        if silent:
            bell.send(silent)
        silent, rung_at = 0, time.monotonic()

    for number, answer in enumerate(answers, 1):
        silent += 1
        if isinstance(answer, _RunDone) and not answer.outputs.is_in_memory:
            ring()
        channel.send(answer, before_waiting=ring)
        if number == count or time.monotonic() - rung_at > _SECONDS_BETWEEN_BELLS:
            ring()


def _run(
    session: Session, memory: SharedArrays, slot: int, parcel: Parcel, invocations: int
) -> _RunDone | EvaltoolsError:
    try:
        inference = session.run(memory.inputs(parcel), invocations)
    except EvaltoolsError as error:
        return error
    outputs = memory.put_outputs(slot, inference.outputs)
    times = (inference.invokes_us, inference.read_us)
    return _RunDone(outputs, *times, log_length(), peak_memory_kb(), inference.largest)


def peak_memory_kb() -> int:
    """Largest resident memory of this process so far, in units of 1024 bytes; 0 where the platform does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // _BYTES_PER_KB if sys.platform == "darwin" else peak
