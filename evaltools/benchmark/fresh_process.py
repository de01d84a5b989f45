"""One round of one candidate, in a process that is started for it: opening, warm-up, regular runs."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.benchmark.disturbances import find_disturbances
from evaltools.benchmark.loop import PhaseLimits
from evaltools.benchmark.request import BenchmarkOptions, Candidate, Inputs
from evaltools.benchmark.self_measuring import (
    open_measured,
    opening_of,
    outputs_of,
    profile_of,
    run_regular,
    run_warm_up,
)
from evaltools.configuration import Configuration
from evaltools.engine.opening import NotMeasured, Opened, describe_row, open_configuration
from evaltools.engine.sampling import LoadOverTime
from evaltools.errors import EvaltoolsError, InferenceError, SessionEnded
from evaltools.metrics.latency import drift
from evaltools.metrics.op_profile import Opening, OpProfile
from evaltools.model import ModelFile
from evaltools.result.metrics import figures_of
from evaltools.result.result import Row
from evaltools.result.rounds import Measured, Phase, Round
from evaltools.runtime.delegation import require_full_delegation
from evaltools.runtime.process.isolated import IsolatedSession, open_isolated

_ONE_RUN: Final = PhaseLimits(1, 0.0, 0.0)
_PROFILER_AT_MOST: Final = 30
"""How many times as long as others a profiled run may take; models that call graphs often come near it."""


class Watcher:
    """Its methods are called while the rounds of a benchmark go on, for instance to show progress; these do nothing."""

    def begins(self, candidate: Candidate, round_number: int) -> None:
        """A round of a candidate begins; rounds are counted from 0."""

    def opened(self, row: Row, opening: Opening) -> None:
        """The candidate's model was loaded; ``row`` says with which runtime and delegates."""

    def warmed_up(self, phase: Phase) -> None:
        """The warm-up is over."""

    def measured(self, found: Round) -> None:
        """The round is over."""

    def failed(self, candidate: Candidate, reason: str) -> None:
        """The candidate cannot be measured, for the reason in its row."""

    def profiled(self, profile: OpProfile, opening: Opening) -> None:
        """The operators were profiled."""

    def finished(self) -> None:
        """Everything is measured; from here on Ctrl-C would lose the result."""


class CandidateProgress(Struct):
    """What is known of a candidate so far, written down as soon as it is known; ``row`` has no figures."""

    candidate: Candidate
    row: Row
    rounds: list[Round] = field(default_factory=list)
    outputs: Inputs | None = None
    profile: OpProfile | None = None
    profile_failure: str = ""

    def fail(self, row: Row, reason: str) -> None:
        """From now on the row is not measured: ``row``, unless earlier rounds ran, for what they ran with stays."""
        self.row = replace(self.row if self.rounds else row, status="not measured", reason=reason)

    @property
    def measured(self) -> Measured:
        """All of it, but for the outputs."""
        return Measured(self.row, self.rounds, [], self.profile, self.profile_failure)


def measure_in_fresh_process(
    progress: CandidateProgress, inputs: Inputs, options: BenchmarkOptions, turn: int, is_last: bool, watcher: Watcher
) -> None:
    """Measure one round of a candidate; ``turn`` is its place among all rounds.

    The last round also gives the outputs and the profile of operators, where they are asked for. After any
    failure the row is not measured; nothing is raised.
    """
    candidate = progress.candidate
    begun_ns = time.perf_counter_ns()
    opened = _open(candidate, options)
    process_us = (time.perf_counter_ns() - begun_ns) // 1000
    row = describe_row(opened, candidate.model_number)
    if isinstance(opened, NotMeasured):
        progress.fail(row, opened.reason)
        return
    session = opened.session
    assert isinstance(session, IsolatedSession)
    try:
        if options.require_full_delegation:
            require_full_delegation(session.delegation)
        found = _round(session, inputs, row, process_us, options, turn, watcher)
        progress.row = row
        progress.rounds.append(found)
        _require_success(found.regular, "runs")
        if is_last:
            _add_extras(progress, opened, inputs, options, watcher)
    except SessionEnded as error:
        session.close()
        crashed = replace(row, figures=figures_of({"crashes": 1}))
        progress.fail(crashed if progress.rounds or _can_run(candidate, inputs, options) else row, str(error))
    except EvaltoolsError as error:
        progress.fail(row, str(error))
    finally:
        session.close()
    if session.not_clean:
        progress.fail(row, session.not_clean)


