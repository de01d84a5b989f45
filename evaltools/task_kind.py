"""What engine, report, gates, devices and command line know of a task, and where the tasks are found.

A task is an object that follows :class:`TaskKind`, the ``KIND`` of a folder of its own under ``tasks``; or it comes
from outside, by an entry point of the group ``evaltools.tasks``. Nothing else names a task.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from evaltools.errors import UsageError
from evaltools.extensions import METRICS as OTHER_METRICS
from evaltools.extensions import TASKS, Installed, entries, installed, unusable
from evaltools.parameter import Parameter

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from evaltools.metrics.metric import Figure, Metric
    from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
    from evaltools.result.evidence import Judged
    from evaltools.result.section import Section

_TASKS: Final = "evaltools.tasks"
_KIND: Final = "KIND"
_BENCHMARK: Final = ("benchmark", "evaltools.benchmark.kind:KIND")
OWN: Final = "own"
"""What results call every task of one's own."""
_OUTSIDE: Final = "evaltools.tasks.own"
"""Finds those that are not in the tree: ``FILE.py:NAME``, and installed ones, which may be one function."""


Detail = Literal["answer", "figures", "all"]
"""How much of a result is shown on stderr: the answer alone (``--quiet``), figures too, or all (``--verbose``)."""


class TaskReport(Protocol):
    """How a task's figures are shown: a module or an object with these functions."""

    def lines(self, result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
        """The native tool's lines of one measured configuration, none where there is no such tool."""

    def fill(self, message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
        """Put the figures of one configuration into the native tool's ``EvaluationStageMetrics``."""

    def print_figures(self, result: EvaluationResult, console: Console, detail: Detail) -> None:
        """The figures for a person, on stderr; ``detail`` is ``figures`` or ``all``."""

    def sections(self, result: EvaluationResult) -> Sequence[Section]:
        """What a page has besides the figures of all tasks."""

    def next_step(self, result: EvaluationResult, configuration: ConfigurationResult) -> str:
        """What answers the question that a verdict, which is no good one, leaves open; empty for nothing."""


class TaskEvidence(Protocol):
    """What a task's part of a result says in the words of limits: a module or an object with these functions."""

    def subject(self, result: EvaluationResult) -> str:
        """What the task is called: one that is a function has a name of its own beside that of its kind."""

    def setup(self, result: EvaluationResult) -> dict[str, str]:
        """What decided the figures beside model, examples and configurations, as texts by what they are."""

    def figures(self, result: EvaluationResult, configuration: ConfigurationResult) -> dict[str, float | None]:
        """The figures of a measured configuration by the names that limits use."""

    def judged(self, result: EvaluationResult, configuration: ConfigurationResult) -> Judged:
        """What limits and baselines need of a measured configuration beside its figures."""

    def examples(self, result: EvaluationResult) -> list[str]:
        """Texts that are the same for two results of the same examples, for a baseline."""


@dataclass(frozen=True)
class Accuracy:
    """The figure that is the accuracy of a task, a share from 0 to 1, and what it is called beside a latency."""

    figure: str
    label: str


class RequestKind(Protocol):
    """What a request is about: a task, or a benchmark. At hand without NumPy or a runtime."""

    @property
    def name(self) -> str:
        """As in results, such as ``inference_diff``."""

    @property
    def command(self) -> str:
        """As on the command line, such as ``inference-diff``."""

    @property
    def groups(self) -> Mapping[str, Sequence[Parameter]]:
        """All options under their headings."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """All options by name."""

    @property
    def modules_on_devices(self) -> Sequence[str]:
        """What is imported there, at the latest when there are figures."""

    def moved(self, task: str, take: Callable[[Path], str]) -> str:
        """How a request names it where its own files are called what ``take`` says."""

    def files_beside(self) -> Sequence[Path]:
        """What must lie beside its own file, in the same folders below, where that is moved."""


class TaskKind(RequestKind, Protocol):
    """One task. Attributes are at hand without NumPy or a runtime; methods import what they need."""

    @property
    def summary(self) -> str:
        """A line for ``evaltools --help``."""

    @property
    def alias(self) -> str:
        """A shorter name of its command, empty for none."""

    @property
    def place(self) -> int:
        """Where help lists it among those that come with evaltools; equal ones by their names."""

    @property
    def description(self) -> str:
        """A few lines for the task's own ``--help``."""

    @property
    def options(self) -> Mapping[str, Sequence[Parameter]]:
        """Its own options under their headings, without those that all tasks have."""

    @property
    def accuracy(self) -> Accuracy | None:
        """What is the accuracy of a configuration, None for a task without a ground truth."""

    @property
    def part_type(self) -> type:
        """The type of its part of the result, a dataclass."""

    @property
    def report(self) -> TaskReport:
        """How its figures are shown."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """What is known of its figures, beside those that all tasks have."""

    @property
    def evidence(self) -> TaskEvidence:
        """What its part of a result says in the words of limits."""


@cache
def tree_kinds() -> dict[str, TaskKind]:
    """The tasks that come with evaltools, by name: the folders of ``tasks`` that have a ``KIND``."""
    folders = pkgutil.iter_modules(importlib.import_module(_TASKS).__path__)
    modules = [importlib.import_module(f"{_TASKS}.{folder.name}") for folder in folders if folder.ispkg]
    kinds: list[TaskKind] = [getattr(module, _KIND) for module in modules if hasattr(module, _KIND)]
    return {kind.name: kind for kind in sorted(kinds, key=lambda kind: (kind.place, kind.name))}


def kind_names() -> list[str]:
    """The names of all tasks, those from outside last."""
    return list(dict.fromkeys([*tree_kinds(), *(entry.name for entry in entries(TASKS))]))


def kind_of(name: str) -> TaskKind:
    """The task of that name; raises :class:`UsageError` for a name that is none."""
    kind = tree_kinds().get(name)
    if kind is not None:
        return kind
    outside: TaskKind = importlib.import_module(_OUTSIDE).kind_named(name)
    return outside


def request_kind(name: str) -> RequestKind:
    """What a request of that name is about; raises :class:`UsageError` for a name that is none."""
    if name == _BENCHMARK[0]:
        kind: RequestKind = _at(_BENCHMARK[1])
        return kind
    return kind_of(name)


def _at(address: str) -> Any:
    module, _, attribute = address.partition(":")
    return getattr(importlib.import_module(module), attribute)


def registered_kinds() -> Iterator[TaskKind]:
    """The tasks that come with evaltools."""
    return iter((*tree_kinds().values(), kind_of(OWN)))


def other_kinds() -> Installed[TaskKind]:
    """The tasks of other packages; one that cannot be used costs itself alone."""
    usable: dict[str, TaskKind] = {}
    problems = []
    for entry in entries(TASKS):
        try:
            if entry.name in tree_kinds():
                raise unusable(entry, "has the name of a task of evaltools")
            usable[entry.name] = kind_of(entry.name)
        except UsageError as error:
            problems.append(str(error))
    return Installed(usable, tuple(problems))


def usable_kinds() -> list[TaskKind]:
    """All tasks, those of other packages last."""
    return [*tree_kinds().values(), *other_kinds().usable.values()]


def all_metrics() -> dict[str, Metric]:
    """The metrics of all tasks by name, those that all of them have last; names of evaltools' own are its own."""
    from evaltools.result.metrics import METRICS

    known: dict[str, Metric] = {}
    for metric in (metric for kind in usable_kinds() for metric in kind.metrics):
        known.setdefault(metric.name, metric)
    known |= {metric.name: metric for metric in METRICS}
    return {metric.name: metric for metric in other_metrics().usable.values()} | known


@cache
def other_metrics() -> Installed[Metric]:
    """The metrics of other packages; the names of evaltools' own are taken."""
    from evaltools.metrics.metric import Metric
    from evaltools.result.metrics import METRICS

    taken = {metric.name for metric in (*METRICS, *(each for kind in registered_kinds() for each in kind.metrics))}

    def wrong(metric: Metric, _before: object) -> str:
        return f"has the name of a metric of evaltools, {metric.name}" if metric.name in taken else ""

    return installed(OTHER_METRICS, Metric, wrong)


def with_task_figures(result: EvaluationResult) -> EvaluationResult:
    """The same with the figures of every measured configuration, taken from the task's part."""
    evidence = kind_of(result.task).evidence
    configurations = []
    warnings = list(result.warnings)
    for entry in result.configurations:
        if entry.status == "measured":
            others, problems = _other_figures(result, entry)
            warnings += problems
            entry = replace(entry, figures={**evidence.figures(result, entry), **others})
        configurations.append(entry)
    return replace(result, configurations=configurations, warnings=warnings)


def _other_figures(
    result: EvaluationResult, configuration: ConfigurationResult
) -> tuple[dict[str, float | None], list[str]]:
    """Those of metrics of other packages, no number where a metric fails, and what to say of that."""
    from evaltools.metrics.metric import present

    figures: dict[str, Figure] = {}
    problems = []
    for metric in other_metrics().usable.values():
        try:
            figures[metric.name] = metric.read(result, configuration)
        except Exception as error:
            figures[metric.name] = None
            problems.append(f"{configuration.name}: the metric {metric.name} failed: {type(error).__name__}: {error}")
    return present(figures), problems
