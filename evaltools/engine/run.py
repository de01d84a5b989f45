"""The pass: every example is decoded once and run on every configuration, by as many workers as there are."""

from __future__ import annotations

import heapq
import math
import queue
import threading
import time
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Any, Final, Generic

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from evaltools.engine.journal import Journal
from evaltools.engine.ledger import GivenUp, Ledger, Stop, Tally
from evaltools.engine.preparation import InThisProcess, Preparer, ReadyExample
from evaltools.engine.records import Records
from evaltools.engine.steps import (
    INFERENCE,
    JOURNAL,
    METRICS,
    PREPARATION,
    Failure,
    Observation,
    Prepared,
    Record,
    Span,
    StageTimes,
    Steps,
)
from evaltools.errors import ConfigurationUnavailable, InferenceError, SessionEnded, TaskError
from evaltools.result.evaluation import InferenceSeconds
from evaltools.runtime import BlockSession, Inference, Session
from evaltools.runtime.session import run_each
from evaltools.signals import deferred_interrupt

_BLOCKS_WAITING: Final = 4
_TURNS_LEFT: Final = 2
"""One of several workers takes at most such a part of its share of what is left."""
_SECONDS_TO_FINISH_TURN: Final = 1.0
_SECONDS_BETWEEN_LOOKS: Final = 0.2
_SECONDS_IN_TURN: Final = 0.2
Runs = dict[str, Inference | Failure]
"""What each configuration gave for one example."""
OnProgress = Callable[[Tally], None]


class PassOptions(Struct, frozen=True):
    """How a pass goes.

    Every example is invoked ``invocations`` times. The pass stops with more than ``max_failed_examples`` failed
    examples, None: never. A configuration is given up after ``max_crashes`` examples in a row that killed or hung its
    process.
    """

    max_failed_examples: int | None = None
    max_crashes: int = 3
    invocations: int = 1


class PassOutcome(Struct, Generic[Observation], frozen=True):
    """Everything measured in a pass.

    ``records`` holds the records of each configuration in the order of the examples. ``preprocessing_us`` has one value
    per example whose input could be made. ``examples_done`` counts finished examples, failed ones included, up to the
    first that is not finished, ``examples_apart`` those behind it. ``stopped`` says why the pass, or what was measured
    after it, ended too early, if it did. ``given_up`` are configurations whose process died or hung too often.
    ``names`` has the name of each example.
    """

    records: Mapping[str, Collection[Record[Observation]]]
    preprocessing_us: Sequence[int] = ()
    examples_done: int = 0
    examples_apart: int = 0
    failed_examples: int = 0
    stopped: Stop | None = None
    given_up: Mapping[str, GivenUp] = field(default_factory=dict)
    names: Sequence[str] = ()

    def interrupted(self) -> PassOutcome[Observation]:
        """The same after Ctrl-C, which is why the pass stopped unless it had stopped before."""
        return self if self.stopped is not None else replace(self, stopped="interrupted")

    def by_example(self) -> Iterator[dict[str, Record[Observation]]]:
        """The records of each example by configuration, all of them in one go, in the order of the examples.

        >>> cpu = [Record(0, "cpu", (7,), 0.5), Record(1, "cpu", (8,), 0.25)]
        >>> gpu = [Record(1, "gpu", (2,), 0.25)]
        >>> [list(together) for together in PassOutcome({"cpu": cpu, "gpu": gpu}).by_example()]
        [['cpu'], ['cpu', 'gpu']]
        """
        in_order = heapq.merge(*self.records.values(), key=_number)
        for _, together in groupby(in_order, key=_number):
            yield {record.configuration: record for record in together}


def _number(record: Record[Any]) -> int:
    return record.example


def settle(
    steps: Steps[Observation],
    configurations: Sequence[str],
    records: Records[Observation],
    reference: str | None,
    options: PassOptions,
    examples: Sequence[int] | None = None,
    ended: Stop | None = None,
) -> PassOutcome[Observation]:
    """The outcome of the records of a run; nothing is run. ``examples`` are those that count, None for all.

    A configuration with so many crashes in a row that a journal gave it up may have no record of an example; one that
    lacks the record of another configuration is not finished. ``ended`` is why there may be no record of an example at
    all.
    """
    wanted = range(len(steps.names)) if examples is None else examples
    ledger = _ledger(wanted, configurations, reference, options)
    numbers, must_have = set(wanted), set(configurations) - records.given_up(options.max_crashes)
    for example, fates in records.fates():
        if example in numbers and must_have <= set(fates):
            ledger.add(example, {name: fate for name, fate in fates.items() if name in configurations})
    if ended is not None:
        ledger.end(ended)
    return _outcome(records, ledger, configurations, steps.names)


