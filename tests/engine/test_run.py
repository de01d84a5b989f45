"""The pass: pairing, failures, limits, interruption."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.engine.execution import Execution
from evaltools.engine.journal import temporary_journal
from evaltools.engine.ledger import Ledger, PassOutcome, outcome_of
from evaltools.engine.preparation import InThisProcess, ReadyExample
from evaltools.engine.records import Records
from evaltools.engine.run import Turn, Worker, Workers, run_examples
from evaltools.engine.steps import Prepared, Record, Steps
from evaltools.errors import ConfigurationUnavailable, ImageError, InferenceError
from evaltools.runtime import BlockSession, Inference
from evaltools.runtime.session import Array
from evaltools.signals import noted_interrupts
from tests.runtime.fake import FakeSession


def no_thread(_thread: threading.Thread) -> None:
    """In the place of a thread's ``start``."""
    raise RuntimeError("can't start new thread")


class CountingTask:
    """Example i has the input i; examples in ``broken`` have none."""

    def __init__(self, count: int, broken: Sequence[int] = ()) -> None:
        self.names = [f"e{index}" for index in range(count)]
        self.broken = broken
        self.decoded: list[int] = []
        self.observed: list[tuple[str, int | str | None]] = []

    @property
    def steps(self) -> Steps[int]:
        return Steps(self.names, self.prepare, self.observe, int, in_order=True)

    def prepare(self, example: int) -> Prepared:
        self.decoded.append(example)
        if example in self.broken:
            raise ImageError("is broken")
        return Prepared((np.array([example]),), f"context of {self.names[example]}")

    def observe(
        self, prepared: Prepared, outputs: Sequence[Array], reference: Sequence[Array] | None, configuration: str
    ) -> int:
        against = "its own" if reference is outputs else None if reference is None else int(reference[0][0])
        self.observed.append((prepared.context, against))
        return int(outputs[0][0])


