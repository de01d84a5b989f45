"""Tries the flags that would make a run faster: the same examples with them, and as the run was, in turns."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.engine.execution import Execution, sessions_of_workers
from evaltools.engine.journal import temporary_journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.preparation import Preparer, preparers
from evaltools.engine.quiet_latency import examples_for_latency
from evaltools.engine.run import run_pass
from evaltools.engine.task import Example, Task
from evaltools.errors import ConfigurationUnavailable, EvaltoolsError
from evaltools.gates.bottleneck import Help, bottleneck, most_threads
from evaltools.preprocess import InputCache, using_input_cache
from evaltools.result.evaluation import TriedFlag
from evaltools.runtime import Open, Session
from evaltools.stats.median_interval import rounds_ratio
from evaltools.tasks.shared.measured import MeasuredPass, describe_execution
from evaltools.tasks.shared.measuring import Observer, PassSetup, counted
from evaltools.tasks.shared.request import TaskRequest

ROUNDS: Final = 4
PHASE: Final = "trying advice"
_DEPENDENT: Final = "the runs depend on those before them, so that none can be tried again"
_NOT_KNOWN: Final = "no example was run this time, so that it is not known where the time goes"
_NO_FLAG: Final = "none is known that would make this run faster on this computer"
_MICROSECONDS: Final = 1e6


class Settings(Struct, frozen=True):
    """How examples are run; ``num_threads`` is of the tests, None: as they were asked for."""

    workers: int
    input_cache: Path | None
    num_threads: int | None = None


class Turn(Struct, frozen=True):
    """One turn over all examples of a round: its time, and how many of them failed."""

    seconds: float
    failed: int


class Trial(Struct, frozen=True):
    """What every turn has in common: ``examples`` of a ``task`` on the configurations of a finished run.

    Each turn opens sessions of its own, so that the interval allows for what processes differ by.
    """

    task: Task[Any]
    setup: PassSetup
    entries: Sequence[Opened]
    examples: Sequence[Example]
    request: TaskRequest
    open_with: Open

    def turn(self, settings: Settings) -> Turn:
        """Open, run an example on every worker, then take the time of all; raises :class:`EvaltoolsError`."""
        wanted = [(entry.model, self._with_threads(entry.running, settings.num_threads)) for entry in self.entries]
        with open_all(wanted, self.open_with, self.request.allow_fallback) as entries, ExitStack() as stack:
            opened = []
            for name, entry in entries.items():
                if not isinstance(entry, Opened):
                    raise ConfigurationUnavailable(f"{name}: {entry.reason}")
                opened.append(entry)
            restarting = sessions_of_workers(opened, settings.workers, self.open_with)
            for session in (session for sessions in restarting for session in sessions.values()):
                stack.callback(session.close)
            workers = [
                {name: self.setup.wrap(name, session) for name, session in sessions.items()} for sessions in restarting
            ]
            makers = stack.enter_context(self._preparers(settings, workers))
            for sessions, maker in zip(workers, makers, strict=True):
                self._run([sessions], self.examples[:1], [maker])
            return self._run(workers, self.examples, makers)

    def _with_threads(self, configuration: Configuration, threads: int | None) -> Configuration:
        if threads is None or configuration.name == self.setup.reference:
            return configuration
        return replace(configuration, num_threads=threads)

    def _preparers(self, settings: Settings, workers: Sequence[Mapping[str, Session]]) -> Any:
        """As many processes make inputs as in the run, whose number of examples decides whether there are some."""
        folder, execution = settings.input_cache, self.request.execution
        cache = None if folder is None else InputCache.opened(folder, execution.input_cache_bytes)
        within = partial(using_input_cache, cache)
        specs = next(iter(workers[0].values())).inputs
        count, all_examples = len(workers), len(self.task.examples)
        return preparers(self.task, specs, count, execution.example_timeout_s, all_examples, within)

    def _run(
        self, workers: Sequence[Mapping[str, Session]], examples: Sequence[Example], makers: Sequence[Preparer]
    ) -> Turn:
        with closing(temporary_journal()) as journal:
            reference, options = self.setup.reference, self.setup.options
            outcome = run_pass(self.task, workers, journal, reference, options, examples, makers=makers)
        if outcome.stopped == "interrupted":
            raise KeyboardInterrupt
        if outcome.stopped is not None or outcome.given_up:
            given_up = [f"{name} was given up" for name in outcome.given_up]
            raise ConfigurationUnavailable(", ".join(given_up) or str(outcome.stopped))
        return Turn(outcome.elapsed_s, outcome.failed_examples)


def with_tried_advice(
    measured: MeasuredPass,
    task: Task[Any],
    setup: PassSetup,
    opened: Sequence[Opened],
    request: TaskRequest,
    observer: Observer,
    open_with: Open,
) -> MeasuredPass:
    """What was measured, with the flags tried that would make the run faster, where that is asked for.

    Ctrl-C ends it; rounds that are finished by then are kept.
    """
    execution = request.execution
    if not execution.try_advice or measured.outcome.stopped is not None:
        return measured
    entries = [entry for entry in opened if entry.configuration.name not in measured.outcome.given_up]
    helps = _advised(measured, entries, execution)
    if setup.one_worker or not helps:
        why = _DEPENDENT if setup.one_worker else _NOT_KNOWN if helps is None else _NO_FLAG
        return replace(measured, not_tried=why)
    wanted = execution.try_advice
    examples = task.examples[:wanted] if task.in_order else examples_for_latency(task.examples, wanted)
    trial = Trial(task, setup, entries, examples, request, open_with)
    as_it_was = Settings(measured.workers, execution.input_cache)
    try:
        inputs = tempfile.TemporaryDirectory(prefix="evaltools-inputs-", ignore_cleanup_errors=True)
    except OSError as error:
        return replace(measured, not_tried=f"no folder for inputs can be made: {error}; name another one in TMPDIR")
    with inputs as folder:
        candidates = {each.typed: _settings(as_it_was, each, Path(folder)) for each in helps}
        rounds = Rounds(trial, {"": as_it_was, **candidates})
        is_interrupted = rounds.run(observer)
    outcome = measured.outcome.interrupted() if is_interrupted else measured.outcome
    return replace(measured, tried=[rounds.found(flag) for flag in candidates], outcome=outcome)


def _advised(measured: MeasuredPass, entries: Sequence[Opened], execution: Execution) -> Sequence[Help] | None:
    """The flags that would help, None where it is not known where the time went."""
    cores = os.cpu_count() or 1
    threads = most_threads((entry.running.num_threads for entry in entries), cores)
    found = bottleneck(describe_execution(execution, measured), cores, threads)
    return None if found is None else found.helps


def _settings(as_it_was: Settings, advised: Help, folder: Path) -> Settings:
    """The settings of the run, but for one flag; ``folder`` is a new one for inputs."""
    if advised.flag == "input_cache":
        return replace(as_it_was, input_cache=folder)
    if advised.flag == "workers":
        return replace(as_it_was, workers=int(advised.value))
    return replace(as_it_was, num_threads=int(advised.value))


class Rounds:
    """Turns of all settings, of which ``""`` are those of the run; every second round is in the opposite order."""

    def __init__(self, trial: Trial, settings: Mapping[str, Settings]) -> None:
        self._trial = trial
        self._settings = settings
        self._turns: dict[str, list[Turn]] = {name: [] for name in settings}
        self._reasons: dict[str, str] = {}

    def run(self, observer: Observer) -> bool:
        """Run all; returns whether Ctrl-C ended it. The first round is not counted: it fills caches."""
        names = list(self._settings)
        try:
            with counted(observer, PHASE, (ROUNDS + 1) * len(names)) as step:
                for number in range(ROUNDS + 1):
                    for name in names if number % 2 else reversed(names):
                        self._take_turn(name, is_counted=number > 0)
                        step()
        except KeyboardInterrupt:
            return True
        return False

    def _take_turn(self, name: str, is_counted: bool) -> None:
        """One turn, unless these settings have failed before, or those of the run."""
        if name in self._reasons or "" in self._reasons:
            return
        try:
            turn = self._trial.turn(self._settings[name])
        except EvaltoolsError as error:
            self._reasons[name] = str(error)
            return
        if is_counted:
            self._turns[name].append(turn)

    def found(self, flag: str) -> TriedFlag:
        """What came of a flag."""
        without, own = self._turns[""], self._turns[flag]
        seconds = [turn.seconds for turn in own]
        seconds_without = [turn.seconds for turn in without]
        reason = self._reason(flag)
        ratio = None if reason else rounds_ratio(_rounds(seconds), _rounds(seconds_without))
        return TriedFlag(
            flag=flag,
            examples=len(self._trial.examples),
            seconds=seconds,
            seconds_without=seconds_without,
            speed=None if ratio is None else ratio.ratio,
            interval=None if ratio is None else ratio.interval,
            reason=reason,
        )

    def _reason(self, flag: str) -> str:
        """Why there is no speed."""
        if "" in self._reasons:
            return f"the run could not be repeated as it was: {self._reasons['']}"
        if flag in self._reasons:
            return self._reasons[flag]
        rounds = list(zip(self._turns[""], self._turns[flag], strict=False))
        if not rounds:
            return "it was interrupted before the end of a round"
        more = max(turn.failed - without.failed for without, turn in rounds)
        return f"{more} of {len(self._trial.examples)} examples fail with it that did not without" if more > 0 else ""


def _rounds(seconds: Sequence[float]) -> list[list[float]]:
    """Each round as times in microseconds."""
    return [[each * _MICROSECONDS] for each in seconds]
