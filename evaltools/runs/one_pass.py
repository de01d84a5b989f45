"""What every evaluation measures on open configurations: it runs the pass, then measures latency on a quiet machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.engine.execution import sessions_of_workers, worker_count
from evaltools.engine.facts import PASS, PassFacts
from evaltools.engine.journal import Journal
from evaltools.engine.ledger import Ledger, PassOutcome, Tally, failures_of, finished_examples, outcome_of
from evaltools.engine.opening import OpenConfigurations
from evaltools.engine.preparation import InOtherProcess, Preparer, preparers
from evaltools.engine.quiet_latency import QuietTimes, Taken, examples_for_latency, measure_in_quiet, pooled, scattered
from evaltools.engine.records import Records
from evaltools.engine.run import Workers, run_examples
from evaltools.engine.sampling import LoadOverTime, MemoryOverTime, NamedProcess
from evaltools.engine.steps import Prepared, StageTimes
from evaltools.engine.trace import CaptureAnswers, Trace
from evaltools.errors import InferenceError
from evaltools.metrics.latency import FEWEST_PROCESSES, latency_ratio
from evaltools.result.execution import ExecutionUsed
from evaltools.result.facts import NOT_REPEATABLE, load_of_parts
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import BlockSession, OpenProcess, ProcessSession
from evaltools.runtime.session import Array, Crashes, Inference
from evaltools.signals import noted_interrupts
from evaltools.tasks.framework.observer import Observer, counted
from evaltools.tasks.framework.sound_reference import UnsoundExamples

_QUIET: Final = "latency in quiet"
_NARROW: Final = 1.05
RUNS_TO_REPEAT: Final = 3
"""Enough for what goes wrong in every third run."""
_ROUNDINGS: Final = 1e-5
"""The relative RMS that sums in another order may make of floats."""
STARTING: Final = "process"
CHECKS: Final = "checks"
OPENING: Final = "opening"
PROBING: Final = "probing"
FIRST_TURN: Final = "first_turn"


def run_pass(
    run: TaskRun,
    opened: OpenConfigurations,
    journal: Journal,
    observer: Observer,
    open_with: OpenProcess,
    startup: Startup,
) -> tuple[PassOutcome[Any], PassFacts]:
    """Run the pass with as many workers as fit, then measure latency in quiet.

    With one worker the pass itself is quiet, and there is no such phase unless it was asked for. The facts are not
    over yet.
    """
    here = _PassHere(run, opened, journal, observer, open_with)
    try:
        outcome = here.run(startup)
    finally:
        here.close()
    here.state(interrupted=outcome.stopped == "interrupted")
    return outcome, here.facts


class _PassHere:
    """A pass on sessions of this computer. ``facts`` are those so far, which the journal has, too."""

    def __init__(
        self, run: TaskRun, opened: OpenConfigurations, journal: Journal, observer: Observer, open_with: OpenProcess
    ) -> None:
        self._run, self._steps, self._journal, self._observer = run, run.steps, journal, observer
        self._execution: Final = run.request.execution
        self._examples: Final = self._execution.shard.numbers_of(len(self._steps.names))
        running = [entry.running for entry in opened.entries]
        count = worker_count(self._execution, running, run.keeps_state, len(self._examples))
        self._own: Sequence[Mapping[str, ProcessSession]] = (
            [opened.sessions] if run.keeps_state else sessions_of_workers(opened.entries, count, open_with)
        )
        self._sessions = [{name: run.wrap(name, session) for name, session in own.items()} for own in self._own]
        self._makers: Sequence[Preparer] = ()
        self._earlier: Final = PASS.read(journal) or PassFacts()
        self.facts = PassFacts()
        self.state(
            execution=ExecutionUsed(workers=count, one_worker=run.keeps_state),
            most_workers=max(count, self._earlier.most_workers),
            crashes=self._earlier.crashes,
            not_clean=self._earlier.not_clean,
            unsound=self._earlier.unsound,
        )

    def state(self, **more: Any) -> None:
        """Keep more facts, so that a run that is killed now goes on with them."""
        facts = replace(self.facts, **more)
        if facts != self.facts:
            self.facts = facts
            PASS.write(self._journal, facts)

    def run(self, startup: Startup) -> PassOutcome[Any]:
        """Run the examples, then what shows how far their figures can be relied on."""
        inputs = next(iter(self._sessions[0].values())).inputs
        timeout_s, count = self._execution.example_timeout_s, len(self._own)
        startup.mark(PROBING)
        with (
            preparers(self._steps, inputs, count, timeout_s, len(self._examples)) as self._makers,
            MemoryOverTime(self._processes) as memory,
        ):
            with LoadOverTime(self._process_ids) as load:
                outcome = self._run_examples(startup)
            loads = [load] if self.facts.execution.examples_run else []
            if outcome.stopped is None and self.facts.execution.examples_run and not self._steps.in_order:
                outcome = self._look_whether_repeatable(outcome)
            if outcome.stopped is None and (self.facts.most_workers > 1 or self._execution.latency_examples):
                with LoadOverTime(self._process_ids) as load_in_quiet:
                    outcome = self._measure_in_quiet(outcome)
                loads = [load_in_quiet] if load_in_quiet.has_seen_enough else [*loads, load_in_quiet]
            self.state(
                execution=replace(
                    self.facts.execution, startup_seconds=dict(startup.seconds), memory=memory.by_process
                ),
                peak_memory_kb=self._peak_memory_kb,
                load=load_of_parts([each.load for each in loads]),
            )
        return outcome

    def close(self) -> None:
        """Close all sessions, and keep what went wrong meanwhile."""
        for _, _, session in self._each_session():
            session.close()
        not_clean = dict(self.facts.not_clean)
        for _, name, session in self._each_session():
            if session.not_clean:
                not_clean.setdefault(name, session.not_clean)
        self.state(crashes=self._crashes, not_clean=not_clean)

    def _run_examples(self, startup: Startup) -> PassOutcome[Any]:
        """Do the examples that the journal does not have."""
        run, journal, names, total = self._run, self._journal, list(self._sessions[0]), len(self._examples)
        reference, unsound = run.request.reference_name, UnsoundExamples()
        steps = unsound.watching(self._steps)
        records = Records([(journal, "")], len(steps.names), steps.observation_type)
        ledger = Ledger(self._examples, names, reference, self._execution)
        tally, stages, start = Tally(failed=dict.fromkeys(names, 0)), StageTimes(), time.perf_counter()
        done: set[int] = set()
        if not run.keeps_state or len(journal.examples()) >= total:
            for example, failures in finished_examples(records, names, self._execution.max_crashes):
                ledger.add(example, failures)
                tally.add(failures)
                done.add(example)
        todo = [] if ledger.stopped else [example for example in self._examples if example not in done]
        sessions, makers = (self._sessions, self._makers) if todo else ([], [])
        with (
            self._observer.progress("", total) as on_progress,
            Trace(self._execution.trace) as trace,
            CaptureAnswers(journal.folder, self._processes) as answers,
            noted_interrupts() as interrupted,
            Workers(steps, sessions, makers, todo, ledger, reference, run.task.invocations) as workers,
        ):
            if done:
                on_progress(tally)
            for turn in run_examples(workers, journal, interrupted):
                startup.mark_once(FIRST_TURN)
                for each in turn.examples.values():
                    tally.add(failures_of(each))
                    on_progress(tally)
                stages.add(turn.spans, turn.inference)
                trace.add(turn.spans)
                answers.add(turn.spans, tally.done)
                self.state(crashes=self._crashes)
        journal.flush()
        self.state(
            execution=replace(
                self.facts.execution,
                examples_run=tally.done - len(done),
                stage_seconds=stages.seconds,
                bound=stages.bound,
                worker_seconds=[own for _, own in sorted(stages.by_worker.items())],
                inference_seconds=stages.inference,
            ),
            elapsed_s=time.perf_counter() - start,
            unsound=self._earlier.unsound + unsound.count,
            not_traced=trace.why_useless,
        )
        outcome = outcome_of(records, ledger, names, steps.names)
        return outcome.interrupted() if interrupted else outcome

    def _look_whether_repeatable(self, outcome: PassOutcome[Any]) -> PassOutcome[Any]:
        """Note the configurations that give other outputs when the input of the first example comes again."""
        try:
            prepared = self._makers[0].make(self._examples[:1])[0].prepared
            changing = [
                name
                for name, session in self._usable(self._sessions[0], outcome).items()
                if isinstance(prepared, Prepared) and not gives_the_same_again(session, prepared.inputs)
            ]
        except KeyboardInterrupt:
            return outcome.interrupted()
        self.state(not_clean={**dict.fromkeys(changing, NOT_REPEATABLE), **self.facts.not_clean})
        return outcome

    def _measure_in_quiet(self, outcome: PassOutcome[Any]) -> PassOutcome[Any]:
        """Measure latency in one worker after the other.

        Where there are too few of them to compare processes, only the first measures, and may end where its times say
        enough.
        """
        wanted, invocations = self._execution.latency_examples, self._run.task.invocations
        examples = examples_for_latency(self._examples, wanted)
        workers = [self._usable(sessions, outcome) for sessions in self._sessions][: len(examples)]
        is_enough = None
        if len(workers) < FEWEST_PROCESSES:
            workers = workers[:1]
            if wanted is None and not self._steps.in_order:
                examples, is_enough = scattered(examples), partial(are_known, self._run.request.reference_name)
        parts: list[QuietTimes] = []
        with counted(self._observer, _QUIET, len(examples)) as step:
            for number, sessions in enumerate(workers):
                own = examples[number :: len(workers)]
                parts.append(measure_in_quiet(self._makers[0], sessions, own, invocations, step, is_enough))
                if parts[-1].interrupted:
                    break
            else:
                for _ in range(len(examples) - sum(part.examples for part in parts)):
                    step()  # what is not needed is done
        quiet = pooled(parts, lambda name, number: self._own[number][name] is self._own[0][name])
        if quiet.examples:
            execution = replace(self.facts.execution, quiet_latency_examples=quiet.examples)
            self.state(quiet=quiet, execution=execution)
        return outcome.interrupted() if quiet.interrupted else outcome

    def _usable(self, sessions: Mapping[str, BlockSession], outcome: PassOutcome[Any]) -> dict[str, BlockSession]:
        """The sessions that were not given up, without those of emulators, whose times are no latencies."""
        return {
            name: session
            for name, session in sessions.items()
            if name not in outcome.given_up and not session.facts.emulator
        }

    def _each_session(self) -> Iterator[tuple[int, str, ProcessSession]]:
        """Each once, with the first worker that has it and the name of its configuration."""
        seen: set[int] = set()
        for number, sessions in enumerate(self._own):
            for name, session in sessions.items():
                if id(session) not in seen:
                    seen.add(id(session))
                    yield number, name, session

    @property
    def _crashes(self) -> dict[str, Crashes]:
        """Those of each configuration's processes, in this part of the run and in earlier ones."""
        found = dict(self._earlier.crashes)
        for _, name, session in self._each_session():
            if session.crashes.count:
                found[name] = found.get(name, Crashes()) + session.crashes
        return found

    @property
    def _peak_memory_kb(self) -> dict[str, int]:
        """The largest peak memory of each configuration's processes, where it is known."""
        found: dict[str, int] = {}
        for _, name, session in self._each_session():
            if session.peak_memory_kb and session.facts.elsewhere is None:
                found[name] = max(found.get(name, 0), session.peak_memory_kb)
        return found

    def _processes(self) -> list[NamedProcess]:
        """The processes of the run, each once: this one, those of the configurations, those that make inputs."""
        found = [NamedProcess(os.getpid(), "evaltools")]
        for number, name, session in self._each_session():
            if session.process_id is not None and session.facts.elsewhere is None:
                found.append(NamedProcess(session.process_id, f"{name}, worker {number}", name))
        for number, maker in enumerate(self._makers):
            if isinstance(maker, InOtherProcess) and maker.process_id is not None:
                found.append(NamedProcess(maker.process_id, f"inputs, worker {number}"))
        return found

    def _process_ids(self) -> list[int]:
        return [process.process_id for process in self._processes()]


