"""A session that is opened again when its process ends: what one input costs, and what it never costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from evaltools.delegates.gpu import GPU
from evaltools.errors import ConfigurationUnavailable, InferenceError, SessionEnded
from evaltools.runtime import Inference, ProcessSession
from evaltools.runtime.process.restarting import RestartingSession
from evaltools.runtime.session import Array, Crashes
from tests.runtime.fake import FakeSession

ANSWER = "answers"
WRONG = "node 7 failed"
DIES = "died"
HANGS = "hung"
Plan = Callable[[int, int], str]
"""What becomes of an input in the process of a number, from 0."""


class Process(FakeSession):
    """Answers with its input until it ends; then nothing can be run on it, as in a child process that has died."""

    def __init__(self, number: int, plan: Plan) -> None:
        super().__init__(lambda inputs: tuple(inputs))
        self.number = number
        self.plan = plan
        self.ended: SessionEnded | None = None
        self.tried: list[int] = []

    @property
    def crashes(self) -> Crashes:
        return Crashes() if self.ended is None else Crashes(1, str(self.ended))

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        assert not self.closed, "a closed session must not be run"
        if self.ended is not None:
            raise self.ended
        value = int(inputs[0])
        self.tried.append(value)
        fate = self.plan(self.number, value)
        if fate in (DIES, HANGS):
            self.ended = SessionEnded(f"process {self.number} {fate} at {value}", hung=fate == HANGS)
            raise self.ended
        if fate == WRONG:
            raise InferenceError(WRONG)
        return super().run(inputs, invocations)


class Processes:
    """Opens the first process and those that take its place; remembers them. Some cannot be opened."""

    def __init__(
        self,
        plan: Plan,
        kind: type[Process] = Process,
        unavailable: Sequence[int] = (),
        crash_when_opened: bool = False,
    ) -> None:
        self.plan = plan
        self.crash_when_opened = crash_when_opened
        self.kind = kind
        self.unavailable = unavailable
        self.opened: list[Process] = []
        self.asked = 0

    def __call__(self) -> Process:
        self.asked += 1
        if self.asked - 1 in self.unavailable:
            raise ConfigurationUnavailable("no GPU here any more", GPU.name, crashed=self.crash_when_opened)
        self.opened.append(self.kind(self.asked - 1, self.plan))
        return self.opened[-1]

    def session(self) -> RestartingSession:
        return RestartingSession(self(), self)

    @property
    def tried(self) -> list[list[int]]:
        return [process.tried for process in self.opened]


def one(value: int) -> list[Array]:
    return [np.array(value)]


def block(count: int) -> list[list[Array]]:
    return [one(value) for value in range(count)]


def words(outcomes: Sequence[Inference | InferenceError]) -> list[str]:
    """The value that came back, or the error."""
    return [str(entry) if isinstance(entry, InferenceError) else str(entry.outputs[0]) for entry in outcomes]


def dying_at(*values: int, in_processes: Sequence[int] = range(1000), how: str = DIES) -> Plan:
    return lambda number, value: how if value in values and number in in_processes else ANSWER


@pytest.mark.parametrize(
    ("fates", "came", "tried_later", "crashes"),
    [
        ([DIES], "2", [[2, 3, 4]], 1),
        ([DIES, DIES], "2", [[2], [2, 3, 4]], 2),
        ([DIES, DIES, DIES], "process 2 died at 2", [[2], [2], [3, 4]], 3),
        ([HANGS, HANGS], "process 1 hung at 2", [[2], [3, 4]], 2),
        ([DIES, DIES, HANGS], "process 2 hung at 2", [[2], [2], [3, 4]], 3),
        ([DIES, WRONG], WRONG, [[2, 3, 4]], 1),
        ([WRONG], WRONG, [], 0),
    ],
)
def test_a_block_at_which_the_process_ended_goes_on_one_by_one(
    fates: list[str], came: str, tried_later: list[list[int]], crashes: int
) -> None:
    """An input that ends a process by itself is tried once more, unless that hung; what the last try gives counts."""
    processes = Processes(lambda number, value: [*fates, ANSWER, ANSWER, ANSWER][number] if value == 2 else ANSWER)
    session = processes.session()
    outcomes = session.run_block(block(5))
    assert words(outcomes) == ["0", "1", came, "3", "4"]
    assert isinstance(outcomes[2], SessionEnded) == came.startswith("process")
    assert processes.tried[1:] == tried_later
    first = "" if not crashes else f"process 0 {fates[0]} at 2"
    assert session.crashes == Crashes(crashes, first)
    assert [process.closed for process in processes.opened] == [True] * len(tried_later) + [False]


@pytest.mark.parametrize("seed", range(6))
def test_outcomes_stand_in_the_order_of_their_inputs(seed: int) -> None:
    """Whatever happens to each process at each input; every outcome tells which input it is of."""
    chance = np.random.default_rng(seed)
    fates = {
        (number, value): str(chance.choice([ANSWER, DIES, HANGS], p=[0.7, 0.2, 0.1]))
        for number in range(50)
        for value in range(12)
    }
    processes = Processes(lambda number, value: fates[number, value])
    outcomes = processes.session().run_block(block(12))
    assert [text.rpartition(" ")[2] for text in words(outcomes)] == [str(value) for value in range(12)]
    for value in range(12):
        answered = sum(
            value in process.tried and fates[process.number, value] == ANSWER for process in processes.opened
        )
        assert isinstance(outcomes[value], Inference) <= (answered > 0)


def test_one_that_is_not_open_opens_a_process_with_its_first_run() -> None:
    processes = Processes(dying_at())
    like = processes()
    session = RestartingSession(like, processes, is_open=False)
    assert processes.asked == 1
    session.run(one(0))
    session.run(one(1))
    assert processes.tried == [[], [0, 1]]
    session.close()
    assert [process.closed for process in processes.opened] == [False, True]
    assert session.crashes == Crashes()


@pytest.mark.parametrize("crash_when_opened", [False, True])
def test_where_no_process_can_be_started_again_that_is_told_and_others_are_still_tried(crash_when_opened: bool) -> None:
    processes = Processes(dying_at(1, in_processes=[0]), unavailable=[1, 2], crash_when_opened=crash_when_opened)
    session = processes.session()
    found = words(session.run_block(block(3)))
    assert found == ["0", "its process could not be started again: no GPU here any more", "2"]
    assert session.crashes == Crashes(3 if crash_when_opened else 1, "process 0 died at 1")


def test_workers_that_share_it_run_one_block_at_a_time() -> None:
    running: list[int] = []
    most: list[int] = []

    def slow(number: int, value: int) -> str:
        running.append(value)
        most.append(len(running))
        time.sleep(0.001)
        running.pop()
        return DIES if value % 10 == 5 and number % 2 == 0 else ANSWER

    session = Processes(slow).session()
    found: dict[int, list[str]] = {}

    def work(worker: int) -> None:
        values = range(10 * worker, 10 * worker + 10)
        found[worker] = words(session.run_block([one(value) for value in values]))

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert max(most) == 1
    ended = [text for texts in found.values() for text in texts if "died" in text]
    assert all(text.endswith("5") for text in ended)
    assert [[text.rpartition(" ")[2] for text in found[worker]] for worker in range(4)] == [
        [str(value) for value in range(10 * worker, 10 * worker + 10)] for worker in range(4)
    ]


class Waiting(Process):
    """A run waits until the session is closed, and fails then, as where its process is killed."""

    def __init__(self) -> None:
        super().__init__(0, dying_at())
        self.started = threading.Event()
        self.released = threading.Event()
        self.closings = 0

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        self.started.set()
        assert self.released.wait(20)
        raise SessionEnded("killed")

    def close(self) -> None:
        self.closings += 1
        self.released.set()


def test_closed_during_a_run_that_run_fails_and_none_is_started_any_more() -> None:
    waiting, processes = Waiting(), Processes(dying_at())
    session = RestartingSession(waiting, processes)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(words(session.run_block(block(3)))))
    thread.start()
    assert waiting.started.wait(20)
    session.close()
    thread.join(20)
    assert found == ["the session was closed"] * 3
    assert (processes.asked, waiting.closings, session.crashes) == (0, 1, Crashes())


def test_closed_while_a_process_starts_that_process_is_ended_before_it_runs() -> None:
    opening, closed = threading.Event(), threading.Event()
    processes = Processes(dying_at(0, in_processes=[0]))

    def open_slowly() -> ProcessSession:
        opening.set()
        assert closed.wait(20)
        return processes()

    session = RestartingSession(processes(), open_slowly)
    found: list[str] = []
    thread = threading.Thread(target=lambda: found.extend(words(session.run_block(block(2)))))
    thread.start()
    assert opening.wait(20)
    session.close()
    closed.set()
    thread.join(20)
    assert found == ["the session was closed"] * 2
    assert [(process.tried, process.closed) for process in processes.opened][1:] == [([], True)]


@pytest.mark.parametrize("largest", [0, 1, 3, 4])
def test_the_peak_of_memory_is_that_of_the_largest_of_its_processes(largest: int) -> None:
    class Grown(Process):
        @property
        def peak_memory_kb(self) -> int:  # type: ignore[override]
            return 900 if self.number == largest else 100

    session = Processes(lambda _number, value: DIES if value in (2, 4) else ANSWER, Grown).session()
    for value in range(6):
        session.run_block([(np.array(value),)])
        if value == 3:
            assert session.peak_memory_kb == (900 if largest < 3 else 100)
    assert session.peak_memory_kb == 900
    session.close()
    assert session.peak_memory_kb == 900


def test_a_closed_one_refuses_to_run_and_may_be_closed_again() -> None:
    processes = Processes(dying_at())
    session = processes.session()
    session.close()
    session.close()
    with pytest.raises(SessionEnded, match="^the session was closed$"):
        session.run(one(0))
    assert [process.closed for process in processes.opened] == [True]
