"""The pass: every example is decoded once and run on every configuration, by as many workers as there are."""

from __future__ import annotations

import math
import queue
import threading
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.engine.journal import Journal
from evaltools.engine.ledger import GivenUp, Ledger, failures_of
from evaltools.engine.preparation import Preparer, ReadyExample
from evaltools.engine.steps import (
    INFERENCE,
    JOURNAL,
    METRICS,
    PREPARATION,
    Failure,
    Prepared,
    Record,
    Span,
    Steps,
)
from evaltools.errors import (
    ConfigurationUnavailable,
    InferenceError,
    MachineLost,
    ProgramEnded,
    SessionEnded,
    TaskError,
)
from evaltools.result.execution import InferenceSeconds
from evaltools.runtime import BlockSession, Inference

_BLOCKS_WAITING: Final = 4
_TURNS_LEFT: Final = 2
"""One of several workers takes at most such a part of its share of what is left."""
_SECONDS_TO_FINISH_TURN: Final = 1.0
_SECONDS_BETWEEN_LOOKS: Final = 0.2
_SECONDS_IN_TURN: Final = 0.2
_FIRST_OVER_A_CABLE: Final = 8
"""Examples of the first block where a model runs on a device, each way to which takes longer than most models."""
Runs = dict[str, Inference | Failure]
"""What each configuration gave for one example."""


class Turn(Struct, frozen=True):
    """The examples that a worker finished in one turn, and the times that it took; ``inference`` by configuration.

    Of each there are the records of the configurations that were tried.
    """

    examples: Mapping[int, Sequence[Record[Any]]]
    spans: Sequence[Span]
    inference: Mapping[str, InferenceSeconds]


class Worker:
    """Makes the inputs of a block of examples, and runs them.

    A block has as many examples as can be prepared in 0.2 s, and as each configuration runs in so long; in more
    seconds where a model runs elsewhere.

    ``given_up`` holds configurations that are not run any more; another thread may add to it.
    """

    def __init__(
        self,
        number: int,
        steps: Steps[Any],
        sessions: Mapping[str, BlockSession],
        maker: Preparer,
        reference: str | None,
        invocations: int,
        given_up: Mapping[str, GivenUp],
    ) -> None:
        self.sessions: Final = sessions
        self.maker: Final = maker
        self._number = number
        self._steps = steps
        self._reference = reference
        self._invocations = invocations
        self._given_up = given_up
        elsewhere = [session.facts.elsewhere for session in sessions.values()]
        self._turn_s = max([_SECONDS_IN_TURN, *(each.turn_s for each in elsewhere if each)])
        self._longest = min((session.longest_block for session in sessions.values()), default=1)
        is_far = any(each is not None and each.machine for each in elsewhere)
        self.block_size = min(self._longest, _FIRST_OVER_A_CABLE) if is_far else 1
        self._turn = number
        self._spans: list[Span] = []

    def run(self, block: Sequence[ReadyExample]) -> Turn:
        """Run a block on every session. Each turn begins with another session, so that none always has warm caches."""
        self._note_preparation(block)
        names = [name for name in self.sessions if name not in self._given_up]
        first = self._turn % max(1, len(names))
        self._turn += 1
        runs: list[Runs] = [{} for _ in block]
        usable = [index for index, ready in enumerate(block) if isinstance(ready.prepared, Prepared)]
        inputs = [ready.prepared.inputs for ready in block if isinstance(ready.prepared, Prepared)]
        slowest_ns = 0
        inference: dict[str, InferenceSeconds] = {}
        for name in names[first:] + names[:first] if usable else []:
            start_ns = time.perf_counter_ns()
            outcomes = self.sessions[name].run_block(inputs, self._invocations)
            for index, outcome in zip(usable, outcomes, strict=True):
                runs[index][name] = _failure(outcome) if isinstance(outcome, InferenceError) else outcome
            duration_ns = self._note(INFERENCE, start_ns, f"{name}: {len(inputs)} examples")
            slowest_ns = max(slowest_ns, duration_ns)
            inference[name] = _inference_seconds(duration_ns, [own[name] for own in runs if name in own])
        start_ns = time.perf_counter_ns()
        finished = {ready.example: self._finish(ready, given, names) for ready, given in zip(block, runs, strict=True)}
        observing_ns = self._note(METRICS, start_ns, f"{len(block)} examples")
        preparing_ns = 1000 * sum(ready.duration_us for ready in block)
        self.block_size = _next_size(
            max(preparing_ns, slowest_ns, observing_ns) / 1e9 / len(block), self._longest, self._turn_s
        )
        spans, self._spans = self._spans, []
        return Turn(finished, spans, inference)

    def close(self) -> None:
        """End the processes of its sessions, and the one that makes its inputs; what is under way fails."""
        for session in self.sessions.values():
            session.close()
        self.maker.close()

    def _finish(self, ready: ReadyExample, runs: Runs, names: Sequence[str]) -> list[Record[Any]]:
        example, took_us = ready.example, ready.duration_us
        if isinstance(ready.prepared, Failure):
            return [Record(example, name, (), None, ready.prepared) for name in names]
        base = runs.get(self._reference) if self._reference is not None else None
        base_outputs = base.outputs if isinstance(base, Inference) else None
        records: list[Record[Any]] = []
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
    return Failure("inference", str(error), crashed=isinstance(error, SessionEnded | ProgramEnded))


