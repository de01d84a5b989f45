"""A worker: it runs every configuration on a block of examples, and observes the outputs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic

from msgspec import Struct

from evaltools.engine.journal import Finished
from evaltools.engine.preparation import ReadyExample
from evaltools.engine.stages import InferenceTime, Span
from evaltools.engine.task import INFERENCE, METRICS, PREPARATION, Failure, Observation, Prepared, Record, Task
from evaltools.errors import InferenceError, SessionEnded, TaskError
from evaltools.runtime import BlockSession, Inference, Session
from evaltools.runtime.session import run_each

_SECONDS_IN_TURN: Final = 0.2
Runs = dict[str, Inference | Failure]
"""What each configuration gave for one example."""


class FinishedBlock(Struct, Generic[Observation], frozen=True):
    """The examples that a worker finished in one turn, and the times that it took; ``inference`` by configuration."""

    examples: Sequence[Finished[Observation]]
    spans: Sequence[Span]
    inference: Mapping[str, InferenceTime]


class Worker(Generic[Observation]):
    """Runs blocks of examples.

    A block has as many examples as can be prepared in 0.2 s, and as each configuration runs in so long, if all
    sessions can run blocks; otherwise one.

    ``given_up`` holds configurations that are not run any more; another thread may add to it.
    """

    def __init__(
        self,
        number: int,
        task: Task[Observation],
        sessions: Mapping[str, Session],
        reference: str | None,
        invocations: int,
        given_up: Mapping[str, Any],
    ) -> None:
        self.block_size = 1
        self._number = number
        self._task = task
        self._sessions = sessions
        self._reference = reference
        self._invocations = invocations
        self._given_up = given_up
        self._longest = min((_longest_block(session) for session in sessions.values()), default=1)
        self._turn = number
        self._spans: list[Span] = []

    def run(self, block: Sequence[ReadyExample]) -> FinishedBlock[Observation]:
        """Run a block on every session. Each turn begins with another session, so that none always has warm caches."""
        self._note_preparation(block)
        names = [name for name in self._sessions if name not in self._given_up]
        first = self._turn % max(1, len(names))
        self._turn += 1
        runs: list[Runs] = [{} for _ in block]
        usable = [index for index, ready in enumerate(block) if isinstance(ready.prepared, Prepared)]
        inputs = [ready.prepared.inputs for ready in block if isinstance(ready.prepared, Prepared)]
        slowest_ns = 0
        inference: dict[str, InferenceTime] = {}
        for name in names[first:] + names[:first] if usable else []:
            start_ns = time.perf_counter_ns()
            for index, outcome in zip(usable, run_each(self._sessions[name], inputs, self._invocations), strict=True):
                runs[index][name] = _failure(outcome) if isinstance(outcome, InferenceError) else outcome
            duration_ns = self._note(INFERENCE, start_ns, f"{name}: {len(inputs)} examples")
            slowest_ns = max(slowest_ns, duration_ns)
            inference[name] = _inference_time(duration_ns, [own[name] for own in runs if name in own])
        start_ns = time.perf_counter_ns()
        finished = [self._finish(ready, given, names) for ready, given in zip(block, runs, strict=True)]
        observing_ns = self._note(METRICS, start_ns, f"{len(block)} examples")
        preparing_ns = 1000 * sum(ready.duration_us for ready in block)
        self.block_size = _next_size(max(preparing_ns, slowest_ns, observing_ns) / 1e9 / len(block), self._longest)
        spans, self._spans = self._spans, []
        return FinishedBlock(finished, spans, inference)

    def _finish(self, ready: ReadyExample, runs: Runs, names: Sequence[str]) -> Finished[Observation]:
        if isinstance(ready.prepared, Failure):
            failed = [Record[Observation](ready.example, name, (), None, ready.prepared) for name in names]
            return Finished(ready.example, None, failed)
        base = runs.get(self._reference) if self._reference is not None else None
        base_outputs = base.outputs if isinstance(base, Inference) else None
        records: list[Record[Observation]] = []
        for name in names:
            run = runs[name]
            if isinstance(run, Failure):
                records.append(Record(ready.example, name, (), None, run))
                continue
            try:
                observation = self._task.observe(ready.prepared, run.outputs, base_outputs)
            except TaskError as error:
                records.append(Record(ready.example, name, (), None, Failure("score", str(error))))
                continue
            records.append(Record(ready.example, name, run.invokes_us, observation, read_us=run.read_us))
        return Finished(ready.example, ready.duration_us, records)

    def _note(self, stage: str, start_ns: int, label: str) -> int:
        duration_ns = time.perf_counter_ns() - start_ns
        self._spans.append(Span(stage, start_ns, duration_ns, self._number, label))
        return duration_ns

    def _note_preparation(self, block: Sequence[ReadyExample]) -> None:
        """Record the steps of making each input that the task names, and the rest of its time as preparation."""
        for ready in block:
            start_ns = ready.start_ns
            steps = ready.prepared.steps if isinstance(ready.prepared, Prepared) else ()
            rest = ready.duration_us - sum(microseconds for _, microseconds in steps)
            for stage, microseconds in (*steps, (PREPARATION, rest)):
                self._spans.append(Span(stage, start_ns, microseconds * 1000, self._number, ready.example.id))
                start_ns += microseconds * 1000


def _failure(error: InferenceError) -> Failure:
    return Failure("inference", str(error), crashed=isinstance(error, SessionEnded))


def _inference_time(whole_ns: int, runs: Sequence[Inference | Failure]) -> InferenceTime:
    done = [run for run in runs if isinstance(run, Inference)]
    run_us, read_us = sum(sum(run.invokes_us) for run in done), sum(run.read_us for run in done)
    return InferenceTime(whole_ns / 1000, run_us, read_us)


def _longest_block(session: Session) -> int:
    return session.longest_block if isinstance(session, BlockSession) else 1


def _next_size(seconds_per_example: float, longest: int) -> int:
    return max(1, min(longest, int(_SECONDS_IN_TURN / max(seconds_per_example, 1e-9))))
