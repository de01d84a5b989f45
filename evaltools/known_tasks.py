"""Tasks as the rest of evaltools sees them, and where they are found.

The command of a task that comes with evaltools is the ``COMMAND`` of a folder under ``tasks``. A task of another
package is an entry point of the group ``evaltools.tasks``. A command finds its task here by name.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec.structs import replace

from evaltools.command import Command, TaskCommand
from evaltools.errors import UsageError
from evaltools.extensions import METRICS as OTHER_METRICS
from evaltools.extensions import TASKS, Installed, entries, installed, named, unusable

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric
    from evaltools.result.result import Result

_TASKS: Final = "evaltools.tasks"
_COMMAND: Final = "COMMAND"
_OTHER_COMMANDS: Final = {
    "benchmark": "evaltools.benchmark.command:COMMAND",
    "locate": "evaltools.locate.command:COMMAND",
    "suite": "evaltools.suite.command:COMMAND",
}
"""Where the commands that make requests and are no tasks are, by name."""
GIVEN_TO_A_SEARCH: Final = (
    "signature", "seed", "input_range", "input_files", "inputs", "input_images", "normalization", "channel_order",
    "input_layout", "input_shape", "reference_model_file",
)  # fmt: skip
"""What a search for the operator takes over: the inputs and what else decides what is run."""
OWN: Final = "own"
"""What results call every task of one's own."""
_OUTSIDE: Final = "evaltools.tasks.framework"
"""Finds those that are not in the tree: ``FILE.py:NAME``, installed ones, which may be a function."""


Detail = Literal["answer", "figures", "all"]
"""How much of a result is shown on stderr: only the answer (``--quiet``), figures too, or all (``--verbose``)."""


@cache
def _folders() -> list[str]:
    """The names of the folders of ``tasks``; none of them is imported yet."""
    return [folder.name for folder in pkgutil.iter_modules(importlib.import_module(_TASKS).__path__) if folder.ispkg]


def built_in_task(name: str) -> TaskCommand | None:
    """The task that comes with evaltools under that name, which is the name of its folder; no other one is imported."""
    return getattr(importlib.import_module(f"{_TASKS}.{name}"), _COMMAND, None) if name in _folders() else None


@cache
def built_in_tasks() -> dict[str, TaskCommand]:
    """The tasks that come with evaltools, by name: the folders of ``tasks`` that have a ``COMMAND``."""
    found = filter(None, map(built_in_task, _folders()))
    return {task.name: task for task in sorted(found, key=lambda task: (task.place, task.name))}


def task_names() -> list[str]:
    """The names of all tasks, those from outside last."""
    return list(dict.fromkeys([*built_in_tasks(), *(entry.name for entry in entries(TASKS))]))


def task_command(name: str) -> TaskCommand:
    """The task of that name; raises :class:`UsageError` for an unknown name."""
    built_in = built_in_task(name)
    if built_in is not None:
        return built_in
    outside: TaskCommand = importlib.import_module(_OUTSIDE).outside_task(name)
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


def moved(task: str, take: Callable[[Path], str]) -> str:
    """The name of a task for another folder or machine, where ``take`` gives the new names of files.

    Only one that is in a file has another name there.

    >>> [moved(name, lambda file: f"there/{file}") for name in ("own.py:mine", "imagenet")]
    ['there/own.py:mine', 'imagenet']
    """
    file = file_named(task)
    return task if file is None else f"{take(file)}:{name_in_limits(task)}"


def name_in_limits(task: str) -> str:
    """What limits call a task of one's own.

    >>> [name_in_limits(name) for name in ("own.py:mine", "installed")]
    ['mine', 'installed']
    """
    return task.rpartition(":")[2]


def recorded_task(name: str) -> TaskCommand:
    """The task that a file from elsewhere names; raises :class:`UsageError` for an unknown one.

    Unlike :func:`task_command` it never loads a file: results call every task in such a file ``own``.
    """
    if names_file(name):
        raise UsageError(f"{name!r} names a file of a task, which no result does; take the file as evaltools wrote it")
    return task_command(name)