def gives_the_same_again(session: BlockSession, inputs: Sequence[Array]) -> bool:
    """Whether :data:`RUNS_TO_REPEAT` runs of the same inputs give the same outputs, floats but for a few roundings.

    A run that fails shows nothing: the pass counts failures.
    """
    outcomes: list[Inference | InferenceError] = []
    while len(outcomes) < RUNS_TO_REPEAT:
        size = min(session.longest_block, RUNS_TO_REPEAT - len(outcomes))
        outcomes += session.run_block([inputs] * size, 1)
    runs = [each.outputs for each in outcomes if isinstance(each, Inference)]
    return all(all(map(_are_alike, outputs, runs[0])) for outputs in runs)


def _are_alike(again: Array, first: Array) -> bool:
    if again.dtype != first.dtype or again.shape != first.shape:
        return False
    if again.tobytes() == first.tobytes():
        return True
    if again.dtype.kind != "f":
        return False
    one, other = again.astype(np.float64), first.astype(np.float64)
    with np.errstate(all="ignore"):
        return bool(np.linalg.norm(one - other) <= _ROUNDINGS * np.linalg.norm(other))


def are_known(reference: str | None, taken: Taken) -> bool:
    """Whether times say enough: the 95 % interval of each ratio to the reference is at most 5 % wide.

    Without a reference, or with nothing beside it, that of each time.
    """
    times = {name: {each.example: sum(each.invokes_us) for each in own} for name, own in taken.items()}
    base = times.pop(reference, {}) if reference is not None and len(times) > 1 else {}
    for own in times.values():
        before = base or dict.fromkeys(own, float(np.median(list(own.values()))) if own else 0.0)
        both = [number for number in own if number in before]
        found = latency_ratio([before[number] for number in both], [own[number] for number in both])
        if found is None or found.interval is None or found.interval.high > _NARROW * found.interval.low:
            return False
    return True


class Startup:
    """Measures phases that follow each other, in seconds; the first one began with the process."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.monotonic()
        age = _age_of_process()
        if age is not None:
            self.seconds[STARTING] = age

    def mark(self, phase: str) -> None:
        """End a phase now."""
        now = time.monotonic()
        self.seconds[phase] = now - self._last
        self._last = now

    def mark_once(self, phase: str) -> None:
        """End a phase now, unless it has ended before."""
        if phase not in self.seconds:
            self.mark(phase)


def _age_of_process() -> float | None:
    """Seconds since this process was started, where the system says (Linux)."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        uptime = float(Path("/proc/uptime").read_text().split()[0])
        return uptime - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
