"""Tasks as the rest of evaltools sees them, and where they are found.

A task is an object that implements :class:`TaskKind`. It is the ``KIND`` of a folder under ``tasks``, or an entry point
of the group ``evaltools.tasks`` of another package. Nothing else names a task.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from evaltools.errors import UsageError
from evaltools.extensions import METRICS as OTHER_METRICS
from evaltools.extensions import TASKS, Installed, entries, installed, named, unusable
from evaltools.parameter import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.errors import OutputError
    from evaltools.metrics.metric import Figure, Metric
    from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
    from evaltools.result.section import Section

_TASKS: Final = "evaltools.tasks"
_KIND: Final = "KIND"
_NO_TASKS: Final = {
    "benchmark": "evaltools.benchmark.kind:KIND",
    "locate": "evaltools.locate.kind:KIND",
    "suite": "evaltools.suite.kind:KIND",
}
"""The kinds of requests that are not tasks, by name."""
OWN: Final = "own"
"""What results call every task of one's own."""
_OUTSIDE: Final = "evaltools.tasks.own"
"""Finds those that are not in the tree: ``FILE.py:NAME``, installed ones, which may be a function."""


Detail = Literal["answer", "figures", "all"]
"""How much of a result is shown on stderr: only the answer (``--quiet``), figures too, or all (``--verbose``)."""


class TaskReport(Protocol):
    """How a task's figures are shown: a module or an object with these functions."""

    def lines(self, result: EvaluationResult, configuration: ConfigurationResult) -> list[str]:
        """The native tool's lines of one measured configuration, none where there is no such tool."""

    def fill(self, message: Any, result: EvaluationResult, configuration: ConfigurationResult) -> None:
        """Put the figures of one configuration into the native tool's ``EvaluationStageMetrics``."""

    def sections(self, result: EvaluationResult) -> Sequence[Section]:
        """What there is to show besides the figures of all tasks."""

    def next_steps(self, result: EvaluationResult, configuration: ConfigurationResult) -> Sequence[str]:
        """Commands that answer the question which a bad or open verdict leaves, or sentences about them."""

    def more_files(self, request: Any, outputs: Iterable[Path]) -> Mapping[str, Path]:
        """The output files that only this task has, by configuration, checked before any long work.

        ``outputs`` are those that every task has. Raises :class:`UsageError`.
        """

    def write_more(self, result: EvaluationResult, files: Mapping[str, Path], console: Console) -> list[OutputError]:
        """Write ``files``, which :meth:`more_files` gave; returns an error for each that could not be written."""

    def debug_lines(self, result: EvaluationResult, options: Any) -> list[str]:
        """Lines for stdout before those of the native tool."""

    def as_asked(self, result: EvaluationResult, options: Any) -> EvaluationResult:
        """The result as it is written to the result file, without what was kept only for other files."""


class Accuracy(Struct, frozen=True):
    """The figure that is the accuracy of a task, a share from 0 to 1, and what it is called beside a latency."""

    figure: str
    label: str


class RequestKind(Protocol):
    """The kind of a request: a task, a benchmark or a search. Its attributes need neither NumPy nor a runtime."""

    @property
    def name(self) -> str:
        """The name in results, such as ``inference_diff``."""

    @property
    def command(self) -> str:
        """The name on the command line, such as ``inference-diff``."""

    @property
    def groups(self) -> Mapping[str, Sequence[Parameter]]:
        """All options under their headings."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """All options by name."""

    @property
    def modules_on_devices(self) -> Sequence[str]:
        """The modules that a device must be able to import."""

    def moved(self, task: str, take: Callable[[Path], str]) -> str:
        """The name in a request for another folder or machine, where ``take`` gives the new names of files."""

    def files_beside(self) -> Sequence[Path]:
        """The files that must be sent along with the task's own file, in the same folders relative to it."""


class OtherKind(Struct, frozen=True, dict=True):
    """The kind of a request that is no task: a benchmark, a search, a suite. Nothing of it is in a file of its own."""

    name: str
    groups: Mapping[str, Sequence[Parameter]]
    modules_on_devices: Sequence[str] = ()

    @property
    def command(self) -> str:
        """The name on the command line."""
        return self.name

    @cached_property
    def parameters(self) -> Mapping[str, Parameter]:
        """All options by name."""
        return {parameter.name: parameter for group in self.groups.values() for parameter in group}

    def moved(self, task: str, take: Callable[[Path], str]) -> str:  # noqa: ARG002
        """The same name on every machine."""
        return task

    def files_beside(self) -> Sequence[Path]:
        """No files."""
        return ()


