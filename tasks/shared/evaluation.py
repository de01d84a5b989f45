"""The evaluation that all tasks share, from what was asked to the typed result: see :func:`evaluate`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from evaltools.configuration import Configuration
from evaltools.engine import Journal, Open, Opened, PassOptions, Task, open_all, run_journal
from evaltools.engine.describe import describe_model
from evaltools.engine.run_folder import RunIdentity, digest
from evaltools.engine.task import Observation
from evaltools.model import ModelFile
from evaltools.result.environment import describe_environment
from evaltools.result.evaluation import SCHEMA_VERSION, ConfigurationResult, EvaluationResult
from evaltools.result.verdict import Verdict
from evaltools.runtime.process.isolated import open_isolated
from evaltools.task_kind import with_task_figures
from evaltools.tasks.shared.measured import Measured, describe_execution, nothing_measured
from evaltools.tasks.shared.measuring import Observer, OpenConfigurations, PassSetup, carry_out
from evaltools.tasks.shared.one_pass import Sums, latency_comparisons, with_conditions
from evaltools.tasks.shared.request import TaskRequest
from evaltools.tasks.shared.run_identity import RunAtPlace, begin_run, changed_meanwhile, libraries_of, merged_run
from evaltools.tasks.shared.startup import CHECKS, OPENING, Startup

Asked = TypeVar("Asked", bound=TaskRequest)


@dataclass(frozen=True)
class Ready(Generic[Observation]):
    """A task, and how it is run, unless nothing can be measured (``runs`` false).

    ``notes`` are what the evaluation found out on the way there. ``interrupted``: Ctrl-C ended what came after the
    pass.
    """

    task: Task[Observation]
    setup: PassSetup
    notes: Any = None
    runs: bool = True
    interrupted: bool = False


@dataclass(frozen=True)
class Findings:
    """What all records of a run come to, and what the task says of it.

    ``configurations`` have what every task has; ``sums`` is what one pass over the records gave. ``part`` is the task's
    part of the result, ``verdicts`` are by configuration, the reference's first.
    """

    configurations: list[ConfigurationResult]
    sums: Sums
    part: Any
    verdicts: Mapping[str, list[Verdict]] = field(default_factory=dict)
    warnings: Sequence[str] = ()


class Evaluation(ABC, Generic[Observation]):
    """One evaluation of a task: its request and its checked inputs, with what :func:`evaluate` asks in turn.

    ``name`` is the task's name in results.
    """

    name: str
    request: TaskRequest
    model: ModelFile

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs."""
        return [(self.model, configuration) for configuration in self.request.configurations]

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
        """How the pass goes."""
        return PassOptions(self.request.max_failed_examples, max_crashes=self.request.execution.max_crashes)

    @abstractmethod
    def identity(self) -> RunIdentity:
        """What must not change between the parts of a run; reads files again."""

    def identity_with(self, inputs: Mapping[str, str]) -> RunIdentity:
        """Task, model, options, libraries, and what else the task is made of."""
        return RunIdentity(
            {"the task": self.name, "the model": self.model.sha256, **inputs},
            options=dict(self.request.flags),
            libraries=libraries_of(configuration for _, configuration in self.wanted),
        )

    @abstractmethod
    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Refuse a model that the runtime makes another than its file states; raises :class:`ModelError`."""

    @abstractmethod
    def ready(self, opened: OpenConfigurations, journal: Journal) -> Ready[Observation]:
        """The task, after trying what must be tried first."""

    @abstractmethod
    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> Ready[Observation]:
        """The task whose records lie in some run folders."""

    def after_pass(
        self,
        ready: Ready[Observation],
        measured: Measured,
        opened: Sequence[Opened],
        observer: Observer,
        open_with: Open,
    ) -> Ready[Observation]:
        """What else is to be measured once the pass is over."""
        return ready

    def after_merge(
        self,
        ready: Ready[Observation],
        measured: Measured,
        places: Sequence[RunAtPlace],
        observer: Observer,
        open_with: Open,
    ) -> Ready[Observation]:
        """The same for a run whose records come from some run folders."""
        return ready

    @abstractmethod
    def findings(
        self, described: Sequence[ConfigurationResult], measured: Measured, ready: Ready[Observation]
    ) -> Findings:
        """Go through the records: configurations, some of which have no figures, and the task's own part."""