class Turn(Struct, Generic[Observation], frozen=True):
    """The examples that a worker finished in one turn, and the times that it took; ``inference`` by configuration.

    Of each there are the records of the configurations that were tried.
    """

    examples: Mapping[int, Sequence[Record[Observation]]]
    spans: Sequence[Span]
    inference: Mapping[str, InferenceSeconds]


class Worker(Generic[Observation]):
    """Runs blocks of examples.

    A block has as many examples as can be prepared in 0.2 s, and as each configuration runs in so long, if all
    sessions can run blocks; otherwise one.

    ``given_up`` holds configurations that are not run any more; another thread may add to it.
    """

    def __init__(
        self,
        number: int,
        steps: Steps[Observation],
        sessions: Mapping[str, Session],
        reference: str | None,
        invocations: int,
        given_up: Mapping[str, Any],
    ) -> None:
        self.block_size = 1
        self._number = number
        self._steps = steps
        self._sessions = sessions
        self._reference = reference
        self._invocations = invocations
        self._given_up = given_up
        self._longest = min((_longest_block(session) for session in sessions.values()), default=1)
        self._turn = number
        self._spans: list[Span] = []

    def run(self, block: Sequence[ReadyExample]) -> Turn[Observation]:
        """Run a block on every session. Each turn begins with another session, so that none always has warm caches."""
        self._note_preparation(block)
        names = [name for name in self._sessions if name not in self._given_up]
        first = self._turn % max(1, len(names))
        self._turn += 1
        runs: list[Runs] = [{} for _ in block]
        usable = [index for index, ready in enumerate(block) if isinstance(ready.prepared, Prepared)]
        inputs = [ready.prepared.inputs for ready in block if isinstance(ready.prepared, Prepared)]
        slowest_ns = 0
        inference: dict[str, InferenceSeconds] = {}
        for name in names[first:] + names[:first] if usable else []:
            start_ns = time.perf_counter_ns()
            for index, outcome in zip(usable, run_each(self._sessions[name], inputs, self._invocations), strict=True):
                runs[index][name] = _failure(outcome) if isinstance(outcome, InferenceError) else outcome
            duration_ns = self._note(INFERENCE, start_ns, f"{name}: {len(inputs)} examples")
            slowest_ns = max(slowest_ns, duration_ns)
            inference[name] = _inference_seconds(duration_ns, [own[name] for own in runs if name in own])
        start_ns = time.perf_counter_ns()
        finished = {ready.example: self._finish(ready, given, names) for ready, given in zip(block, runs, strict=True)}
        observing_ns = self._note(METRICS, start_ns, f"{len(block)} examples")
        preparing_ns = 1000 * sum(ready.duration_us for ready in block)
        self.block_size = _next_size(max(preparing_ns, slowest_ns, observing_ns) / 1e9 / len(block), self._longest)
        spans, self._spans = self._spans, []
        return Turn(finished, spans, inference)

    def _finish(self, ready: ReadyExample, runs: Runs, names: Sequence[str]) -> list[Record[Observation]]:
        example, took_us = ready.example, ready.duration_us
        if isinstance(ready.prepared, Failure):
            return [Record[Observation](example, name, (), None, ready.prepared) for name in names]
        base = runs.get(self._reference) if self._reference is not None else None
        base_outputs = base.outputs if isinstance(base, Inference) else None
        records: list[Record[Observation]] = []
        for name in names:
            run = runs[name]
            if isinstance(run, Failure):
                records.append(Record(example, name, (), None, run, None, took_us))
                continue
            try:
                observation = self._steps.observe(ready.prepared, run.outputs, base_outputs, name)
            except TaskError as error:
                records.append(Record(example, name, (), None, Failure("score", str(error)), None, took_us))
                continue
            records.append(Record(example, name, run.invokes_us, observation, None, run.read_us, took_us))
        return records

    def _note(self, stage: str, start_ns: int, label: str) -> int:
        duration_ns = time.perf_counter_ns() - start_ns
        self._spans.append(Span(stage, start_ns, duration_ns, self._number, label))
        return duration_ns

    def _note_preparation(self, block: Sequence[ReadyExample]) -> None:
        """Record the steps of making each input that the task names, and the rest of its time as preparation."""
        for ready in block:
            start_ns, name = ready.start_ns, self._steps.names[ready.example]
            steps = ready.prepared.steps if isinstance(ready.prepared, Prepared) else ()
            rest = ready.duration_us - sum(microseconds for _, microseconds in steps)
            for stage, microseconds in (*steps, (PREPARATION, rest)):
                self._spans.append(Span(stage, start_ns, microseconds * 1000, self._number, name))
                start_ns += microseconds * 1000