class TaskKind(RequestKind, Protocol):
    """A task. Its attributes need neither NumPy nor a runtime; its methods import what they need."""

    @property
    def summary(self) -> str:
        """A line for ``evaltools --help``."""

    @property
    def alias(self) -> str:
        """A shorter name of its command, empty for none."""

    @property
    def place(self) -> int:
        """Its place among evaltools' own tasks in ``--help``, ascending; equal ones are ordered by name."""

    @property
    def description(self) -> str:
        """A few lines for the task's own ``--help``."""

    @property
    def options(self) -> Mapping[str, Sequence[Parameter]]:
        """Its own options under their headings, without those that all tasks have."""

    @property
    def accuracy(self) -> Accuracy | None:
        """The figure that is the accuracy, None for a task without a ground truth."""

    @property
    def part_type(self) -> type:
        """The struct or dataclass of the task's part of a result."""

    @property
    def report(self) -> TaskReport:
        """How the task's figures are shown."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task's own figures, without those that all tasks have."""


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
    """The task of that name; raises :class:`UsageError` for an unknown name."""
    kind = tree_kinds().get(name)
    if kind is not None:
        return kind
    outside: TaskKind = importlib.import_module(_OUTSIDE).kind_named(name)
    return outside


def names_file(task: str) -> bool:
    """Whether the name of a task is that of a file: ``FILE.py:NAME``.

    >>> [names_file(name) for name in ("own.py:mine", "own.py", "imagenet")]
    [True, True, False]
    """
    return ":" in task or task.endswith(".py")


def file_named(task: str) -> Path | None:
    """The file in the name of a task, None where there is none.

    >>> [str(file_named(name)) for name in ("own.py:mine", "imagenet")]
    ['own.py', 'None']
    """
    return Path(task.rpartition(":")[0] or task) if names_file(task) else None


def name_in_limits(task: str) -> str:
    """What limits call a task of one's own.

    >>> [name_in_limits(name) for name in ("own.py:mine", "installed")]
    ['mine', 'installed']
    """
    return task.rpartition(":")[2]


def recorded_kind(name: str) -> TaskKind:
    """The task that a file from elsewhere names; raises :class:`UsageError` for an unknown one.

    Unlike :func:`kind_of` it never loads a file: results call every task in such a file ``own``.
    """
    if names_file(name):
        raise UsageError(f"{name!r} names a file of a task, which no result does; take the file as evaltools wrote it")
    return kind_of(name)


def request_kind(name: str) -> RequestKind:
    """The task, benchmark or search of that name; raises :class:`UsageError` for an unknown name."""
    if name in _NO_TASKS:
        kind: RequestKind = named(_NO_TASKS[name])
        return kind
    return kind_of(name)


def registered_kinds() -> Iterator[TaskKind]:
    """The tasks that come with evaltools."""
    return iter((*tree_kinds().values(), kind_of(OWN)))


def other_kinds() -> Installed[TaskKind]:
    """The tasks of other packages, without those that cannot be used."""
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
    """The metrics of all tasks by name, with those that all tasks share last.

    A name of evaltools' own cannot be replaced.
    """
    from evaltools.result.metrics import METRICS

    known: dict[str, Metric] = {}
    for metric in (metric for kind in usable_kinds() for metric in kind.metrics):
        known.setdefault(metric.name, metric)
    known |= {metric.name: metric for metric in METRICS}
    return {metric.name: metric for metric in other_metrics().usable.values()} | known


def metric_named(name: str) -> Metric | None:
    """That of :func:`all_metrics`; of tasks it imports no more than those before the one that has it."""
    from evaltools.result.metrics import METRICS

    of_tasks = (metric for kind in usable_kinds() for metric in kind.metrics)
    found = next((metric for metric in chain(METRICS, of_tasks) if metric.name == name), None)
    return found or other_metrics().usable.get(name)


@cache
def other_metrics() -> Installed[Metric]:
    """The metrics of other packages, without those whose names are taken."""
    if not entries(OTHER_METRICS):
        return Installed({}, ())
    from evaltools.metrics.metric import Metric
    from evaltools.result.metrics import METRICS

    taken = {metric.name for metric in (*METRICS, *(each for kind in registered_kinds() for each in kind.metrics))}

    def wrong(metric: Metric, _before: object) -> str:
        return f"has the name of a metric of evaltools, {metric.name}" if metric.name in taken else ""

    return installed(OTHER_METRICS, Metric, wrong)


def subject_of(result: EvaluationResult) -> str:
    """The name of the task of a result. One's own has a name of its own beside that of its kind."""
    name: str = result.part.name if result.task == OWN else result.task
    return name


def metrics_of(result: EvaluationResult) -> list[Metric]:
    """The metrics of a result: those of its task, then those that only the result knows."""
    known = [metric for metric in kind_of(result.task).metrics if not metric.is_of_own_task]
    return [*known, *result.part.own_metrics]


def with_task_figures(result: EvaluationResult) -> EvaluationResult:
    """The result with the figures of every measured configuration, read from the task's part."""
    from evaltools.metrics.metric import present

    metrics = metrics_of(result)
    configurations = []
    warnings = list(result.warnings)
    for entry in result.configurations:
        if entry.status == "measured":
            others, problems = _other_figures(result, entry)
            warnings += problems
            figures = present({metric.name: metric.read(result, entry) for metric in metrics})
            nan_outputs = result.part.nan_outputs(entry.name)
            entry = replace(entry, figures={**figures, **others}, nan_outputs=nan_outputs)
        configurations.append(entry)
    return replace(result, configurations=configurations, warnings=warnings)


def _other_figures(
    result: EvaluationResult, configuration: ConfigurationResult
) -> tuple[dict[str, float | None], list[str]]:
    """The figures of other packages' metrics, with None where a metric fails, and warnings about these."""
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
