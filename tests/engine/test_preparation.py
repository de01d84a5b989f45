"""Inputs that other processes make: the same as in this one, whatever becomes of those processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from evaltools.engine.preparation import InOtherProcess, InThisProcess, Preparer, ReadyExample, preparers
from evaltools.engine.steps import Failure, Prepared, Steps
from evaltools.errors import ImageError
from evaltools.runtime import TensorSpec
from evaltools.runtime.process.printed import LONGEST_PART
from evaltools.runtime.session import Array
from tests.processes import left_beside, supervisors

SHAPE = (2, 3)
MANY = 1000
INPUTS = (TensorSpec("floats", np.dtype("float32"), SHAPE),)
KILLED = "the process that decodes died while it made this input (SIGKILL, as when memory runs out)"


@dataclass(frozen=True)
class Recipe:
    """Makes ``[index, index, ..]``, or comes to an end as ``how`` says.

    Nothing else: ``killed`` and ``left`` end the process, ``hangs`` never does, ``broken`` and ``large`` raise,
    ``slow`` says in a file of ``folder`` which process runs it and takes long.
    ``copied`` forks, and its copy goes on once the next example is under way, which is ``overtaken`` by that.
    ``strange`` has a context that cannot be sent.
    ``speaks`` prints a line on stdout, ``shouts`` a megabyte, ``babbles`` never ends printing.
    """

    index: int
    how: str = ""
    folder: Path | None = None

    def __call__(self) -> Prepared:
        if self.how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "left":
            os._exit(7)
        if self.how == "hangs":
            time.sleep(1000)
        if self.how == "copied" and not os.fork():
            self.wait_for_next()
        if self.how == "overtaken" and self.note():
            os.wait()
        if self.how == "speaks":
            print(f"this is e{self.index}")
        if self.how == "shouts":
            print("x" * (1 << 20))
        while self.how == "babbles":
            print("x" * (1 << 10))
        if self.how == "broken":
            raise ImageError(f"e{self.index} is broken")
        if self.how == "large":
            raise MemoryError
        if self.how == "slow" and self.note():
            time.sleep(1000)
        arrays: tuple[Array, ...] = (np.full(SHAPE, self.index, np.float32),)
        if self.how == "odd":
            arrays = (np.full((50, 50), self.index), np.array([b"a", b""], object), np.array(True))
        context = (self.index, os.getpid(), *([threading.Lock()] if self.how == "strange" else []))
        return Prepared(arrays, context, (("decode", 5),))

    def wait_for_next(self) -> None:
        """Wait until the next example has said which process runs it."""
        assert self.folder is not None
        while not (self.folder / str(self.index + 1)).exists():
            time.sleep(0.01)

    def note(self) -> bool:
        """Say which process this is; false where that has been said."""
        assert self.folder is not None
        path = self.folder / str(self.index)
        if path.exists():
            return False
        unfinished = path.with_suffix(".part")
        unfinished.write_text(str(os.getpid()))
        unfinished.rename(path)
        return True


class Recipes:
    """Inputs that can be made anywhere; they are never run."""

    def __init__(self, fates: dict[int, str] | None = None, folder: Path | None = None) -> None:
        self.fates = fates or {}
        self.folder = folder

    @property
    def steps(self) -> Steps[int]:
        return Steps([f"e{index}" for index in range(1000)], self.prepare, nothing_observed, int, recipe=self.recipe)

    def recipe(self, example: int) -> Recipe:
        return Recipe(example, self.fates.get(example, ""), self.folder)

    def prepare(self, example: int) -> Prepared:
        return self.recipe(example)()


def nothing_observed(*_given: Any) -> int:
    raise AssertionError("nothing is observed here")


@contextmanager
def pool(task: Recipes, workers: int = 1, timeout_s: float = 60.0) -> Iterator[Sequence[Preparer]]:
    before = supervisors()
    with preparers(task.steps, INPUTS, workers, timeout_s, MANY) as makers:
        assert all(isinstance(maker, InOtherProcess) for maker in makers)
        yield makers
    assert left_beside(before) == set()


def made(maker: Preparer, *indices: int) -> list[str]:
    """What each example gave: its index from the input, or why there is none."""
    return [shown(ready) for ready in maker.make(indices)]


def shown(ready: ReadyExample) -> str:
    if isinstance(ready.prepared, Failure):
        assert (ready.prepared.stage, ready.prepared.crashed) == ("input", False)
        return ready.prepared.reason
    (values,) = ready.prepared.inputs
    assert (values.dtype, values.shape) == (np.dtype("float32"), SHAPE)
    assert (values == ready.example).all()
    assert ready.prepared.context[0] == ready.example
    assert ready.duration_us >= 0
    return str(ready.example)


def wait_for(path: Path) -> int:
    """The process that wrote it."""
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, "the recipe was never run"
        time.sleep(0.01)
    return int(path.read_text())


def in_threads(*work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=one) for one in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_inputs_are_those_that_this_process_makes() -> None:
    task = Recipes({2: "odd", 3: "broken", 4: "large"})
    reasons = {3: "e3 is broken", 4: "there is not enough memory to make its input"}
    examples = range(5)
    here = InThisProcess(task.prepare).make(examples)
    with pool(task) as (maker,):
        for _ in range(2):
            there = maker.make(examples)
            for one, other in zip(here, there, strict=True):
                assert one.example == other.example
                if not isinstance(one.prepared, Prepared) or not isinstance(other.prepared, Prepared):
                    assert one.prepared == other.prepared == Failure("input", reasons[one.example])
                    continue
                assert other.prepared.steps == (("decode", 5),)
                assert other.prepared.context[1] != os.getpid()
                for mine, theirs in zip(one.prepared.inputs, other.prepared.inputs, strict=True):
                    assert (theirs.dtype, theirs.shape) == (mine.dtype, mine.shape)
                    assert theirs.tolist() == mine.tolist()


def test_an_input_whose_context_cannot_be_sent_is_made_here() -> None:
    with pool(Recipes({1: "strange"})) as (maker,):
        found = maker.make([0, 1])
    assert [shown(ready) for ready in found] == ["0", "1"]
    processes = [ready.prepared.context[1] for ready in found if isinstance(ready.prepared, Prepared)]
    assert [process == os.getpid() for process in processes] == [False, True]


@pytest.mark.parametrize("workers", [1, 2])
def test_idle_processes_that_are_killed_cost_nothing(workers: int) -> None:
    task = Recipes()
    before = supervisors()
    with pool(task, workers) as makers:
        for _ in range(2):
            for supervisor in supervisors() - before:
                os.kill(supervisor, signal.SIGKILL)
            assert made_at_once(makers, task) == {number: [str(number), str(number + 5)] for number in range(workers)}


def made_at_once(makers: Sequence[Preparer], task: Recipes) -> dict[int, list[str]]:
    """What each worker gets that asks for the example of its number, and the fifth after that."""
    found: dict[int, list[str]] = {}

    def work(number: int) -> None:
        found[number] = made(makers[number], number, number + 5)

    in_threads(*(partial(work, number) for number in range(len(makers))))
    return found


def test_a_busy_process_that_is_killed_costs_one_try(tmp_path: Path) -> None:
    """The examples of its block are made one by one then; the one that was under way is tried once more."""
    task = Recipes({1: "slow"}, tmp_path)
    found: list[str] = []
    with pool(task) as (maker,):
        in_threads(
            lambda: found.extend(made(maker, 0, 1, 2)),
            lambda: os.kill(wait_for(tmp_path / "1"), signal.SIGKILL),
        )
    assert found == ["0", "1", "2"]


def test_a_process_that_a_copy_of_its_own_disturbed_or_that_was_killed_costs_no_example(tmp_path: Path) -> None:
    task = Recipes({1: "slow", 2: "copied", 3: "overtaken"}, tmp_path)
    found: list[str] = []
    with pool(task) as (maker,):
        assert made(maker, 0) == ["0"]
        in_threads(lambda: found.extend(made(maker, 1)), lambda: os.kill(wait_for(tmp_path / "1"), signal.SIGKILL))
        assert found == ["1"]
        assert [made(maker, index) for index in (2, 3, 4)] == [["2"], ["3"], ["4"]]


def test_what_a_recipe_prints_goes_to_stderr_and_is_no_reason_of_another(capfd: pytest.CaptureFixture[str]) -> None:
    task = Recipes({1: "speaks", 3: "speaks", 4: "killed"})
    with pool(task) as (maker,):
        assert made(maker, 0, 1, 2, 3) == ["0", "1", "2", "3"]
        assert made(maker, 4) == [KILLED]
    assert capfd.readouterr() == ("", "this is e1\nthis is e3\n")


def test_of_what_recipes_print_a_bounded_part_is_kept(capfd: pytest.CaptureFixture[str]) -> None:
    task = Recipes(dict.fromkeys(range(6), "shouts"))
    with pool(task) as (maker,):
        for index in range(6):
            assert made(maker, index) == [str(index)]
    assert 2 * LONGEST_PART <= len(capfd.readouterr().err) / 6 <= 1 << 20


def test_what_happens_to_one_worker_costs_the_others_nothing() -> None:
    """Nor does one that never ends printing."""
    fates = {4: "killed", 7: "broken", 11: "hangs", 18: "left", 21: "killed", 25: "babbles"}
    task = Recipes(fates)
    reasons = {
        "killed": KILLED,
        "hangs": "no answer within 4 s while it made this input; it was ended; --example_timeout=SECONDS allows more",
        "left": "the process that decodes died while it made this input (exit code 7)",
        "broken": "e7 is broken",
        "babbles": "no answer within 4 s while it made this input; it printed last: ",
    }
    found: dict[int, str] = {}
    with pool(task, workers=3, timeout_s=4.0) as makers:

        def work(number: int) -> None:
            for start in range(10 * number, 10 * number + 10, 2):
                found.update(zip((start, start + 1), made(makers[number], start, start + 1), strict=True))

        in_threads(*(partial(work, number) for number in range(3)))
    printed = found.pop(25)
    assert printed.startswith(reasons[fates.pop(25)])
    assert found == {
        index: reasons[fates[index]] if index in fates else str(index) for index in range(30) if index != 25
    }


def test_without_memory_to_share_inputs_are_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("evaltools.engine.preparation.SharedArrays", full)
    steps = Recipes().steps
    with preparers(steps, INPUTS, 2, 60.0, MANY) as makers:
        assert [made(maker, 3, 4) for maker in makers] == [["3", "4"]] * 2
        assert {type(maker) for maker in makers} == {InThisProcess}


BOUND = replace(Recipes().steps, recipe=None)


@pytest.mark.parametrize(("steps", "examples"), [(BOUND, MANY), (Recipes().steps, 10)], ids=["cannot travel", "few"])
def test_what_cannot_travel_or_is_not_worth_a_process_is_prepared_here(steps: Steps[int], examples: int) -> None:
    with preparers(steps, INPUTS, 2, 60.0, examples) as makers:
        assert [type(maker) for maker in makers] == [InThisProcess] * 2
