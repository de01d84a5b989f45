"""The pass: every example is decoded once and run on every configuration before the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from evaltools.engine.task import Array, Example, Failure, Observation, Record, Task
from evaltools.errors import ImageError, InferenceError
from evaltools.runtime import Session


@dataclass
class Outcome(Generic[Observation]):
    """Everything measured in a pass.

    ``preprocessing_us`` has one value per example whose input could be made. ``stopped`` says why the pass ended before
    the last example, if it did.
    """

    records: list[Record[Observation]] = field(default_factory=list)
    preprocessing_us: list[int] = field(default_factory=list)
    failed_examples: int = 0
    elapsed_s: float = 0.0
    interrupted: bool = False
    stopped: str | None = None

    def of(self, configuration: str) -> list[Record[Observation]]:
        """The records of one configuration, in the order of the examples."""
        return [record for record in self.records if record.configuration == configuration]


def run_pass(
    task: Task[Observation],
    sessions: Mapping[str, Session],
    max_failed_examples: int | None = None,
    on_example: Callable[[int], None] = lambda _failed_examples: None,
) -> Outcome[Observation]:
    """Run all examples on all sessions.

    An example that fails is recorded and the pass goes on; with more than ``max_failed_examples`` of them it stops.
    Ctrl-C ends the pass after the last finished example. ``on_example`` is called after each example with the number of
    failed ones so far.
    """
    outcome: Outcome[Observation] = Outcome()
    start = time.perf_counter()
    try:
        for example in task.examples:
            records, preprocessing_us = _run_example(task, example, sessions)
            outcome.records.extend(records)
            if preprocessing_us is not None:
                outcome.preprocessing_us.append(preprocessing_us)
            outcome.failed_examples += any(record.failure for record in records)
            on_example(outcome.failed_examples)
            if max_failed_examples is not None and outcome.failed_examples > max_failed_examples:
                outcome.stopped = f"more than --max_failed_examples={max_failed_examples} examples failed"
                break
    except KeyboardInterrupt:
        outcome.interrupted = True
        outcome.stopped = "interrupted"
    outcome.elapsed_s = time.perf_counter() - start
    return outcome


def _run_example(
    task: Task[Observation], example: Example, sessions: Mapping[str, Session]
) -> tuple[list[Record[Observation]], int | None]:
    start = time.perf_counter_ns()
    try:
        inputs = task.inputs(example)
    except ImageError as error:
        failure = Failure("input", str(error))
        return [Record(example, name, None, None, failure) for name in sessions], None
    preprocessing_us = (time.perf_counter_ns() - start) // 1000
    turn = example.index % len(sessions)
    names = list(sessions)
    by_name = {name: _run_session(task, example, name, sessions[name], inputs) for name in names[turn:] + names[:turn]}
    return [by_name[name] for name in names], preprocessing_us


def _run_session(
    task: Task[Observation], example: Example, name: str, session: Session, inputs: tuple[Array, ...]
) -> Record[Observation]:
    try:
        inference = session.run(inputs)
    except InferenceError as error:
        return Record(example, name, None, None, Failure("inference", str(error)))
    return Record(example, name, inference.invoke_us, task.observe(example, inference.outputs))