def evaluate(
    prepare: Callable[[Asked], Evaluation[Observation]],
    asked: Asked,
    observer: Observer,
    open_with: Open | None = None,
) -> EvaluationResult:
    """Check everything, open the configurations, run the pass, take the figures.

    ``prepare`` raises :class:`~evaltools.errors.UsageError` before any long work for a model or data that are wrong.
    Configurations that cannot run are ``not measured`` in the result; without a single test configuration that can run,
    nothing is. ``open_with`` opens a session; None: in a process of its own.
    """
    started_at = _now()
    startup = Startup()
    evaluation = prepare(asked)
    request = evaluation.request
    opener = open_with or _in_own_process(request)
    startup.mark(CHECKS)
    with run_journal(request.execution.run_dir) as journal:
        with open_all(evaluation.wanted, opener, request.allow_fallback) as entries:
            opened = OpenConfigurations.of(entries.values(), request.reference)
            observer.opened(opened.described)
            evaluation.check_sessions(opened)
            startup.mark(OPENING)
            identity = evaluation.identity()
            begin_run(journal, opened.described, identity, request.execution.shard, request.source)
            measured = nothing_measured(opened.sessions)
            ready = evaluation.ready(opened, journal)
            if ready.runs:
                measured = carry_out(
                    ready.task, opened, journal, ready.setup, request.execution, observer, opener, startup
                )
                ready = evaluation.after_pass(ready, measured, opened.entries, observer, opener)
        result = _assemble(evaluation, opened.described, measured, ready, started_at, observer)
        changed = changed_meanwhile(journal, identity, evaluation.identity())
        return replace(result, warnings=[*result.warnings, *changed])


def merge(
    prepare: Callable[[Asked], Evaluation[Observation]],
    asked: Asked,
    places: Sequence[RunAtPlace],
    observer: Observer,
    open_with: Open | None = None,
) -> EvaluationResult:
    """The result of the shards in some run folders, as if one run had done them all.

    ``places`` are where they are; with several, each did everything. Raises
    :class:`~evaltools.errors.UsageError` where they are not all the shards of this run, each finished.
    """
    started_at = _now()
    evaluation = prepare(asked)
    opener = open_with or _in_own_process(evaluation.request)
    ready = evaluation.ready_to_merge(places)
    with run_journal(None) as journal:
        reference = evaluation.request.reference_name
        merged = merged_run(journal, places, ready.task, evaluation.identity(), reference, evaluation.pass_options)
        observer.opened(merged.described)
        ready = evaluation.after_merge(ready, merged.measured, places, observer, opener)
        return _assemble(evaluation, merged.described, merged.measured, ready, started_at, observer)


def _in_own_process(request: TaskRequest) -> Open:
    return partial(open_isolated, timeout_s=request.execution.example_timeout_s)


def _assemble(
    evaluation: Evaluation[Observation],
    described: Sequence[ConfigurationResult],
    measured: Measured,
    ready: Ready[Observation],
    started_at: str,
    observer: Observer,
) -> EvaluationResult:
    observer.measured()
    outcome = measured.outcome
    findings = evaluation.findings(described, measured, ready)
    configurations = with_conditions(findings.configurations, findings.sums)
    pictures = evaluation.pictures
    stopped = measured.stopped or ("interrupted" if ready.interrupted else None)
    result = EvaluationResult(
        schema_version=SCHEMA_VERSION,
        task=evaluation.name,
        complete=bool(outcome.examples_done) and stopped is None,
        stopped=stopped,
        examples_done=outcome.examples_done,
        environment=describe_environment(list(evaluation.request.command), started_at, outcome.elapsed_s),
        model=describe_model(evaluation.model),
        configurations=[replace(entry, verdicts=findings.verdicts.get(entry.name, [])) for entry in configurations],
        part=findings.part,
        failed=findings.sums.failed_examples(),
        warnings=list(findings.warnings),
        execution=describe_execution(evaluation.request.execution, measured),
        latency_comparisons=latency_comparisons(findings.sums),
        pictures_digest=digest(path.name for path in pictures) if pictures else "",
    )
    return with_task_figures(result)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