def _inference_seconds(whole_ns: int, runs: Sequence[Inference | Failure]) -> InferenceSeconds:
    """What of a turn was spent in the runtime's runs, reading outputs, and, all the rest, copying and waiting."""
    done = [run for run in runs if isinstance(run, Inference)]
    run_us, read_us = sum(sum(run.invokes_us) for run in done), sum(run.read_us for run in done)
    copy_us = max(0.0, whole_ns / 1000 - run_us - read_us)
    return InferenceSeconds(copy_us / 1e6, run_us / 1e6, read_us / 1e6)


def _next_size(seconds_per_example: float, longest: int, turn_s: float) -> int:
    return max(1, min(longest, int(turn_s / max(seconds_per_example, 1e-9))))


class Workers:
    """A context in which workers do ``examples``, each with its sessions and its maker of inputs.

    Each has a thread, which decodes and runs in turns, so that both together need one core.
    """

    def __init__(
        self,
        steps: Steps[Any],
        sessions: Sequence[Mapping[str, BlockSession]],
        makers: Sequence[Preparer],
        examples: Sequence[int],
        ledger: Ledger,
        reference: str | None = None,
        invocations: int = 1,
    ) -> None:
        self.workers: Final = [
            Worker(number, steps, own, maker, reference, invocations, ledger.given_up)
            for number, (own, maker) in enumerate(zip(sessions, makers, strict=True))
        ]
        self.ledger: Final = ledger
        self._todo = array("q", reversed(examples))
        self._in_order = steps.in_order
        self._shares = len(sessions) * _TURNS_LEFT if len(sessions) > 1 else 1
        self._choosing = threading.Lock()
        self._enough = threading.Event()
        self._results: queue.Queue[Turn | BaseException | None] = queue.Queue(_BLOCKS_WAITING)
        self._deadline = math.inf
        self._threads = [threading.Thread(target=self._work, args=(worker,), daemon=True) for worker in self.workers]

    def __enter__(self) -> Workers:
        try:
            for thread in self._threads:
                _start(thread)
        except ConfigurationUnavailable:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        """Wait for turns to end, after a second by ending their processes; what they give is of no use any more."""
        self.stop()
        deadline = min(self._deadline, time.monotonic() + _SECONDS_TO_FINISH_TURN)
        while any(thread.is_alive() for thread in self._threads):
            if time.monotonic() > deadline:
                deadline = math.inf
                for worker in self.workers:
                    worker.close()
            with suppress(queue.Empty):
                self._results.get(timeout=0.001)

    def stop(self) -> None:
        """Begin no other turn."""
        self._enough.set()

    def turns(self, interrupted: Sequence[int]) -> Iterator[Turn]:
        """Every turn as it ends. Once ``interrupted`` has a signal, only those that end within a second.

        It raises what a worker raises.
        """
        working = len(self._threads)
        while working and time.monotonic() < self._deadline:
            if interrupted and self._deadline == math.inf:
                self.stop()
                self._deadline = time.monotonic() + _SECONDS_TO_FINISH_TURN
            try:
                result = self._results.get(timeout=_SECONDS_BETWEEN_LOOKS)
            except queue.Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            if result is None:
                working -= 1
            else:
                yield result

    def _work(self, worker: Worker) -> None:
        """The thread of a worker."""
        try:
            while block := self._next_block(worker):
                self._results.put(worker.run(block))
        except BaseException as error:  # it is raised again in the thread that waits for the results
            self._results.put(error)
        self._results.put(None)

    def _next_block(self, worker: Worker) -> Sequence[ReadyExample]:
        """The next inputs for a worker, empty at the end.

        Blocks become shorter towards the end, so that all workers end together.
        """
        with self._choosing:
            share = 0 if self._enough.is_set() else math.ceil(len(self._todo) / self._shares)
            chosen = [self._todo.pop() for _ in range(min(worker.block_size, share))]
            if self._in_order:
                return worker.maker.make(chosen) if chosen else []
        return worker.maker.make(chosen) if chosen else []


def _start(thread: threading.Thread) -> None:
    """Raises :class:`ConfigurationUnavailable` where the system allows no more threads."""
    try:
        thread.start()
    except RuntimeError as error:
        raise ConfigurationUnavailable(
            f"no thread could be started for a worker ({error}): the system allows no more, or has no memory for it; "
            "give fewer --workers, or raise the limit (ulimit -u, ulimit -v)"
        ) from error


def _turns_or_lost(workers: Workers, journal: Journal, interrupted: Sequence[int]) -> Iterator[Turn]:
    try:
        yield from workers.turns(interrupted)
    except MachineLost:
        journal.flush()
        raise


def run_examples(workers: Workers, journal: Journal, interrupted: Sequence[int] = ()) -> Iterator[Turn]:
    """Do the examples of the workers; gives each turn once the journal, which flushes now and then, has its records.

    An example that fails is recorded, and the others are done. It ends early where the ledger says so, and where a
    device is lost, which loses no record.
    """
    for turn in _turns_or_lost(workers, journal, interrupted):
        start_ns = time.perf_counter_ns()
        for example, records in turn.examples.items():
            journal.add(records)
            workers.ledger.add(example, failures_of(records))
        if workers.ledger.stopped is not None:
            workers.stop()
        written = Span(JOURNAL, start_ns, time.perf_counter_ns() - start_ns, -1, f"{len(turn.examples)} examples")
        yield replace(turn, spans=(*turn.spans, written))
