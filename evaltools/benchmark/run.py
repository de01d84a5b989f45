"""Measures every model with every configuration, in turns, each time in a fresh process."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol

from evaltools.benchmark.disturbances import find_disturbances
from evaltools.benchmark.measured import open_measured, opening_of, outputs_of, profile_of, run_regular, run_warm_up
from evaltools.benchmark.options import BenchmarkOptions, Candidate
from evaltools.configuration import Configuration
from evaltools.engine import NotMeasured, Opened, open_configuration
from evaltools.errors import DelegateTookNothing, EvaltoolsError, InferenceError
from evaltools.metrics.op_profile import OpProfile
from evaltools.model import ModelFile
from evaltools.report.assemble import describe_entry
from evaltools.report.benchmark_figures import figures_of
from evaltools.report.benchmark_result import BenchmarkRow, Phase, Round
from evaltools.runtime import Session
from evaltools.runtime.isolated import IsolatedSession, open_isolated
from evaltools.runtime.session import Array, Opening
from evaltools.stats.latency_ratio import drift

_INTERRUPTED: Final = "it was interrupted"
Inputs = tuple[Array, ...]


class Watcher(Protocol):
    """Is told what happens while it happens; numbers of rounds begin with 0."""

    def begins(self, candidate: Candidate, number: int) -> None:
        """A round of a candidate begins."""

    def opened(self, row: BenchmarkRow, opening: Opening) -> None:
        """Its model was loaded; ``row`` says with what."""

    def warmed_up(self, phase: Phase) -> None:
        """The warm-up is over."""

    def measured(self, candidate: Candidate, found: Round) -> None:
        """The round is over."""

    def failed(self, candidate: Candidate, reason: str) -> None:
        """The candidate cannot be measured."""

    def profiled(self, profile: OpProfile, opening: Opening) -> None:
        """The operators were profiled."""


@dataclass
class _Entry:
    """What is known of a candidate so far."""

    candidate: Candidate
    row: BenchmarkRow
    rounds: list[Round] = field(default_factory=list)
    outputs: tuple[Array, ...] | None = None


@dataclass(frozen=True)
class Benchmarked:
    """The rows in the order of the candidates, and the outputs of each that were asked for."""

    rows: list[BenchmarkRow]
    outputs: list[tuple[Array, ...] | None]
    interrupted: bool


def run_benchmark(
    candidates: Sequence[Candidate], options: BenchmarkOptions, inputs: Sequence[Inputs], watcher: Watcher
) -> Benchmarked:
    """Measure; a candidate that fails costs only itself. Ctrl-C ends it with what was measured so far.

    ``inputs`` are those of each model, by its number.
    """
    entries = [_Entry(candidate, _unmeasured(candidate)) for candidate in candidates]
    interrupted = False
    try:
        for number in range(options.rounds):
            turn = [entry for entry in entries if entry.row.status == "measured" or number == 0]
            if options.shuffle:
                random.shuffle(turn)
            for entry in turn:
                time.sleep(max(0.0, options.delay_s))
                _measure(entry, number, options, inputs[entry.candidate.number], watcher)
    except KeyboardInterrupt:
        interrupted = True
    rows = [_finished(entry) for entry in entries]
    return Benchmarked(rows, [entry.outputs for entry in entries], interrupted)


def _measure(entry: _Entry, number: int, options: BenchmarkOptions, values: Inputs, watcher: Watcher) -> None:
    """One round of one candidate."""
    candidate = entry.candidate
    watcher.begins(candidate, number)
    begun_ns = time.perf_counter_ns()
    opened = _open(candidate, options)
    process_us = (time.perf_counter_ns() - begun_ns) // 1000
    entry.row = _described(candidate, opened)
    if isinstance(opened, NotMeasured):
        watcher.failed(candidate, opened.reason)
        return
    session = opened.session
    assert isinstance(session, IsolatedSession)
    try:
        if options.require_full_delegation:
            _require_full_delegation(session)
        found = _round(session, values, entry.row, process_us, options, watcher)
        entry.rounds.append(found)
        watcher.measured(candidate, found)
        if found.regular.failure is not None:
            failed = f"{found.regular.failed_runs} of {len(found.regular.invokes_us)} runs failed"
            raise InferenceError(f"{failed}: {found.regular.failure}")
        if number == options.rounds - 1:
            _last_words(entry, opened, values, options, watcher)
    except EvaltoolsError as error:
        entry.row = replace(entry.row, status="failed", reason=str(error))
        watcher.failed(candidate, str(error))
    finally:
        session.close()


def _open(candidate: Candidate, options: BenchmarkOptions) -> Opened | NotMeasured:
    opener = partial(open_measured, affinity=options.affinity, memory_interval_ms=options.memory_interval_ms)

    def isolated(model: ModelFile, configuration: Configuration) -> Session:
        return open_isolated(model, configuration, options.timeout_s, opener)

    return open_configuration(candidate.model, candidate.configuration, isolated, options.allow_fallback)


def _round(
    session: IsolatedSession,
    inputs: Inputs,
    row: BenchmarkRow,
    process_us: int,
    options: BenchmarkOptions,
    watcher: Watcher,
) -> Round:
    opening = session.call(opening_of)
    watcher.opened(row, opening)
    warm_limits, limits = options.phases
    warm_up = session.call(run_warm_up, inputs, warm_limits, options.pace, timeout_s=warm_limits.max_secs)
    watcher.warmed_up(warm_up)
    if warm_up.failure is not None:
        raise InferenceError(
            f"{warm_up.failed_runs} of {len(warm_up.invokes_us)} warm-up runs failed: {warm_up.failure}"
        )
    regular = session.call(run_regular, inputs, limits, options.pace, timeout_s=limits.max_secs)
    trend = drift(regular.phase.invokes_us)
    return Round(
        opening=opening,
        warm_up=warm_up,
        regular=regular.phase,
        memory=regular.memory,
        before=regular.before,
        after=regular.after,
        disturbances=find_disturbances(regular.before, regular.after, trend, os.cpu_count()),
        process_start_us=max(0, process_us - opening.import_us - opening.total_us),
    )


def _last_words(entry: _Entry, opened: Opened, inputs: Inputs, options: BenchmarkOptions, watcher: Watcher) -> None:
    """What is asked for beside times, after all times were taken."""
    session = opened.session
    assert isinstance(session, IsolatedSession)
    if options.keep_outputs and not options.dry_run:
        entry.outputs = session.call(outputs_of, inputs)
    if options.profile_runs:
        try:
            profile = session.call(profile_of, opened.model, opened.running, inputs, options.profile_runs)
        except EvaltoolsError as error:
            entry.row = replace(entry.row, profile_failure=str(error))
        else:
            entry.row = replace(entry.row, profile=profile)
            watcher.profiled(profile, entry.rounds[-1].opening)


def _require_full_delegation(session: Session) -> None:
    """As the native tool: some delegate was asked for, and each that was runs everything in one piece."""
    proof = session.delegation
    asked_for = [entry for entry in proof.delegates if entry.requested]
    part = [entry for entry in asked_for if entry.partitions != 1 or entry.nodes != proof.total_nodes]
    if asked_for and not part:
        return
    took = ", ".join(f"{entry.delegate} {entry.nodes} of {proof.total_nodes} nodes" for entry in part)
    message = took or "no delegate was asked for"
    raise DelegateTookNothing(f"Disallowed CPU fallback detected (--require_full_delegation): {message}")


def _unmeasured(candidate: Candidate) -> BenchmarkRow:
    return _described(candidate, NotMeasured(candidate.configuration, _INTERRUPTED))


def _described(candidate: Candidate, opened: Opened | NotMeasured) -> BenchmarkRow:
    entry = describe_entry(opened, "test")
    return BenchmarkRow(
        model=candidate.number,
        name=entry.name,
        flags=entry.flags,
        num_threads=entry.num_threads,
        status="measured" if entry.status == "measured" else "failed",
        reason=entry.reason,
        cannot_exist=entry.cannot_exist,
        runtime=entry.runtime,
        delegates=entry.delegates,
        delegation=entry.delegation,
        fallback=entry.fallback,
    )


def _finished(entry: _Entry) -> BenchmarkRow:
    figures = figures_of(entry.rounds) if entry.rounds else None
    if figures is None and entry.row.status == "measured":
        return replace(entry.row, status="failed", reason=_INTERRUPTED)
    return replace(entry.row, rounds=entry.rounds, figures=figures)
