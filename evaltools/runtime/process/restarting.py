"""A session whose process is started again when native code kills it, so that one input costs one run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, SessionEnded
from evaltools.runtime.session import Array, BlockSession, Crashes, Inference, Session, WatchedSession, run_each


class RestartingSession:
    """Runs on a session until that dies or hangs, then on another one that ``open_again`` gives.

    An input at which the process died is tried once more in a fresh process: memory that has leaked away is nobody's
    fault but the delegate's. Where it dies again, or hangs, that run is the failed one. Workers may share the session:
    it runs one block at a time.

    ``like`` says what the session is; the first process is ``like`` itself where that ``is_open``, else one is started
    with the first run.
    """

    def __init__(self, like: Session, open_again: Callable[[], Session], is_open: bool = True) -> None:
        self.facts: Final = like.facts
        self.delegation: Final = like.delegation
        self.inputs: Final = like.inputs
        self.outputs: Final = like.outputs
        self.longest_block: Final = like.longest_block if isinstance(like, BlockSession) else 1
        self._open_again = open_again
        self._session: Session | None = like if is_open else None
        self._ended_memory_kb = 0
        self.not_clean = ""
        self._earlier_crashes = Crashes()
        self._turn = threading.Lock()
        self._ending = threading.Lock()
        self._closed = threading.Event()

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run once; raises :class:`InferenceError`."""
        (outcome,) = self.run_block([inputs], invocations)
        if isinstance(outcome, InferenceError):
            raise outcome
        return outcome

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other; an error takes the place of its run."""
        outcomes: list[Inference | InferenceError] = []
        with self._turn:
            while len(outcomes) < len(block):
                outcomes += self._until_an_end(block[len(outcomes) :], invocations)
        return outcomes

    def close(self) -> None:
        """End the process; a run that is under way in another thread fails, and none is started any more."""
        self._closed.set()
        self._end_process()

    @property
    def crashes(self) -> Crashes:
        """Those of all its processes, also of such as crashed when they were to be started again."""
        session = self._session
        return self._earlier_crashes + (session.crashes if isinstance(session, WatchedSession) else Crashes())

    @property
    def peak_memory_kb(self) -> int:
        """Largest resident memory of any of its processes in units of 1024 bytes, 0 where that is not known."""
        return max(self._ended_memory_kb, _peak_memory_kb(self._session))

    @property
    def process_id(self) -> int | None:
        """The process that it runs in now, None where none is open."""
        session = self._session
        return session.process_id if isinstance(session, WatchedSession) else None

    def _until_an_end(self, block: Sequence[Sequence[Array]], invocations: int) -> Sequence[Inference | InferenceError]:
        """The outcomes up to the first run that ends the process, and that run's own outcome."""
        try:
            found = run_each(self._opened(), block, invocations)
        except SessionEnded as error:
            return [error]
        for place, outcome in enumerate(found):
            if isinstance(outcome, SessionEnded):
                return [*found[:place], self._tried_again(block[place], invocations, outcome)]
        return found

    def _tried_again(
        self, inputs: Sequence[Array], invocations: int, death: SessionEnded
    ) -> Inference | InferenceError:
        self._end_process()
        if death.hung or self._closed.is_set():
            return death
        try:
            (outcome,) = run_each(self._opened(), [inputs], invocations)
        except SessionEnded:
            return death
        if isinstance(outcome, SessionEnded):
            self._end_process()
        return outcome

    def _opened(self) -> Session:
        """The session; raises :class:`SessionEnded` where no process can be started."""
        session = self._session
        if session is None and not self._closed.is_set():
            try:
                session = self._session = self._open_again()
            except EvaltoolsError as error:
                if isinstance(error, ConfigurationUnavailable) and error.crashed:
                    self._earlier_crashes += Crashes(1, str(error))
                raise SessionEnded(f"its process could not be started again: {error}") from error
        if session is None or self._closed.is_set():
            self._end_process()
            raise SessionEnded("the session was closed")
        return session

    def _end_process(self) -> None:
        """Close the session, which two threads may want to at once."""
        with self._ending:
            session, self._session = self._session, None
        self._ended_memory_kb = max(self._ended_memory_kb, _peak_memory_kb(session))
        if session is not None:
            session.close()
        if isinstance(session, WatchedSession):
            self.not_clean = self.not_clean or session.not_clean
            self._earlier_crashes += session.crashes


def _peak_memory_kb(session: Session | None) -> int:
    return session.peak_memory_kb if isinstance(session, WatchedSession) else 0
