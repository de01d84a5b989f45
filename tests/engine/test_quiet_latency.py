"""Latency in quiet: which examples, in which turns, and what is left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evaltools.engine.preparation import ReadyExample
from evaltools.engine.quiet_latency import (
    QuietTime,
    QuietTimes,
    Taken,
    examples_for_latency,
    invoke_times,
    measure_in_quiet,
    pooled,
    scattered,
    times_with_reading,
)
from evaltools.engine.steps import Failure, Prepared
from evaltools.errors import ImageError, InferenceError
from evaltools.runtime import Inference
from evaltools.runtime.session import Array
from tests.runtime.fake import FakeSession

EXAMPLES = range(1000)


class Making:
    """Makes the index of an example its input; some examples have none."""

    def __init__(self, broken: Sequence[int] = ()) -> None:
        self.broken = broken
        self.made: list[int] = []

    def make(self, examples: Sequence[int]) -> list[ReadyExample]:
        (example,) = examples
        self.made.append(example)
        failed = Failure("input", str(ImageError("is broken")))
        prepared = Prepared((np.array(example),))
        return [ReadyExample(example, failed if example in self.broken else prepared, 0, 0)]

    def close(self) -> None:
        """Nothing is under way."""


class Timed(FakeSession):
    """Invocation k of example i takes 1000 * i + k us, reading 5 us; remembers who ran what when."""

    def __init__(self, name: str, log: list[tuple[str, int]], before: Callable[[int], None] = lambda _: None) -> None:
        super().__init__(lambda inputs: tuple(inputs))
        self.name = name
        self.log = log
        self.before = before

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        index = int(inputs[0])
        self.log.append((self.name, index))
        self.before(index)
        return Inference((), tuple(1000 * index + count for count in range(invocations)), 5)


@pytest.mark.parametrize(
    ("count", "wanted", "chosen"),
    [
        (1000, None, 100),
        (5000, None, 100),
        (500, None, 50),
        (30, None, 10),
        (7, None, 7),
        (0, None, 0),
        (1000, 3, 3),
        (1000, 1, 1),
        (1000, 0, 0),
        (1000, 250, 250),
        (5, 20, 5),
    ],
)
def test_a_tenth_of_the_examples_or_as_many_as_were_asked_for(count: int, wanted: int | None, chosen: int) -> None:
    found = examples_for_latency(range(count), wanted)
    assert len(set(found)) == len(found) == chosen
    assert found == sorted(found)
    if chosen > 1:
        gaps = np.diff(found)
        assert (found[0], found[-1]) == (0, count - 1)
        assert gaps.max() - gaps.min() <= 1, "spread evenly"


def test_configurations_take_turns_and_the_first_run_of_each_does_not_count() -> None:
    log: list[tuple[str, int]] = []
    maker = Making()
    steps: list[int] = []
    found = measure_in_quiet(
        maker, {name: Timed(name, log) for name in "ab"}, EXAMPLES[3:6], 2, lambda: steps.append(len(log))
    )
    assert log == [("a", 3), ("b", 3), ("b", 3), ("a", 3), ("a", 4), ("b", 4), ("b", 5), ("a", 5)]
    assert maker.made == [3, 3, 4, 5]
    assert steps == [4, 6, 8]
    taken = [QuietTime(index, (1000 * index, 1000 * index + 1), 1000 * index + 6) for index in (3, 4, 5)]
    assert found == QuietTimes(3, {"a": taken, "b": taken})


@pytest.mark.parametrize(("is_enough", "expected"), [(True, 40), (False, 45)])
def test_after_forty_examples_it_ends_if_they_are_enough(is_enough: bool, expected: int) -> None:
    examples = range(45)
    asked: list[int] = []

    def look(taken: Taken) -> bool:
        asked.append(len(taken["a"]))
        return is_enough

    found = measure_in_quiet(Making(), {"a": Timed("a", [])}, examples, 1, is_enough=look)
    assert asked == [40]
    assert found.examples == len(found.taken["a"]) == expected


@pytest.mark.parametrize("count", [0, 1, 41, 57, 100])
def test_the_first_forty_examples_are_spread_over_all(count: int) -> None:
    order = scattered(range(count))
    assert sorted(order) == list(range(count))
    assert np.diff([-1, *sorted(order[:40]), count]).max() <= max(1, 3 * count / 40)


def test_failures_are_left_out_for_whom_they_concern() -> None:
    def fail(index: int) -> None:
        if index == 2:
            raise InferenceError("node 7 failed")

    log: list[tuple[str, int]] = []
    sessions = {"a": Timed("a", log), "b": Timed("b", log, fail)}
    found = measure_in_quiet(Making(broken=[1]), sessions, EXAMPLES[:4], 1)
    assert {name: [each.example for each in taken] for name, taken in found.taken.items()} == {
        "a": [0, 2, 3],
        "b": [0, 3],
    }
    assert (invoke_times(found.taken["a"]), invoke_times(found.taken["b"])) == ([0, 2000, 3000], [0, 3000])
    assert times_with_reading(found.taken["b"]) == [5, 3005]
    assert (found.examples, found.interrupted) == (4, False)


def test_ctrl_c_keeps_what_was_measured() -> None:
    def press(index: int) -> None:
        if index == 2:
            raise KeyboardInterrupt

    log: list[tuple[str, int]] = []
    found = measure_in_quiet(Making(), {"a": Timed("a", log), "b": Timed("b", log, press)}, EXAMPLES[:4], 1)
    assert (found.examples, found.interrupted) == (2, True)
    assert invoke_times(found.taken["b"]) == [0, 1000]


def test_processes_are_numbered_apart_but_where_all_share_one() -> None:
    parts = [
        QuietTimes(1, {"own": [QuietTime(0, (5,), 5)], "shared": [QuietTime(0, (7,), 7)]}),
        QuietTimes(2, {"own": [QuietTime(1, (6,), 6), QuietTime(3, (6,), 6)], "shared": [QuietTime(1, (8,), 8)]}),
    ]
    found = pooled(parts, lambda name, part: name == "shared")
    assert found.examples == 3
    assert [(each.example, each.process) for each in found.taken["own"]] == [(0, 0), (1, 1), (3, 1)]
    assert [(each.example, each.process) for each in found.taken["shared"]] == [(0, 0), (1, 0)]
    again = pooled([found, found])
    assert [each.process for each in again.taken["own"]] == [0, 1, 1, 2, 3, 3]
    assert not found.interrupted
    assert pooled([QuietTimes(interrupted=True)]).interrupted
