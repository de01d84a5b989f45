"""The steps of an evaluation, from the request to the typed result, which all tasks share: see :func:`evaluate`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.configuration import Configuration
from evaltools.engine.describe import describe_model
from evaltools.engine.journal import Journal
from evaltools.engine.opening import Opened, open_all
from evaltools.engine.other_programs import OtherPrograms
from evaltools.engine.run import PassOptions
from evaltools.engine.run_folder import RunIdentity, digest_of_files, run_journal
from evaltools.engine.task import Observation, Task
from evaltools.model import ModelFile
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import SCHEMA_VERSION, ConfigurationResult, EvaluationResult
from evaltools.result.model import Model
from evaltools.result.verdict import Verdict
from evaltools.runtime import Open
from evaltools.runtime.process.isolated import open_isolated
from evaltools.runtime.session import Crashes
from evaltools.task_kind import with_task_figures
from evaltools.tasks.shared.measuring import (
    CHECKS,
    OPENING,
    Observer,
    OpenConfigurations,
    PassSetup,
    Startup,
    carry_out,
)
from evaltools.tasks.shared.one_pass import (
    MeasuredPass,
    RunSums,
    describe_execution,
    latency_comparisons,
    nothing_measured,
    with_conditions,
)
from evaltools.tasks.shared.request import TaskRequest
from evaltools.tasks.shared.run_identity import (
    TASK,
    RunAtPlace,
    begin_run,
    changed_meanwhile,
    libraries_of,
    merged_run,
    require_same_inputs,
)
from evaltools.tasks.shared.sound_reference import unsound_in_words

Asked = TypeVar("Asked", bound=TaskRequest)


class ReadyTask(Struct, Generic[Observation], frozen=True):
    """A task, and how its pass is set up.

    ``runs``: whether the pass is run; it is not where no configuration can run. ``notes`` are what the evaluation
    remembers for :meth:`Evaluation.findings`. ``interrupted``: Ctrl-C ended what was measured after the pass.
    """

    task: Task[Observation]
    setup: PassSetup
    notes: Any = None
    runs: bool = True
    interrupted: bool = False


class Findings(Struct, frozen=True):
    """The figures of a run, and what the task concludes of them.

    ``configurations`` have the figures that every task has; ``sums`` are the sums over all records. ``part`` is the
    task's part of the result. ``verdicts`` are by configuration; those against the reference come first.
    """

    configurations: list[ConfigurationResult]
    sums: RunSums
    part: Any
    verdicts: Mapping[str, list[Verdict]] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class Evaluation(ABC, Generic[Observation]):
    """One evaluation of a task: its request and its checked inputs.

    :func:`evaluate` calls the methods in the order in which they stand here. ``name`` is the task's name in results.
    """

    name: str
    request: TaskRequest
    model: ModelFile

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs."""
        return [(self.model, configuration) for configuration in self.request.configurations]

    @property
    def other_models(self) -> dict[str, Model]:
        """The models of the configurations that run another one than :attr:`model`."""
        others = ((each.name, model) for model, each in self.wanted if model.sha256 != self.model.sha256)
        return {name: describe_model(model) for name, model in others}

    @property
    @abstractmethod
    def example_count(self) -> int:
        """How many examples there are, over all shards."""

    @property
    def pictures(self) -> Sequence[Path]:
        """The pictures of the examples in their order, where examples are pictures."""
        return ()

    @property
    def pass_options(self) -> PassOptions:
        """When the pass stops, and how often it runs each example."""
        return PassOptions(self.request.max_failed_examples, max_crashes=self.request.execution.max_crashes)

    @abstractmethod
    def identity(self) -> RunIdentity:
        """What must not change between the parts of a run. It reads the files again at each call."""

    def identity_with(self, inputs: Mapping[str, str]) -> RunIdentity:
        """The identity of task, model, options and libraries, with the ``inputs`` that only this task has."""
        return RunIdentity(
            {TASK: self.name, "the model": self.model.sha256, **inputs},
            options=dict(self.request.flags),
            libraries=libraries_of(configuration for _, configuration in self.wanted),
        )

    @abstractmethod
    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose inputs or outputs are others in the runtime than in its file."""

    @abstractmethod
    def ready(self, opened: OpenConfigurations, journal: Journal) -> ReadyTask[Observation]:
        """The task, and how its pass is set up; what can only be found out with open sessions is found out here."""

    @abstractmethod
    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> ReadyTask[Observation]:
        """The task and its setup for :func:`merge`, where the records are in run folders and no session is open."""

    def after_pass(
        self,
        ready: ReadyTask[Observation],
        measured: MeasuredPass,
        opened: Sequence[Opened],
        observer: Observer,
        open_with: Open,
    ) -> ReadyTask[Observation]:
        """Measure what is measured after the pass; returns ``ready`` with notes about it."""
        return ready

    def after_merge(
        self,
        ready: ReadyTask[Observation],
        measured: MeasuredPass,
        places: Sequence[RunAtPlace],
        observer: Observer,
        open_with: Open,
    ) -> ReadyTask[Observation]:
        """Measure what is measured after the records of run folders are merged.

        Returns ``ready`` with notes about it.
        """
        return ready

    @abstractmethod
    def findings(
        self, described: Sequence[ConfigurationResult], measured: MeasuredPass, ready: ReadyTask[Observation]
    ) -> Findings:
        """Compute the figures of all records. A configuration that was not measured has none."""


def evaluate(
    prepare: Callable[[Asked], Evaluation[Observation]],
    asked: Asked,
    observer: Observer,
    open_with: Open | None = None,
) -> EvaluationResult:
    """Check everything, open the configurations, run the pass, compute the figures.

    ``prepare`` raises :class:`~evaltools.errors.UsageError` before any long work for a model or data that are wrong.
    Configurations that cannot run are ``not measured`` in the result. If no test configuration can run, the pass is not
    run. ``open_with`` opens a session; None opens each in a process of its own.
    """
    started_at, others = _now(), OtherPrograms()
    with _run(prepare, asked, observer, open_with) as run:
        result = _assemble(run.evaluation, run.opened.described, run.measured, run.ready, started_at, observer, others)
        changed = changed_meanwhile(run.journal, run.identity, run.evaluation.identity())
        return replace(result, warnings=[*run.opened.warnings, *result.warnings, *changed])


def record(prepare: Callable[[Asked], Evaluation[Observation]], asked: Asked, observer: Observer) -> int:
    """Do what :func:`evaluate` does up to the figures, which are for :func:`merge` to compute from the run folder.

    Returns the exit code: whether there are records, and of every configuration.
    """
    with _run(prepare, asked, observer) as run:
        observer.measured()
    if run.ready.interrupted or run.measured.outcome.stopped == "interrupted":
        return exit_codes.INTERRUPTED
    is_whole = all(entry.status == "measured" for entry in run.opened.described)
    return exit_codes.OK if is_whole else exit_codes.NOT_MEASURED


class _Run(Struct, Generic[Observation], frozen=True):
    """A run whose records are all in its journal."""

    evaluation: Evaluation[Observation]
    opened: OpenConfigurations
    measured: MeasuredPass
    ready: ReadyTask[Observation]
    journal: Journal
    identity: RunIdentity


@contextmanager
def _run(
    prepare: Callable[[Asked], Evaluation[Observation]],
    asked: Asked,
    observer: Observer,
    open_with: Open | None = None,
) -> Iterator[_Run[Observation]]:
    """A run up to its figures; the journal is open in the context."""
    startup = Startup()
    evaluation = prepare(asked)
    request = evaluation.request
    opener = open_with or _in_own_process(request)
    with run_journal(request.execution.run_dir) as journal:
        identity = evaluation.identity()
        require_same_inputs(journal, identity, request.execution.shard)
        startup.mark(CHECKS)
        with open_all(evaluation.wanted, opener, request.allow_fallback) as entries:
            opened = OpenConfigurations.of(entries.values(), request.reference, evaluation.other_models)
            observer.opened(opened.described)
            evaluation.check_sessions(opened)
            startup.mark(OPENING)
            begin_run(journal, opened.described, identity, request.execution.shard, request.source)
            measured = nothing_measured(opened.sessions)
            ready = evaluation.ready(opened, journal)
            if ready.runs:
                measured = carry_out(
                    ready.task, opened, journal, ready.setup, request.execution, observer, opener, startup
                )
                ready = evaluation.after_pass(ready, measured, opened.entries, observer, opener)
        yield _Run(evaluation, opened, measured, ready, journal, identity)


def merge(
    prepare: Callable[[Asked], Evaluation[Observation]],
    asked: Asked,
    places: Sequence[RunAtPlace],
    observer: Observer,
    open_with: Open | None = None,
) -> EvaluationResult:
    """The result of the shards in run folders, as if one run had done them all.

    Each place did all shards; its folders have their records. Raises :class:`~evaltools.errors.UsageError` where they
    are not all the shards of this run, each finished.
    """
    started_at = _now()
    evaluation = prepare(asked)
    opener = open_with or _in_own_process(evaluation.request)
    ready = evaluation.ready_to_merge(places)
    with run_journal(None) as journal:
        reference, options = evaluation.request.reference_name, evaluation.pass_options
        merged = merged_run(journal, places, ready.task, evaluation.identity(), reference, options)
        observer.opened(merged.described)
        ready = evaluation.after_merge(ready, merged.measured, places, observer, opener)
        return _assemble(evaluation, merged.described, merged.measured, ready, started_at, observer)


def _in_own_process(request: TaskRequest) -> Open:
    return partial(open_isolated, timeout_s=request.execution.example_timeout_s, timeout_flag="--example_timeout")


def _assemble(
    evaluation: Evaluation[Observation],
    described: Sequence[ConfigurationResult],
    measured: MeasuredPass,
    ready: ReadyTask[Observation],
    started_at: str,
    observer: Observer,
    others: OtherPrograms | None = None,
) -> EvaluationResult:
    others_cores = None if others is None else others.cores()
    observer.measured()
    outcome = measured.outcome.interrupted() if ready.interrupted else measured.outcome
    findings = evaluation.findings(described, measured, ready)
    configurations = [
        replace(_with_crashes(entry, measured), verdicts=findings.verdicts.get(entry.name, []))
        for entry in with_conditions(findings.configurations, findings.sums)
    ]
    emulated = {entry.name for entry in configurations if entry.is_emulated}
    pictures = evaluation.pictures
    is_traced = ready.runs and measured.not_traced is None and not measured.merged_shards
    result = EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task=evaluation.name,
        complete=bool(outcome.examples_done) and outcome.stopped is None,
        stopped=outcome.stopped,
        examples_done=outcome.examples_done,
        environment=describe_environment(
            list(evaluation.request.command),
            started_at,
            outcome.elapsed_s,
            evaluation.request.execution.trace if is_traced else None,
            others_cores,
        ),
        model=describe_model(evaluation.model),
        configurations=configurations,
        part=findings.part,
        failed=findings.sums.failed_examples(),
        warnings=[
            *_unsound_reference(evaluation, measured),
            *findings.warnings,
            *(f"{entry.name}: not clean: {entry.not_clean}" for entry in configurations if entry.not_clean),
        ],
        execution=describe_execution(evaluation.request.execution, measured),
        latency_comparisons=[
            each for each in latency_comparisons(findings.sums) if not emulated & {each.baseline, each.other}
        ],
        pictures_digest=digest_of_files(pictures) if pictures else "",
    )
    return with_task_figures(result)


def _unsound_reference(evaluation: Evaluation[Observation], measured: MeasuredPass) -> list[str]:
    name = evaluation.request.reference_name
    if name is None or not measured.unsound:
        return []
    return [unsound_in_words(name, measured.unsound, measured.outcome.examples_done)]


def _with_crashes(entry: ConfigurationResult, measured: MeasuredPass) -> ConfigurationResult:
    """The configuration with the crashes of its processes, and what else makes figures of it no clean pass."""
    crashes = Crashes(entry.crashes, entry.first_crash) + measured.crashes.get(entry.name, Crashes())
    entry = replace(entry, crashes=crashes.count, first_crash=crashes.first_reason)
    if entry.status == "not measured":
        return entry
    reasons = [f"{entry.crashes_of_runs}, at first because {entry.first_crash}"] if entry.crashes else []
    if measured.not_clean.get(entry.name, entry.first_crash) != entry.first_crash:
        reasons.append(measured.not_clean[entry.name])
    return replace(entry, not_clean="; ".join(reasons))


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
