"""The pass: every example is decoded once and run on every configuration."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Literal

from evaltools.engine.task import Example, Failure, Observation, Prepared, Record, Task
from evaltools.errors import ImageError, InferenceError
from evaltools.runtime import BlockSession, Inference, Session
from evaltools.runtime.session import Array

Stop = Literal["interrupted", "too many failed examples"]
_SECONDS_IN_TURN: Final = 0.1


@dataclass
class Outcome(Generic[Observation]):
    """Everything measured in a pass.

    ``records`` holds the records of each configuration in the order of the examples. ``preprocessing_us`` has one value
    per example whose input could be made. ``examples_done`` counts finished examples, failed ones included.
    ``stopped`` says why the pass ended before the last example, if it did.
    """

    records: dict[str, list[Record[Observation]]]
    preprocessing_us: list[int] = field(default_factory=list)
    examples_done: int = 0
    failed_examples: int = 0
    elapsed_s: float = 0.0
    stopped: Stop | None = None


@dataclass(frozen=True)
class _Ready:
    """An example with its inputs, or why it has none."""

    example: Example
    prepared: Prepared | Failure
    preprocessing_us: int


Runs = dict[str, Inference | Failure]
"""What each configuration gave for one example."""


def run_pass(
    task: Task[Observation],
    sessions: Mapping[str, Session],
    reference: str | None = None,
    max_failed_examples: int | None = None,
    on_example: Callable[[int], None] = lambda _failed_examples: None,
    invocations: int = 1,
) -> Outcome[Observation]:
    """Run all examples on all sessions; ``reference`` names the one that the others are observed against.

    The sessions take turns, of one example each, or of as many as take 0.1 s where all can run blocks. Every
    example is invoked ``invocations`` times on each. An example that fails is recorded and the pass goes on; with more
    than ``max_failed_examples`` of them it stops. Ctrl-C ends the pass after the last finished turn. ``on_example`` is
    called after each example with the number of failed ones so far.
    """
    outcome: Outcome[Observation] = Outcome({name: [] for name in sessions})
    longest = min((_longest_block(session) for session in sessions.values()), default=1)
    start = time.perf_counter()
    done, size, turn = 0, 1, 0
    try:
        while done < len(task.examples) and outcome.stopped is None:
            block = [_prepare(task, example) for example in task.examples[done : done + size]]
            seconds, runs = _run_in_turn(block, sessions, invocations, turn)
            for ready, given in zip(block, runs, strict=True):
                _record(task, ready, given, reference, outcome)
                on_example(outcome.failed_examples)
                if max_failed_examples is not None and outcome.failed_examples > max_failed_examples:
                    outcome.stopped = "too many failed examples"
                    break
            done, turn = done + len(block), turn + 1
            size = _next_size(seconds / len(block), longest)
    except KeyboardInterrupt:
        outcome.stopped = "interrupted"
    outcome.elapsed_s = time.perf_counter() - start
    return outcome


def _longest_block(session: Session) -> int:
    return session.longest_block if isinstance(session, BlockSession) else 1


def _next_size(seconds_per_example: float, longest: int) -> int:
    return max(1, min(longest, int(_SECONDS_IN_TURN / max(seconds_per_example, 1e-9))))


def _prepare(task: Task[Observation], example: Example) -> _Ready:
    start = time.perf_counter_ns()
    prepared: Prepared | Failure
    try:
        prepared = task.prepare(example)
    except ImageError as error:
        prepared = Failure("input", str(error))
    return _Ready(example, prepared, (time.perf_counter_ns() - start) // 1000)


def _run_in_turn(
    block: Sequence[_Ready], sessions: Mapping[str, Session], invocations: int, turn: int
) -> tuple[float, list[Runs]]:
    """Run every session, each turn beginning with another one, so that none always finds the caches warm.

    Also returns the seconds that the slowest session took.
    """
    names = list(sessions)
    first = turn % len(names)
    runs: list[Runs] = [{} for _ in block]
    usable = [index for index, ready in enumerate(block) if isinstance(ready.prepared, Prepared)]
    inputs = [ready.prepared.inputs for ready in block if isinstance(ready.prepared, Prepared)]
    slowest = 0.0
    for name in names[first:] + names[:first] if usable else []:
        start = time.perf_counter()
        for index, outcome in zip(usable, _run_block(sessions[name], inputs, invocations), strict=True):
            runs[index][name] = Failure("inference", str(outcome)) if isinstance(outcome, InferenceError) else outcome
        slowest = max(slowest, time.perf_counter() - start)
    return slowest, runs


def _run_block(
    session: Session, block: Sequence[Sequence[Array]], invocations: int
) -> Sequence[Inference | InferenceError]:
    if isinstance(session, BlockSession):
        return session.run_block(block, invocations)
    outcomes: list[Inference | InferenceError] = []
    for inputs in block:
        try:
            outcomes.append(session.run(inputs, invocations))
        except InferenceError as error:
            outcomes.append(error)
    return outcomes


def _record(
    task: Task[Observation], ready: _Ready, runs: Runs, reference: str | None, outcome: Outcome[Observation]
) -> None:
    records = _records(task, ready, runs, list(outcome.records), reference)
    for record in records:
        outcome.records[record.configuration].append(record)
    if isinstance(ready.prepared, Prepared):
        outcome.preprocessing_us.append(ready.preprocessing_us)
    outcome.examples_done += 1
    outcome.failed_examples += any(record.failure for record in records)


def _records(
    task: Task[Observation], ready: _Ready, runs: Runs, names: Sequence[str], reference: str | None
) -> list[Record[Observation]]:
    if isinstance(ready.prepared, Failure):
        return [Record(ready.example, name, (), None, ready.prepared) for name in names]
    base = runs.get(reference) if reference is not None else None
    base_outputs = base.outputs if isinstance(base, Inference) else None
    records: list[Record[Observation]] = []
    for name in names:
        run = runs[name]
        if isinstance(run, Failure):
            records.append(Record(ready.example, name, (), None, run))
            continue
        observation = task.observe(ready.prepared, run.outputs, None if name == reference else base_outputs)
        records.append(Record(ready.example, name, run.invokes_us, observation, read_us=run.read_us))
    return records
