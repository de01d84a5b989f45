"""Sessions in child processes: native code that crashes, aborts or hangs takes one configuration with it, not the run.

The child holds the real session, and may have another version of a runtime. Arrays travel through shared memory,
everything else through a socket; times are taken in the child.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.errors import ConfigurationUnavailable, InferenceError, ProgramEnded, SessionEnded
from evaltools.model import ModelFile
from evaltools.runtime.delegation import Delegation
from evaltools.runtime.process import child
from evaltools.runtime.process.child import ChildProcess, returned_by
from evaltools.runtime.process.inside import Held
from evaltools.runtime.process.messages import Failure
from evaltools.runtime.process.shared_arrays import Placed, SharedArrays
from evaltools.runtime.registry import Open, open_session
from evaltools.runtime.session import (
    Array,
    BlockSession,
    Crashes,
    Inference,
    RuntimeFacts,
    Session,
    TensorSpec,
    run_alone,
)

_NAME: Final = "the process of this configuration"
_LONGEST_MESSAGES: Final = 2000
_SECONDS_TO_FREE: Final = 60.0
_TIMES_AS_LONG: Final = 100
_FREEING: Final = "while its model and delegates were released"
_LEAVING: Final = "when it had released its model and delegates, at its exit"
Returned = TypeVar("Returned")


def open_isolated(
    model: ModelFile,
    configuration: Configuration,
    timeout_s: float = 600.0,
    opener: Open = open_session,
    timeout_flag: str = "",
) -> IsolatedSession:
    """Open a session in a child process of its own.

    ``timeout_s`` limits the opening and every block of runs; the user's ``timeout_flag`` sets it, if there is one.
    Raises what the opening raises, and :class:`ConfigurationUnavailable` where the child dies of it or does not answer
    in time.
    """
    try:
        return IsolatedSession(model, configuration, timeout_s, opener, timeout_flag)
    except InferenceError as error:
        requested = configuration.delegates.requested
        suspect = requested[0].name if requested else ""
        has_ended = isinstance(error, SessionEnded)
        hung = isinstance(error, SessionEnded) and error.hung
        raise ConfigurationUnavailable(str(error), suspect, crashed=has_ended, hung=hung) from None
    except OSError as error:
        raise ConfigurationUnavailable(f"no process of its own could be started for it: {error}") from error


class IsolatedSession(ChildProcess):
    """A session whose work happens in a child process."""

    def __init__(
        self, model: ModelFile, configuration: Configuration, timeout_s: float, opener: Open, timeout_flag: str
    ) -> None:
        self._longest_s = 0.0
        packages = None
        if configuration.runtime_version:
            from evaltools.runtime.versions import packages_of

            packages = packages_of(configuration)
        super().__init__(_NAME, timeout_s, timeout_flag, packages)
        try:
            facts, self.delegation, self.inputs, self.outputs = self.ask(
                _open, model, configuration, opener, moment="while the model was loaded"
            )
            messages = " ".join(self.printed().split())[:_LONGEST_MESSAGES]
            self.facts: Final = replace(facts, messages=messages)
            self._arrays = self._shared_arrays()
        except BaseException:
            super().close()
            raise

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run in the child; raises :class:`InferenceError`, also for a child that has died or does not answer."""
        return run_alone(self, inputs, invocations)

    @property
    def longest_block(self) -> int:
        """How many runs :meth:`run_block` takes at most."""
        return self._arrays.slots

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other without waiting for this process in between; an error takes the place of its run.

        An end of the child takes the places of all.
        """
        if self._over is not None:
            return [self._over] * len(block)
        placed = [self._arrays.put_inputs(slot, inputs) for slot, inputs in enumerate(block)]
        start = time.monotonic()
        try:
            ran = self.ask(_run, placed, invocations, moment="during a run", seconds=self._limit_s)
        except InferenceError as error:
            return [error] * len(block)
        self._longest_s = max(self._longest_s, time.monotonic() - start)
        return [self._outcome(each) for each in ran]

    @property
    def _limit_s(self) -> float:
        """How long a block may take: the time-out, later a hundred times the longest one, half a minute at least.

        What runs elsewhere keeps its own limits, and may be away.
        """
        longest = _TIMES_AS_LONG * self._longest_s
        limit_s = min(self.timeout_s, max(child.LEAST_LIMIT_S, longest)) if longest else self.timeout_s
        elsewhere = self.facts.elsewhere
        return limit_s if elsewhere is None else self.timeout_s + elsewhere.turn_s + elsewhere.away_s

    def call(self, function: Callable[..., Returned], *arguments: Any, timeout_s: float = 0.0) -> Returned:
        """Call ``function`` with the child's session and ``arguments``; it states the type of what it returns.

        ``timeout_s`` is what the call may take beyond the time-out of a run. Raises what it raises, and
        :class:`SessionEnded` for a child that has died or does not answer.
        """
        seconds = self.timeout_s + timeout_s
        wanted = returned_by(function)
        returned: Returned = self.ask(
            _call, function, arguments, moment="during a call", seconds=seconds, returns=wanted
        )
        return returned

    def close(self) -> None:
        """Release the model and its delegates, and end the child, at once where another thread waits for it.

        What goes wrong meanwhile stands in ``not_clean`` from then on; a crash counts in ``crashes``.
        """
        try:
            if self._over is None and not self._running:
                self.not_clean = self._freed()
        finally:
            super().close()

    def _freed(self) -> str:
        """Have the child release its session and end; what went wrong, empty where nothing did."""
        seconds = min(self.timeout_s, _SECONDS_TO_FREE)
        try:
            self.ask(_free, moment=_FREEING, seconds=seconds)
            return self.leave(_LEAVING, seconds)
        except SessionEnded as error:
            return str(error)

    def _shared_arrays(self) -> SharedArrays:
        try:
            return SharedArrays(self.memory, self.inputs, self.outputs)
        except OSError as error:
            raise ConfigurationUnavailable(f"no memory for its inputs and outputs: {error.strerror}") from error

    def _outcome(self, ran: Ran) -> Inference | InferenceError:
        if ran.failure is not None:
            error = ran.failure.error
            if isinstance(error, ProgramEnded):
                self.crashes += Crashes(1, str(error))
            return error if isinstance(error, InferenceError) else InferenceError(str(error))
        try:
            outputs = tuple(array.copy() for array in self._arrays.arrays(ran.outputs))
        except InferenceError as error:
            return error
        return Inference(outputs, ran.invokes_us, ran.read_us, ran.largest)


class Ran(Struct, frozen=True):
    """An inference, or its failure, as the child answers it."""

    outputs: tuple[Placed, ...] = ()
    invokes_us: tuple[float, ...] = ()
    read_us: float = 0.0
    largest: float = 0.0
    failure: Failure | None = None


def _open(
    held: Held, model: ModelFile, configuration: Configuration, opener: Open
) -> tuple[RuntimeFacts, Delegation, tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    start = time.perf_counter()
    held.session = session = opener(model, configuration)
    facts = replace(session.facts, load_ms=1000 * (time.perf_counter() - start))
    return facts, session.delegation, session.inputs, session.outputs


def _run(held: Held, block: Sequence[Sequence[Placed]], invocations: int) -> list[Ran]:
    session = held.session
    arrays = held.arrays(session.inputs, session.outputs)
    found = []
    for slot, inference in enumerate(_outcomes(session, [arrays.arrays(placed) for placed in block], invocations)):
        if isinstance(inference, InferenceError):
            found.append(Ran(failure=Failure.of(inference)))
            continue
        outputs = arrays.put_outputs(slot, inference.outputs)
        found.append(Ran(outputs, inference.invokes_us, inference.read_us, inference.largest))
    return found


def _outcomes(
    session: Session, block: Sequence[Sequence[Array]], invocations: int
) -> Iterable[Inference | InferenceError]:
    """What each run gives, one at a time where the session runs no blocks."""
    if isinstance(session, BlockSession):
        yield from session.run_block(block, invocations)
        return
    for inputs in block:
        try:
            yield session.run(inputs, invocations)
        except InferenceError as error:
            yield error


def _call(held: Held, function: Callable[..., Returned], arguments: tuple[Any, ...]) -> Returned:
    return function(held.session, *arguments)


def _free(held: Held) -> None:
    held.session.close()