def _can_run(candidate: Candidate, inputs: Inputs, options: BenchmarkOptions) -> bool:
    """Whether another process ends one run: then it was in a later one that the process died, else in every first."""
    opened = _open(candidate, options)
    if isinstance(opened, NotMeasured):
        return False
    session = opened.session
    assert isinstance(session, IsolatedSession)
    try:
        return session.call(run_warm_up, inputs, _ONE_RUN, options.pace).failure is None
    except EvaltoolsError:
        return False
    finally:
        session.close()


def _open(candidate: Candidate, options: BenchmarkOptions) -> Opened | NotMeasured:
    opener = partial(open_measured, memory_interval_ms=options.memory_interval_ms)

    def isolated(model: ModelFile, configuration: Configuration) -> IsolatedSession:
        return open_isolated(model, configuration, options.timeout_s, opener, "--example_timeout")

    try:
        return open_configuration(candidate.model, candidate.configuration, isolated, options.allow_fallback)
    except EvaltoolsError as error:
        return NotMeasured(candidate.configuration, str(error))


def _round(
    session: IsolatedSession,
    inputs: Inputs,
    row: Row,
    process_us: int,
    options: BenchmarkOptions,
    turn: int,
    watcher: Watcher,
) -> Round:
    opening = session.call(opening_of)
    watcher.opened(row, opening)
    warm_limits, limits = options.phases
    rest_s = options.pace.longest_rest_s
    warm_up = session.call(run_warm_up, inputs, warm_limits, options.pace, timeout_s=warm_limits.max_secs + rest_s)
    watcher.warmed_up(warm_up)
    _require_success(warm_up, "warm-up runs")
    with LoadOverTime(lambda: _own_processes(session)) as others:
        regular = session.call(run_regular, inputs, limits, options.pace, timeout_s=limits.max_secs + rest_s)
    trend = drift(regular.phase.invokes_us)
    found = Round(
        turn=turn,
        opening=opening,
        warm_up=warm_up,
        regular=regular.phase,
        memory=regular.memory,
        before=regular.before,
        after=regular.after,
        disturbances=find_disturbances(regular.before, regular.after, trend, threads=row.num_threads),
        process_start_us=max(0, process_us - opening.import_us - opening.total_us),
        load=others.load,
    )
    watcher.measured(found)
    return found


def _own_processes(session: IsolatedSession) -> list[int]:
    child = session.process_id
    return [os.getpid()] if child is None else [os.getpid(), child]


def _require_success(phase: Phase, what: str) -> None:
    if phase.failure is not None:
        raise InferenceError(f"{phase.failed_runs} of {len(phase.invokes_us)} {what} failed: {phase.failure}")


def _add_extras(
    progress: CandidateProgress, opened: Opened, inputs: Inputs, options: BenchmarkOptions, watcher: Watcher
) -> None:
    """Take outputs and the profile of operators, where they are asked for, after all times were measured."""
    session = opened.session
    assert isinstance(session, IsolatedSession)
    last = progress.rounds[-1]
    if options.keep_outputs:
        progress.outputs = session.call(outputs_of)
    if not options.profile_runs:
        return
    slowest_s = max([0, *last.warm_up.invokes_us, *last.regular.invokes_us]) / 1e6
    longest_s = slowest_s * _PROFILER_AT_MOST * options.profile_runs
    try:
        profile = session.call(
            profile_of, opened.model, opened.running, inputs, options.profile_runs, timeout_s=longest_s
        )
    except EvaltoolsError as error:
        progress.profile_failure = str(error)
        return
    progress.profile = profile
    watcher.profiled(profile, last.opening)
