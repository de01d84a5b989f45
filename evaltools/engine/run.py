"""The pass: every example is decoded once and run on every configuration before the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Literal

from evaltools.engine.task import Example, Failure, Observation, Prepared, Record, Task
from evaltools.errors import ImageError, InferenceError
from evaltools.runtime import Inference, Session

Stop = Literal["interrupted", "too many failed examples"]


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


def run_pass(
    task: Task[Observation],
    sessions: Mapping[str, Session],
    reference: str | None = None,
    max_failed_examples: int | None = None,
    on_example: Callable[[int], None] = lambda _failed_examples: None,
    invocations: int = 1,
) -> Outcome[Observation]:
    """Run all examples on all sessions; ``reference`` names the one that the others are observed against.

    Every example is invoked ``invocations`` times on each.

    An example that fails is recorded and the pass goes on; with more than ``max_failed_examples`` of them it stops.
    Ctrl-C ends the pass after the last finished example. ``on_example`` is called after each example with the number of
    failed ones so far.
    """
    outcome: Outcome[Observation] = Outcome({name: [] for name in sessions})
    start = time.perf_counter()
    try:
        for example in task.examples:
            records, preprocessing_us = _run_example(task, example, sessions, reference, invocations)
            for record in records:
                outcome.records[record.configuration].append(record)
            if preprocessing_us is not None:
                outcome.preprocessing_us.append(preprocessing_us)
            outcome.examples_done += 1
            outcome.failed_examples += any(record.failure for record in records)
            on_example(outcome.failed_examples)
            if max_failed_examples is not None and outcome.failed_examples > max_failed_examples:
                outcome.stopped = "too many failed examples"
                break
    except KeyboardInterrupt:
        outcome.stopped = "interrupted"
    outcome.elapsed_s = time.perf_counter() - start
    return outcome


def _run_example(
    task: Task[Observation],
    example: Example,
    sessions: Mapping[str, Session],
    reference: str | None,
    invocations: int,
) -> tuple[list[Record[Observation]], int | None]:
    start = time.perf_counter_ns()
    try:
        prepared = task.prepare(example)
    except ImageError as error:
        failure = Failure("input", str(error))
        return [Record(example, name, (), None, failure) for name in sessions], None
    preprocessing_us = (time.perf_counter_ns() - start) // 1000
    runs = _run_in_turn(example, prepared, sessions, invocations)
    base = runs.get(reference) if reference is not None else None
    base_outputs = base.outputs if isinstance(base, Inference) else None
    records: list[Record[Observation]] = []
    for name in sessions:
        run = runs[name]
        if isinstance(run, Failure):
            records.append(Record(example, name, (), None, run))
            continue
        observation = task.observe(prepared, run.outputs, None if name == reference else base_outputs)
        records.append(Record(example, name, run.invokes_us, observation, read_us=run.read_us))
    return records, preprocessing_us


def _run_in_turn(
    example: Example, prepared: Prepared, sessions: Mapping[str, Session], invocations: int
) -> dict[str, Inference | Failure]:
    """Run every session, each example starting with another one, so that none always finds the caches warm."""
    names = list(sessions)
    turn = example.index % len(names)
    runs: dict[str, Inference | Failure] = {}
    for name in names[turn:] + names[:turn]:
        try:
            runs[name] = sessions[name].run(prepared.inputs, invocations)
        except InferenceError as error:
            runs[name] = Failure("inference", str(error))
    return runs