def _failure(error: InferenceError) -> Failure:
    return Failure("inference", str(error), crashed=isinstance(error, SessionEnded))


def _inference_seconds(whole_ns: int, runs: Sequence[Inference | Failure]) -> InferenceSeconds:
    """What of a turn was spent in the runtime's runs, reading outputs, and, all the rest, copying and waiting."""
    done = [run for run in runs if isinstance(run, Inference)]
    run_us, read_us = sum(sum(run.invokes_us) for run in done), sum(run.read_us for run in done)
    copy_us = max(0.0, whole_ns / 1000 - run_us - read_us)
    return InferenceSeconds(copy_us / 1e6, run_us / 1e6, read_us / 1e6)


def _longest_block(session: Session) -> int:
    return session.longest_block if isinstance(session, BlockSession) else 1


def _next_size(seconds_per_example: float, longest: int) -> int:
    return max(1, min(longest, int(_SECONDS_IN_TURN / max(seconds_per_example, 1e-9))))


class Pass(Generic[Observation]):
    """Runs examples on all configurations, and writes their records to the journal.

    ``reference`` names the configuration that the others are compared with. ``workers`` has the sessions of each worker
    by configuration, ``makers`` the preparer of each worker's inputs; without ``makers`` this process prepares them.
    ``examples`` are those to run, None for all; those with records in the journal are not run again. Only the thread
    that calls :meth:`run` uses the journal and the ledger. After it ``stages`` are the times of its work, and
    ``examples_run`` counts the examples that were finished now, and not in an earlier part of the run.
    """

    def __init__(
        self,
        steps: Steps[Observation],
        workers: Sequence[Mapping[str, Session]],
        journal: Journal,
        reference: str | None = None,
        options: PassOptions = PassOptions(),
        examples: Sequence[int] | None = None,
        on_progress: OnProgress = lambda _tally: None,
        on_spans: Callable[[Sequence[Span]], None] = lambda _spans: None,
        makers: Sequence[Preparer] = (),
    ) -> None:
        self._steps = steps
        self._sessions = workers
        self._names = list(workers[0])
        self._makers = makers or [InThisProcess(steps.prepare) for _ in workers]
        self._journal = journal
        self._records = Records([(journal, "")], len(steps.names), steps.observation_type)
        self._examples = range(len(steps.names)) if examples is None else examples
        self._ledger = _ledger(self._examples, self._names, reference, options)
        self._on_progress = on_progress
        self._on_spans = on_spans
        self._tally = Tally(failed=dict.fromkeys(self._names, 0))
        self.stages: Final = StageTimes()
        self._todo = array("q")
        """The places in the examples of those that are to be run, the last one first."""
        self._known = 0
        self._shares = len(workers) * _TURNS_LEFT if len(workers) > 1 else 1
        self._choosing = threading.Lock()
        self._enough = threading.Event()
        self._ended = False
        self._results: queue.Queue[Turn[Observation] | BaseException | None] = queue.Queue(_BLOCKS_WAITING)
        self._workers = [
            Worker(number, steps, own, reference, options.invocations, self._ledger.given_up)
            for number, own in enumerate(workers)
        ]

    def run(self) -> PassOutcome[Observation]:
        """Run the whole pass; returns its outcome.

        An example that fails is recorded, and the pass goes on. Ctrl-C ends it; turns that end within a second are
        still recorded.
        """
        is_interrupted = False
        try:
            self._take_from_journal()
            if self._todo and self._ledger.stopped is None:
                self._run_workers()
        except KeyboardInterrupt:
            is_interrupted = True
        self._journal.flush()
        outcome = _outcome(
            self._records,
            self._ledger,
            self._names,
            self._steps.names,
        )
        return outcome.interrupted() if is_interrupted else outcome

    @property
    def examples_run(self) -> int:
        """The examples that were finished now."""
        return self._tally.done - self._known

    def _take_from_journal(self) -> None:
        """Count the examples that the journal has from an earlier part of the run; the others are to be run."""
        names, known = set(self._names), np.zeros(len(self._steps.names), np.bool_)
        examples = self._examples
        if not self._steps.keeps_state or len(self._journal.examples()) >= len(examples):
            for example, found in self._records.fates():
                fates = {name: fate for name, fate in found.items() if name in names}
                if names - set(fates) <= set(self._ledger.given_up):
                    known[example] = True
                    self._ledger.add(example, fates)
                    self._tally.add(fates)
        places = reversed(range(len(examples)))
        self._todo = array("q", (place for place in places if not known[examples[place]]))
        self._known = self._tally.done
        if self._known:
            self._on_progress(self._tally)

    def _run_workers(self) -> None:
        with self._threads() as count:
            while count:
                count -= self._take(self._next_result())

    @contextmanager
    def _threads(self) -> Iterator[int]:
        threads = [
            threading.Thread(target=self._work, args=(worker, maker), daemon=True)
            for worker, maker in zip(self._workers, self._makers, strict=True)
        ]
        try:
            for thread in threads:
                _start(thread)
            yield len(threads)
        except Exception:
            self._ended = True
            raise
        finally:
            self._enough.set()
            self._finish_turns(threads)

    def _finish_turns(self, threads: Sequence[threading.Thread]) -> None:
        """Wait a second for turns to end, then end their processes. What was finished is kept."""
        deadline = time.monotonic() + _SECONDS_TO_FINISH_TURN
        while any(thread.is_alive() for thread in threads):
            if time.monotonic() > deadline:
                self._ended, deadline = True, math.inf
                self._end_sessions()
                for maker in self._makers:
                    maker.close()
            self._take_waiting()
            time.sleep(0.001)
        self._take_waiting()

    def _end_sessions(self) -> None:
        for sessions in self._sessions:
            for session in sessions.values():
                session.close()

    def _take_waiting(self) -> None:
        while not self._results.empty():
            result = self._results.get()
            if not self._ended:
                self._take(result)

    def _work(self, worker: Worker[Observation], maker: Preparer) -> None:
        """The thread of a worker. It decodes and runs in turns, so that both together need one core."""
        try:
            while block := self._next_block(worker, maker):
                self._results.put(worker.run(block))
        except BaseException as error:  # it is raised again in the thread that waits for the results
            self._results.put(error)
        self._results.put(None)

    def _next_block(self, worker: Worker[Observation], maker: Preparer) -> Sequence[ReadyExample]:
        """The next inputs for a worker, empty at the end.

        Blocks become shorter towards the end, so that all workers end together.
        """
        with self._choosing:
            chosen = self._choose(worker.block_size)
            if self._steps.in_order:
                return maker.make(chosen) if chosen else []
        return maker.make(chosen) if chosen else []

    def _choose(self, block_size: int) -> list[int]:
        if self._enough.is_set():
            return []
        share = math.ceil(len(self._todo) / self._shares)
        return [self._examples[self._todo.pop()] for _ in range(min(block_size, share))]

    def _next_result(self) -> Turn[Observation] | BaseException | None:
        """Wait for a result, in short waits, so that Ctrl-C is noticed on every platform."""
        while True:
            try:
                return self._results.get(timeout=_SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                continue

    def _take(self, result: Turn[Observation] | BaseException | None) -> bool:
        """Write a block to the journal and settle it; returns True where a worker has ended."""
        if isinstance(result, BaseException):
            raise result
        if result is None:
            return True
        start_ns = time.perf_counter_ns()
        with deferred_interrupt():
            for example, records in result.examples.items():
                self._journal.add(records)
                fates = {record.configuration: record.failure for record in records}
                self._ledger.add(example, fates)
                self._tally.add(fates)
                self._on_progress(self._tally)
        journal = Span(JOURNAL, start_ns, time.perf_counter_ns() - start_ns, -1, f"{len(result.examples)} examples")
        self.stages.add((*result.spans, journal), result.inference)
        self._on_spans((*result.spans, journal))
        if self._ledger.stopped is not None:
            self._enough.set()
        return False


def _start(thread: threading.Thread) -> None:
    """Raises :class:`ConfigurationUnavailable` where the system allows no more threads."""
    try:
        thread.start()
    except RuntimeError as error:
        raise ConfigurationUnavailable(
            f"no thread could be started for a worker ({error}): the system allows no more, or has no memory for it; "
            "give fewer --workers, or raise the limit (ulimit -u, ulimit -v)"
        ) from error


def _ledger(
    examples: Sequence[int], configurations: Sequence[str], reference: str | None, options: PassOptions
) -> Ledger:
    tests = [name for name in configurations if name != reference]
    return Ledger(examples, configurations, tests, options.max_crashes, options.max_failed_examples)


def _outcome(
    records: Records[Observation],
    ledger: Ledger,
    configurations: Iterable[str],
    names: Sequence[str],
) -> PassOutcome[Observation]:
    """The outcome of the examples that the ledger has settled; records of a configuration end where it was given up."""
    ends = {
        name: ledger.given_up[name].after if name in ledger.given_up else ledger.last_settled for name in configurations
    }
    return PassOutcome(
        records={name: records.of(name, end) for name, end in ends.items()},
        preprocessing_us=records.preprocessing_us(ledger.last_settled),
        examples_done=ledger.tally.done,
        examples_apart=ledger.waiting,
        failed_examples=ledger.tally.failed_examples,
        stopped=ledger.stopped,
        given_up=ledger.given_up,
        names=names,
    )
