"""The pass: pairing, failures, limits, interruption."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evaltools.engine import Example, run_pass
from evaltools.engine.task import Array
from evaltools.errors import ImageError, InferenceError
from evaltools.runtime.fake import FakeSession


class CountingTask:
    """Example i has the input i; examples in ``broken`` have none."""

    def __init__(self, count: int, broken: Sequence[int] = ()) -> None:
        self.examples = [Example(index, f"e{index}") for index in range(count)]
        self.broken = broken
        self.decoded: list[int] = []

    def inputs(self, example: Example) -> tuple[Array, ...]:
        self.decoded.append(example.index)
        if example.index in self.broken:
            raise ImageError("is broken")
        return (np.array([example.index]),)

    def observe(self, example: Example, outputs: Sequence[Array]) -> int:
        return int(outputs[0][0])


def doubling(inputs: Sequence[Array]) -> tuple[Array, ...]:
    return (np.multiply(inputs[0], 2),)


def failing_on_two(inputs: Sequence[Array]) -> tuple[Array, ...]:
    if inputs[0][0] == 2:
        raise InferenceError("node 7 failed")
    return (inputs[0],)


def test_each_example_is_decoded_once_and_run_on_every_configuration() -> None:
    task = CountingTask(3)
    outcome = run_pass(task, {"a": FakeSession(doubling), "b": FakeSession(failing_on_two)})
    assert task.decoded == [0, 1, 2]
    assert [record.observation for record in outcome.of("a")] == [0, 2, 4]
    assert [record.observation for record in outcome.of("b")] == [0, 1, None]
    assert len(outcome.preprocessing_us) == 3


def test_records_stand_in_the_order_of_examples_and_configurations() -> None:
    outcome = run_pass(CountingTask(2), {"a": FakeSession(doubling), "b": FakeSession(doubling)})
    assert [(record.example.id, record.configuration) for record in outcome.records] == [
        ("e0", "a"), ("e0", "b"), ("e1", "a"), ("e1", "b"),
    ]  # fmt: skip


def test_configurations_take_turns_in_going_first() -> None:
    order: list[str] = []

    def logging(name: str) -> FakeSession:
        return FakeSession(lambda inputs: (order.append(name) or inputs[0],))  # type: ignore[func-returns-value]

    run_pass(CountingTask(2), {"a": logging("a"), "b": logging("b")})
    assert order == ["a", "b", "b", "a"]


def test_a_broken_input_fails_for_all_and_the_pass_goes_on() -> None:
    outcome = run_pass(CountingTask(3, broken=[1]), {"a": FakeSession(doubling), "b": FakeSession(doubling)})
    failed = [record for record in outcome.records if record.failure]
    assert [(record.example.id, record.configuration) for record in failed] == [("e1", "a"), ("e1", "b")]
    assert failed[0].failure is not None
    assert failed[0].failure.stage == "input"
    assert (outcome.failed_examples, outcome.stopped) == (1, None)


def test_a_failed_inference_costs_one_example_of_one_configuration() -> None:
    outcome = run_pass(CountingTask(4), {"a": FakeSession(doubling), "b": FakeSession(failing_on_two)})
    failed = [record for record in outcome.records if record.failure]
    assert [(record.example.id, record.configuration) for record in failed] == [("e2", "b")]
    assert len(outcome.records) == 8


@pytest.mark.parametrize(("limit", "examples_run"), [(0, 1), (1, 2), (9, 4), (None, 4)])
def test_the_pass_stops_after_too_many_failures(limit: int | None, examples_run: int) -> None:
    outcome = run_pass(CountingTask(4, broken=range(4)), {"a": FakeSession(doubling)}, limit)
    assert len(outcome.records) == examples_run
    assert (outcome.stopped is not None) == (examples_run < 4)


def test_ctrl_c_keeps_the_finished_examples() -> None:
    def interrupted(inputs: Sequence[Array]) -> tuple[Array, ...]:
        if inputs[0][0] == 2:
            raise KeyboardInterrupt
        return (inputs[0],)

    outcome = run_pass(CountingTask(4), {"a": FakeSession(doubling), "b": FakeSession(interrupted)})
    assert [record.example.index for record in outcome.records] == [0, 0, 1, 1]
    assert outcome.interrupted


def test_progress_is_told_after_every_example() -> None:
    told: list[int] = []
    run_pass(CountingTask(3, broken=[1]), {"a": FakeSession(doubling)}, None, told.append)
    assert told == [0, 1, 1]