def command_named(name: str) -> Command:
    """What makes requests of that name, a task or not; raises :class:`UsageError` for an unknown name."""
    if name in _OTHER_COMMANDS:
        found: Command = named(_OTHER_COMMANDS[name])
        return found
    return task_command(name)


def tasks_of_results() -> Iterator[TaskCommand]:
    """The tasks that results name: those that come with evaltools, and one for all of one's own."""
    return iter((*built_in_tasks().values(), task_command(OWN)))


def installed_tasks() -> Installed[TaskCommand]:
    """The tasks of other packages, without those that cannot be used."""
    usable: dict[str, TaskCommand] = {}
    problems = []
    for entry in entries(TASKS):
        try:
            if entry.name in built_in_tasks():
                raise unusable(entry, "has the name of a task of evaltools")
            usable[entry.name] = task_command(entry.name)
        except UsageError as error:
            problems.append(str(error))
    return Installed(usable, tuple(problems))


def usable_tasks() -> list[TaskCommand]:
    """All tasks, those of other packages last."""
    return [*built_in_tasks().values(), *installed_tasks().usable.values()]


def all_metrics() -> dict[str, Metric]:
    """The metrics of all tasks by name, with those that all tasks share last.

    A name of evaltools' own cannot be replaced.
    """
    from evaltools.result.metrics import METRICS

    known: dict[str, Metric] = {}
    for metric in (metric for task in usable_tasks() for metric in task.metrics):
        known.setdefault(metric.name, metric)
    known |= {metric.name: metric for metric in METRICS}
    return {metric.name: metric for metric in other_metrics().usable.values()} | known


def metrics_of_own_tasks() -> dict[str, Metric]:
    """Those of :func:`all_metrics` that a task of one's own may have: not what other tasks call their own figures."""
    from evaltools.result.metrics import METRICS

    shared = (*other_metrics().usable.values(), *task_command(OWN).metrics, *METRICS)
    return {metric.name: metric for metric in shared}


def metric_named(name: str) -> Metric | None:
    """That of :func:`all_metrics`; no more tasks are imported than are needed to find it."""
    from evaltools.result.metrics import METRICS

    found = next((metric for metric in chain(METRICS, _metrics_of_tasks()) if metric.name == name), None)
    return found or other_metrics().usable.get(name)


def _metrics_of_tasks() -> Iterator[Metric]:
    """The metrics of each task, first those of tasks that are imported already; one is imported when it is its turn."""
    for folder in sorted(_folders(), key=lambda folder: f"{_TASKS}.{folder}" not in sys.modules):
        task = built_in_task(folder)
        yield from () if task is None else task.metrics
    for task in installed_tasks().usable.values():
        yield from task.metrics


@cache
def other_metrics() -> Installed[Metric]:
    """The metrics of other packages, without those whose names are taken."""
    if not entries(OTHER_METRICS):
        return Installed({}, ())
    from evaltools.metrics.metric import Metric
    from evaltools.result.metrics import METRICS

    taken = {metric.name for metric in (*METRICS, *(each for task in tasks_of_results() for each in task.metrics))}

    def wrong(metric: Metric, _before: object) -> str:
        return f"has the name of a metric of evaltools, {metric.name}" if metric.name in taken else ""

    return installed(OTHER_METRICS, Metric, wrong)


def with_other_metrics(result: Result) -> Result:
    """The result with the figures of other packages' metrics, without a number and with a warning where one fails."""
    if not other_metrics().usable:
        return result
    from evaltools.result.figure import Figure
    from evaltools.result.result import with_warnings

    warnings, rows = [], []
    for entry in result.rows:
        others: dict[str, Figure] = {}
        for metric in other_metrics().usable.values() if entry.status == "measured" else ():
            try:
                value = None if metric.read is None else metric.read(result, entry)
            except Exception as error:
                value = None
                problem = f"{type(error).__name__}: {error}"
                warnings.append(f"{entry.name}: the metric {metric.name} failed: {problem}")
            others[metric.name] = Figure(
                value, metric.unit, metric.better, is_share=metric.is_share, heading=metric.heading
            )
        rows.append(replace(entry, figures={**entry.figures, **others}))
    return with_warnings(replace(result, rows=rows), warnings)
