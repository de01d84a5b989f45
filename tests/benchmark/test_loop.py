"""The stopping rule of warm-up and regular runs, with a clock that the test moves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from evaltools.benchmark.loop import PhaseLimits, RunPace, run_phase
from evaltools.errors import InferenceError
from evaltools.result.rounds import Phase
from evaltools.runtime.session import Array, Inference
from tests.runtime.fake import FakeSession

MS = 1_000_000
INPUTS = (np.zeros(1, np.float32),)


class Clock:
    """Nanoseconds since the beginning, moved by runs and rests."""

    def __init__(self) -> None:
        self.now = 1000 * MS
        self.slept: list[float] = []

    def __call__(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += round(seconds * 1e9)


class Session(FakeSession):
    """Each run takes ``invoke_ms`` and reading 1 ms; some runs fail."""

    def __init__(self, clock: Clock, invoke_ms: Sequence[int], broken: Sequence[int] = ()) -> None:
        super().__init__(lambda inputs: tuple(inputs))
        self.clock, self.invoke_ms, self.broken, self.runs = clock, invoke_ms, broken, 0

    def run(self, inputs: Sequence[Array], invocations: int = 1) -> Inference:
        took = self.invoke_ms[self.runs % len(self.invoke_ms)]
        number, self.runs = self.runs, self.runs + 1
        self.clock.now += took * MS
        if number in self.broken:
            raise InferenceError(f"run {number} failed")
        self.clock.now += MS
        return Inference((), (took * 1000,), 1000)


def phase(
    limits: tuple[int, float, float],
    pace: RunPace | None = None,
    invoke_ms: Sequence[int] = (9,),
    broken: Sequence[int] = (),
) -> tuple[Phase, Clock]:
    clock = Clock()
    session = Session(clock, invoke_ms, broken)
    return run_phase(session, INPUTS, PhaseLimits(*limits), pace or RunPace(), 900 * MS, clock, clock.sleep), clock


@pytest.mark.parametrize(
    ("limits", "runs"),
    [
        ((5, 0.0, 150.0), 5),
        ((5, 0.1, 150.0), 10),
        ((1, 0.095, 150.0), 10),
        ((50, 1.0, 0.035), 4),
        ((0, 0.0, 150.0), 0),
        ((0, -1.0, 150.0), 0),
        ((-3, 0.0, 150.0), 0),
        ((5, 0.0, 0.0), 1),
        ((5, 0.0, -1.0), 0),
    ],
)
def test_at_least_so_many_runs_and_seconds_and_no_run_begins_too_late(
    limits: tuple[int, float, float], runs: int
) -> None:
    """A run takes 10 ms. The longest duration counts from the phase's start and never interrupts a run."""
    found, _ = phase(limits)
    assert len(found.invokes_us) == len(found.reads_us) == len(found.starts_us) == runs


def test_times_are_those_of_invoke_of_reading_and_of_its_beginning() -> None:
    found, _ = phase((3, 0.0, 150.0), invoke_ms=(9, 4, 2))
    assert (found.invokes_us, found.reads_us) == ([9000, 4000, 2000], [1000, 1000, 1000])
    assert found.starts_us == [100_000, 110_000, 115_000]
    assert (found.failed_runs, found.failure) == (0, None)


def test_a_delay_follows_every_run_and_counts_for_the_duration() -> None:
    found, clock = phase((1, 0.05, 150.0), RunPace(run_delay=0.02))
    assert clock.slept == [0.02, 0.02]
    assert len(found.invokes_us) == 2


def test_a_frequency_goes_before_the_delay_and_late_runs_catch_up() -> None:
    """20 ms per run from the start on; the second run takes 50 ms, and those behind it do not wait."""
    found, clock = phase((5, 0.0, 150.0), RunPace(run_delay=1.0, run_frequency=50.0), invoke_ms=(9, 49, 9, 9, 9))
    assert clock.slept == [0.01]
    assert found.starts_us == [100_000, 120_000, 170_000, 180_000, 190_000]


def test_failed_runs_count_and_the_last_reason_is_kept() -> None:
    found, _ = phase((4, 0.0, 150.0), broken=[1, 2])
    assert found.invokes_us == [9000, 9000, 9000, 9000]
    assert (found.failed_runs, found.failure) == (2, "run 2 failed")
