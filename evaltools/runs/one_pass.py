"""What every evaluation measures on open configurations: it runs the pass, then measures latency on a quiet machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec.structs import replace

from evaltools.engine.execution import sessions_of_workers, worker_count
from evaltools.engine.facts import PASS, PassFacts
from evaltools.engine.journal import Journal
from evaltools.engine.ledger import Tally
from evaltools.engine.preparation import InOtherProcess, Preparer, preparers
from evaltools.engine.quiet_latency import QuietTimes, Taken, examples_for_latency, measure_in_quiet, pooled, scattered
from evaltools.engine.run import Pass, PassOutcome
from evaltools.engine.sampling import LoadOverTime, MemoryOverTime, NamedProcess
from evaltools.engine.steps import Prepared, Span
from evaltools.engine.trace import CaptureAnswers, Trace
from evaltools.errors import InferenceError
from evaltools.metrics.latency import FEWEST_PROCESSES, latency_ratio
from evaltools.result.evaluation import NOT_REPEATABLE, load_of_parts
from evaltools.runs.opened import OpenConfigurations
from evaltools.runs.task_run import TaskRun
from evaltools.runtime import Open, Session, Watched
from evaltools.runtime.session import Array, Crashes
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
    open_with: Open,
    startup: Startup,
) -> tuple[PassOutcome[Any], PassFacts]:
    """Run the pass with as many workers as fit, then measure latency in quiet.

    With one worker the pass itself is quiet, and there is no such phase unless it was asked for. The facts are not
    over yet.
    """
    steps, execution, reference = run.steps, run.request.execution, run.request.reference_name
    examples = execution.shard.numbers_of(len(steps.names))
    configurations = [entry.running for entry in opened.entries]
    count = worker_count(execution, configurations, run.keeps_state, len(examples))
    by_worker: Sequence[Mapping[str, Session]] = (
        [opened.sessions] if steps.keeps_state else sessions_of_workers(opened.entries, count, open_with)
    )
    workers = [{name: run.wrap(name, session) for name, session in sessions.items()} for sessions in by_worker]
    earlier = PASS.read(journal) or PassFacts()
    most = max(count, earlier.most_workers)
    crashes = _CrashCount(
        journal,
        by_worker,
        PassFacts(
            workers=count,
            most_workers=most,
            one_worker=run.keeps_state,
            crashes=earlier.crashes,
            not_clean=earlier.not_clean,
            unsound=earlier.unsound,
        ),
    )
    options = run.pass_options
    specs = next(iter(workers[0].values())).inputs
    try:
        startup.mark(PROBING)
        with preparers(steps, specs, count, execution.example_timeout_s, len(examples)) as makers:
            processes = partial(_processes, by_worker, makers)

            def own() -> list[int]:
                return [process.process_id for process in processes()]

            with (
                Trace(execution.trace) as trace,
                CaptureAnswers(journal.folder, processes) as answers,
                MemoryOverTime(processes) as memory,
                LoadOverTime(own) as load_of_pass,
            ):
                done = 0

                def on_step(tally: Tally) -> None:
                    nonlocal done
                    done = tally.done
                    startup.mark_once(FIRST_TURN)
                    on_progress(tally)

                def write(spans: Sequence[Span]) -> None:
                    trace.add(spans)
                    answers.add(spans, done)
                    crashes.keep()

                unsound = UnsoundExamples()
                with observer.progress("", len(examples)) as on_progress:
                    the_pass = Pass(
                        unsound.watching(steps), workers, journal, reference, options, examples, on_step, write, makers
                    )
                    start = time.perf_counter()
                    outcome = the_pass.run()
                    elapsed_s = time.perf_counter() - start
            not_clean = dict(earlier.not_clean)
            if outcome.stopped is None and the_pass.examples_run and not steps.in_order:
                try:
                    changing = _not_repeatable(makers[0], workers[0], outcome, examples[0])
                    not_clean = {**dict.fromkeys(changing, NOT_REPEATABLE), **not_clean}
                except KeyboardInterrupt:
                    outcome = outcome.interrupted()
            quiet = None
            loads = [load_of_pass] if the_pass.examples_run else []
            if outcome.stopped is None and (most > 1 or execution.latency_examples):
                usable = [
                    {
                        name: session
                        for name, session in sessions.items()
                        if name not in outcome.given_up and not session.facts.emulator
                    }
                    for sessions in workers
                ]
                chosen = examples_for_latency(examples, execution.latency_examples)
                may_end = execution.latency_examples is None and not steps.in_order
                is_enough = partial(are_known, reference) if may_end else None
                with LoadOverTime(own) as load_in_quiet:
                    parts = _measure_in_quiet(makers[0], usable, chosen, options.invocations, observer, is_enough)
                quiet = pooled(parts, lambda name, number: by_worker[number][name] is by_worker[0][name])
                loads = [load_in_quiet] if load_in_quiet.has_seen_enough else [*loads, load_in_quiet]
                outcome = outcome.interrupted() if quiet.interrupted else outcome
                quiet = quiet if quiet.examples else None
        facts = replace(
            crashes.facts,
            interrupted=outcome.stopped == "interrupted",
            examples_run=the_pass.examples_run,
            elapsed_s=elapsed_s,
            stages=the_pass.stages,
            quiet=quiet,
            startup_seconds=startup.seconds,
            not_traced=trace.why_useless,
            peak_memory_kb=_peak_memory_kb(by_worker),
            memory=list(memory.by_process),
            unsound=earlier.unsound + unsound.count,
            load=load_of_parts([each.load for each in loads]),
        )
    finally:
        for sessions in by_worker:
            for session in sessions.values():
                session.close()
        crashes.keep()
    not_clean |= {name: why for name, why in _not_clean(by_worker).items() if name not in not_clean}
    facts = replace(facts, crashes=crashes.facts.crashes, not_clean=not_clean)
    PASS.write(journal, facts)
    return outcome, facts


def _not_repeatable(
    maker: Preparer, sessions: Mapping[str, Session], outcome: PassOutcome[Any], example: int
) -> list[str]:
    """The configurations that give other outputs when the input of one example comes again; none is run in vain."""
    usable = {
        name: session
        for name, session in sessions.items()
        if name not in outcome.given_up and not session.facts.emulator
    }
    prepared = maker.make([example])[0].prepared
    if not isinstance(prepared, Prepared):
        return []
    return [name for name, session in usable.items() if not gives_the_same_again(session, prepared.inputs)]


def gives_the_same_again(session: Session, inputs: Sequence[Array]) -> bool:
    """Whether :data:`RUNS_TO_REPEAT` runs of the same inputs give the same outputs, floats but for a few roundings.

    A run that fails shows nothing: the pass counts failures.
    """
    first: Sequence[Array] | None = None
    try:
        for _ in range(RUNS_TO_REPEAT):
            outputs = session.run(inputs, 1).outputs
            first = [values.copy() for values in outputs] if first is None else first
            if not all(map(_are_alike, outputs, first)):
                return False
    except InferenceError:
        return True
    return True


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


class _CrashCount:
    """Counts the crashes of each configuration's processes, in this part of the run and in earlier ones.

    A session that workers share counts once. ``facts`` are those of the pass so far.
    """

    def __init__(self, journal: Journal, workers: Sequence[Mapping[str, Session]], facts: PassFacts) -> None:
        self.facts = facts
        self._journal = journal
        self._earlier = facts.crashes
        PASS.write(journal, facts)
        self._sessions = {(name, id(session)): session for sessions in workers for name, session in sessions.items()}

    def keep(self) -> None:
        """Count anew, and write that to the journal where it has changed, so that a resumed run goes on counting."""
        found = dict(self._earlier)
        for (name, _), session in self._sessions.items():
            if isinstance(session, Watched) and session.crashes.count:
                found[name] = found.get(name, Crashes()) + session.crashes
        if found != self.facts.crashes:
            self.facts = replace(self.facts, crashes=found)
            PASS.write(self._journal, self.facts)


def _processes(workers: Sequence[Mapping[str, Session]], makers: Sequence[Preparer]) -> list[NamedProcess]:
    """The processes of a run, each once: this one, those of the configurations, those that make inputs."""
    found = {os.getpid(): NamedProcess(os.getpid(), "evaltools")}
    for number, sessions in enumerate(workers):
        for name, session in sessions.items():
            process_id = session.process_id if isinstance(session, Watched) else None
            if process_id is not None:
                found.setdefault(process_id, NamedProcess(process_id, f"{name}, worker {number}", name))
    for number, maker in enumerate(makers):
        if isinstance(maker, InOtherProcess) and maker.process_id is not None:
            found.setdefault(maker.process_id, NamedProcess(maker.process_id, f"inputs, worker {number}"))
    return list(found.values())


def _measure_in_quiet(
    maker: Preparer,
    workers: Sequence[Mapping[str, Session]],
    examples: Sequence[int],
    invocations: int,
    observer: Observer,
    is_enough: Callable[[Taken], bool] | None,
) -> list[QuietTimes]:
    """Measure latency in one worker after the other.

    Where there are too few of them to compare processes, only the first measures, and may end where that ``is_enough``.
    """
    with counted(observer, _QUIET, len(examples)) as step:
        if min(len(workers), len(examples)) < FEWEST_PROCESSES:
            if is_enough is None:
                return [measure_in_quiet(maker, workers[0], examples, invocations, step)]
            found = measure_in_quiet(maker, workers[0], scattered(examples), invocations, step, is_enough)
            for _ in range(0 if found.interrupted else len(examples) - found.examples):
                step()  # what is not needed is done
            return [found]
        workers = workers[: len(examples)]
        parts: list[QuietTimes] = []
        for number, sessions in enumerate(workers):
            own = examples[number :: len(workers)]
            parts.append(measure_in_quiet(maker, sessions, own, invocations, step))
            if parts[-1].interrupted:
                break
    return parts


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


def _not_clean(workers: Sequence[Mapping[str, Session]]) -> dict[str, str]:
    """What went wrong first while the sessions of each configuration were released."""
    found: dict[str, str] = {}
    for sessions in workers:
        for name, session in sessions.items():
            if isinstance(session, Watched) and session.not_clean:
                found.setdefault(name, session.not_clean)
    return found


def _peak_memory_kb(workers: Sequence[Mapping[str, Session]]) -> dict[str, int]:
    """The largest peak memory of each configuration's processes, where it is known."""
    found: dict[str, int] = {}
    for name in workers[0]:
        sessions = [own[name] for own in workers]
        peak = max((session.peak_memory_kb for session in sessions if isinstance(session, Watched)), default=0)
        if peak:
            found[name] = peak
    return found


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
