"""Warm-up and regular runs, by the stopping rule of the native tool."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from evaltools.errors import InferenceError
from evaltools.metrics.latency import whole_us
from evaltools.result.rounds import Phase
from evaltools.runtime.session import Array, Session

_NS_PER_S: Final = 1_000_000_000


class PhaseLimits(Struct, frozen=True):
    """A phase has at least ``min_runs`` runs and lasts at least ``min_secs`` seconds.

    No run begins after ``max_secs`` seconds.
    """

    min_runs: int
    min_secs: float
    max_secs: float


class RunPace(Struct, frozen=True):
    """How long to rest between runs.

    ``run_delay`` seconds after each, or so that ``run_frequency`` of them end per second.

    0 or less means no rest. Where both are given, the frequency counts.
    """

    run_delay: float = -1.0
    run_frequency: float = -1.0

    @property
    def longest_rest_s(self) -> float:
        """The longest rest after one run, in seconds."""
        return 1 / self.run_frequency if self.run_frequency > 0 else max(0.0, self.run_delay)


def run_phase(
    session: Session,
    inputs: Sequence[Array],
    limits: PhaseLimits,
    pace: RunPace = RunPace(),
    begun_ns: int = 0,
    clock: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], None] = time.sleep,
) -> Phase:
    """Run again and again on the same inputs; setting the inputs before each run is not part of its time.

    ``for run = 0; (run < min_runs or now < start + min_secs) and now <= start + max_secs; run++``, where ``now`` is
    read after each run and its rest. A run that fails counts, with the time that it took. ``clock`` returns
    nanoseconds. The phase's ``starts_us`` are whole microseconds since ``begun_ns``. Source: benchmark_model.cc,
    ``Run``.
    """
    phase = Phase()
    failed, failure = 0, None
    start = now = clock()
    earliest_end, latest_begin = start + limits.min_secs * _NS_PER_S, start + limits.max_secs * _NS_PER_S
    rest = _Rest(pace, start, sleep)
    with _no_garbage_collection():
        while (len(phase.invokes_us) < limits.min_runs or now < earliest_end) and now <= latest_begin:
            run_start_ns = clock()
            try:
                inference = session.run(inputs)
                invoke_us, read_us = inference.invokes_us[0], inference.read_us
            except InferenceError as error:
                failed, failure = failed + 1, str(error)
                invoke_us, read_us = (clock() - run_start_ns) / 1000, 0.0
            now = clock()
            phase.invokes_us.append(invoke_us)
            phase.reads_us.append(read_us)
            phase.starts_us.append((now - begun_ns) // 1000 - whole_us(invoke_us) - whole_us(read_us))
            if rest.after_run(now):
                now = clock()
    return Phase(phase.invokes_us, phase.reads_us, phase.starts_us, failed, failure)


class _Rest:
    """The rests between the runs of one phase."""

    def __init__(self, pace: RunPace, start_ns: int, sleep: Callable[[float], None]) -> None:
        self._delay_s = pace.run_delay
        self._period_ns = _NS_PER_S / pace.run_frequency if pace.run_frequency > 0 else 0.0
        self._next_end_ns = start_ns + self._period_ns
        self._sleep = sleep

    def after_run(self, now_ns: int) -> bool:
        """Sleep if a rest is due, and return whether it slept.

        Runs that are late are followed by no rest until they have caught up.
        """
        seconds = self._delay_s
        if self._period_ns:
            seconds = (self._next_end_ns - now_ns) / _NS_PER_S
            self._next_end_ns += self._period_ns
        if seconds <= 0:
            return False
        self._sleep(seconds)
        return True


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """A context without Python's garbage collection, which would make some of the runs longer."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