def doubling(inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (np.multiply(inputs[0], 2),)


def failing_on_two(inputs: Sequence[Array]) -> tuple[Array, ...]:
    if inputs[0][0] == 2:
        raise InferenceError("node 7 failed")
    return (inputs[0],)


def run(
    task: CountingTask, sessions: Mapping[str, BlockSession], reference: str | None = None, **options: Any
) -> PassOutcome[int]:
    """With one worker."""
    return run_in_turns(task, sessions, [], reference, **options)


def run_in_turns(
    task: CountingTask,
    sessions: Mapping[str, BlockSession],
    turns: list[Turn],
    reference: str | None = None,
    invocations: int = 1,
    **options: Any,
) -> PassOutcome[int]:
    """With one worker; every turn is put into the list."""
    steps, journal, names = task.steps, temporary_journal(), list(sessions)
    records = Records([(journal, "")], len(steps.names), steps.observation_type)
    ledger = Ledger(range(len(steps.names)), names, reference, Execution(**options))
    makers, todo = [InThisProcess(steps.prepare)], range(len(steps.names))
    with (
        noted_interrupts() as interrupted,
        Workers(steps, [sessions], makers, todo, ledger, reference, invocations) as workers,
    ):
        turns.extend(run_examples(workers, journal, interrupted))
    journal.flush()
    outcome = outcome_of(records, ledger, names, steps.names)
    return outcome.interrupted() if interrupted else outcome


def failures(outcome: PassOutcome[int]) -> list[Record[int]]:
    return [record for records in outcome.records.values() for record in records if record.failure]


def test_each_example_is_decoded_once_and_run_on_every_configuration() -> None:
    task = CountingTask(3)
    outcome = run(task, {"a": FakeSession(doubling), "b": FakeSession(failing_on_two)})
    assert task.decoded == [0, 1, 2]
    assert [record.observation for record in outcome.records["a"]] == [0, 2, 4]
    assert [record.observation for record in outcome.records["b"]] == [0, 1, None]
    assert len(outcome.preprocessing_us) == 3


def test_the_others_are_observed_beside_the_outputs_of_the_reference() -> None:
    task = CountingTask(3)
    run(task, {"b": FakeSession(doubling), "ref": FakeSession(failing_on_two)}, reference="ref")
    assert task.observed == [
        ("context of e0", 0),
        ("context of e0", "its own"),
        ("context of e1", 1),
        ("context of e1", "its own"),
        ("context of e2", None),
    ]


def test_configurations_take_turns_in_going_first() -> None:
    order: list[str] = []

    def logging(name: str) -> FakeSession:
        return FakeSession(lambda inputs: (order.append(name) or inputs[0],))  # type: ignore[func-returns-value]

    run(CountingTask(2), {"a": logging("a"), "b": logging("b")})
    assert order == ["a", "b", "b", "a"]


def test_a_broken_input_fails_for_all_and_the_pass_goes_on() -> None:
    outcome = run(CountingTask(3, broken=[1]), {"a": FakeSession(doubling), "b": FakeSession(doubling)})
    failed = failures(outcome)
    assert [(record.example, record.configuration) for record in failed] == [(1, "a"), (1, "b")]
    assert failed[0].failure is not None
    assert failed[0].failure.stage == "input"
    assert (outcome.failed_examples, outcome.stopped) == (1, None)


def test_ctrl_c_lets_the_turn_end_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.engine.run._SECONDS_TO_FINISH_TURN", 60.0)

    def pressing(inputs: Sequence[Array]) -> tuple[Array, ...]:
        if inputs[0][0] == 2:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        return (inputs[0],)

    outcome = run(CountingTask(1000), {"a": FakeSession(doubling), "b": FakeSession(pressing)})
    assert outcome.stopped == "interrupted"
    assert 3 <= outcome.examples_done < 1000
    assert [[record.observation for record in outcome.records[name]] for name in "ab"] == [
        [2 * index for index in range(outcome.examples_done)],
        list(range(outcome.examples_done)),
    ]


def test_where_a_worker_gets_no_thread_it_says_what_would_help(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    with pytest.raises(ConfigurationUnavailable, match=r"\(can't start new thread\).*; give fewer --workers, or raise"):
        run(CountingTask(3), {"reference": FakeSession(doubling)})


def test_each_turn_gives_its_records_and_its_times() -> None:
    turns: list[Turn] = []
    run_in_turns(CountingTask(3, broken=[1]), {"a": FakeSession(doubling), "b": FakeSession(failing_on_two)}, turns)
    assert [list(turn.examples) for turn in turns] == [[0], [1], [2]]
    failed = [
        [record.failure is not None for record in records] for turn in turns for records in turn.examples.values()
    ]
    assert failed == [[False, False], [True, True], [False, True]]
    stages = [[span.stage for span in turn.spans] for turn in turns]
    assert stages == [
        ["prepare", "inference", "inference", "metrics", "journal"],
        ["prepare", "metrics", "journal"],
        ["prepare", "inference", "inference", "metrics", "journal"],
    ]


class Reading(FakeSession):
    """Reading its outputs takes 7 us; remembers how often it was invoked."""

    def __init__(self, function: Callable[[Sequence[Array]], tuple[Array, ...]]) -> None:
        super().__init__(function, invoke_us=50)
        self.invocations: list[int] = []

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        self.invocations.append(invocations)
        return replace(super().run(inputs, invocations), read_us=7)


def test_every_example_is_invoked_as_often_as_asked_and_a_failed_one_has_no_times() -> None:
    sessions = {"a": Reading(doubling), "b": Reading(failing_on_two)}
    outcome = run(CountingTask(3), sessions, invocations=3)
    assert sessions["a"].invocations == sessions["b"].invocations == [3, 3, 3]
    a, b = ([(record.invokes_us, record.read_us) for record in outcome.records[name]] for name in "ab")
    assert a == [((50, 50, 50), 7)] * 3
    assert b == [*a[:2], ((), None)]


class InBlocks(FakeSession):
    """Runs up to four examples together; remembers which."""

    longest_block = 4

    def __init__(self) -> None:
        super().__init__(doubling)
        self.blocks: list[list[int]] = []

    def run_block(self, block: Sequence[Sequence[Array]], invocations: int = 1) -> list[Inference | InferenceError]:
        values = [int(np.asarray(inputs[0])[0]) for inputs in block]
        self.blocks.append(values)
        failed = InferenceError("node 7 failed")
        return [failed if value == 5 else self.run(inputs) for value, inputs in zip(values, block, strict=True)]


def test_short_runs_are_done_in_blocks_as_long_as_all_sessions_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaltools.engine.run._SECONDS_IN_TURN", 60.0)
    session = InBlocks()
    outcome = run(CountingTask(11, broken=[6]), {"a": session})
    assert session.blocks == [[0], [1, 2, 3, 4], [5, 7, 8], [9, 10]]
    assert [record.observation for record in outcome.records["a"]] == [0, 2, 4, 6, 8, None, None, 14, 16, 18, 20]
    beside_another = InBlocks()
    run(CountingTask(3), {"a": beside_another, "b": FakeSession(doubling)})
    assert beside_another.blocks == [[0], [1], [2]]


def test_inputs_that_take_long_to_make_are_in_short_blocks() -> None:
    steps = CountingTask(4).steps
    worker = Worker(0, steps, {"a": InBlocks()}, InThisProcess(steps.prepare), None, 1, {})
    for made_in_us, size in ((300_000, 1), (90_000, 2), (60_000, 3), (1, 4)):
        worker.run([ReadyExample(0, Prepared((np.array([0]),), ""), 0, made_in_us)] * 2)
        assert worker.block_size == size


def test_ctrl_c_while_an_example_is_settled_waits_until_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    add = Ledger.add

    def interrupted(ledger: Ledger, example: int, failures: Mapping[str, Any]) -> None:
        if example == 3:
            os.kill(os.getpid(), signal.SIGINT)
        add(ledger, example, failures)

    monkeypatch.setattr(Ledger, "add", interrupted)
    outcome = run(CountingTask(1000), {"a": InBlocks()})
    assert outcome.stopped == "interrupted"
    assert 4 <= outcome.examples_done < 1000
    assert len(outcome.records["a"]) == outcome.examples_done


def test_a_limit_of_failures_holds_within_a_block() -> None:
    outcome = run(CountingTask(11, broken=[2, 3]), {"a": InBlocks()}, max_failed_examples=0)
    assert (outcome.examples_done, outcome.stopped) == (3, "too many failed examples")
    assert len(outcome.records["a"]) == 3
