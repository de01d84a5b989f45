"""What works in a process that is started again when native code kills it, so that one input costs one run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from evaltools.errors import ConfigurationUnavailable, EvaltoolsError, InferenceError, SessionEnded
from evaltools.runtime.process.child import ChildProcess
from evaltools.runtime.session import Array, Crashes, Inference, ProcessSession, Watched, run_alone

Process = TypeVar("Process", bound=Watched)
Input = TypeVar("Input")
Outcome = TypeVar("Outcome")


class Restarting(Generic[Process]):
    """Works in a process until that dies or hangs, then in another one that ``open_again`` gives.

    A block at which the process ends is done again one by one, to find out which input it was. An input at which it
    dies then is tried once more in a fresh process: memory that has leaked away is nobody's fault but the delegate's.
    Where it dies again, or hangs, that is the input's outcome. Threads may share it: it does one block at a time.

    Without a ``first`` process one is started with the first block.
    """

    def __init__(self, open_again: Callable[[], Process], first: Process | None = None) -> None:
        self._open_again = open_again
        self._process = first
        self._ended_memory_kb = 0
        self.not_clean = ""
        self._earlier_crashes = Crashes()
        self._turn = threading.Lock()
        self._ending = threading.Lock()
        self._closed = threading.Event()
        self._has_hung = False

    def outcomes(
        self,
        block: Sequence[Input],
        work: Callable[[Process, Sequence[Input]], Sequence[Outcome | InferenceError]],
    ) -> list[Outcome | InferenceError]:
        """What ``work`` gives for the inputs of a block, which are at most those that one process takes at once.

        It gives a :class:`SessionEnded` for each input that it could not do because the process ended.
        """
        with self._turn:
            found: list[Outcome | InferenceError] = []
            for outcome in self._tried(block, work) if len(block) > 1 else []:
                if isinstance(outcome, SessionEnded):
                    break
                found.append(outcome)
            for each in block[len(found) :]:
                (outcome,) = self._tried([each], work)
                may_try_again = isinstance(outcome, SessionEnded) and not outcome.hung and not self._closed.is_set()
                found += self._tried([each], work, outcome) if may_try_again else [outcome]
            return found

    def _tried(
        self,
        block: Sequence[Input],
        work: Callable[[Process, Sequence[Input]], Sequence[Outcome | InferenceError]],
        earlier: Outcome | InferenceError | None = None,
    ) -> Sequence[Outcome | InferenceError]:
        """The outcomes of one try; where no process can be had for it, why, or the ``earlier`` outcome."""
        try:
            found = work(self._opened(), block)
        except SessionEnded as error:
            return [earlier or error] * len(block)
        for outcome in found:
            if isinstance(outcome, SessionEnded):
                self._has_hung = self._has_hung or outcome.hung
                self._end_process()
        return found

    def close(self) -> None:
        """End the process; what is under way in another thread fails, and no process is started any more."""
        self._closed.set()
        self._end_process()

    @property
    def crashes(self) -> Crashes:
        """Those of all its processes, also of such as crashed when they were to be started again."""
        process = self._process
        return self._earlier_crashes if process is None else self._earlier_crashes + process.crashes

    @property
    def peak_memory_kb(self) -> int:
        """Largest resident memory of any of its processes in units of 1024 bytes, 0 where that is not known."""
        process = self._process
        return self._ended_memory_kb if process is None else max(self._ended_memory_kb, process.peak_memory_kb)

    @property
    def process_id(self) -> int | None:
        """The process that it works in now, None where there is none."""
        process = self._process
        return None if process is None else process.process_id

    def _opened(self) -> Process:
        """The process; raises :class:`SessionEnded` where none can be started."""
        process = self._process
        if process is None and not self._closed.is_set():
            try:
                process = self._process = self._open_again()
                if self._has_hung and isinstance(process, ChildProcess):
                    process.hurry()
            except (EvaltoolsError, OSError) as error:
                if isinstance(error, ConfigurationUnavailable) and error.crashed:
                    self._earlier_crashes += Crashes(1, str(error))
                raise SessionEnded(f"its process could not be started again: {error}") from error
        if process is None or self._closed.is_set():
            self._end_process()
            raise SessionEnded("the session was closed")
        return process

    def _end_process(self) -> None:
        """Close the process, which two threads may want to at once."""
        with self._ending:
            process, self._process = self._process, None
        if process is not None:
            self._ended_memory_kb = max(self._ended_memory_kb, process.peak_memory_kb)
            process.close()
            self.not_clean = self.not_clean or process.not_clean
            self._earlier_crashes += process.crashes


class RestartingSession(Restarting[ProcessSession]):
    """Is what the session ``like`` is, which is the first process where it ``is_open``."""

    def __init__(self, like: ProcessSession, open_again: Callable[[], ProcessSession], is_open: bool = True) -> None:
        super().__init__(open_again, like if is_open else None)
        self.facts: Final = like.facts
        self.delegation: Final = like.delegation
        self.inputs: Final = like.inputs
        self.outputs: Final = like.outputs
        self.longest_block: Final = like.longest_block

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        """Run once; raises :class:`InferenceError`."""
        return run_alone(self, inputs, invocations)

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        """Run one after the other; an error takes the place of its run."""
        return self.outcomes(block, lambda session, part: session.run_block(part, invocations))
