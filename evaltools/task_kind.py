"""What engine, report, gates, devices and command line know of a task, and where the tasks are found.

A task is an object that follows :class:`TaskKind`, in a folder of its own under ``tasks``, plus one line in ``KINDS``;
or it comes from outside, by an entry point of the group ``evaltools.tasks``. Nothing else names a task.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Protocol

from evaltools.errors import UsageError
from evaltools.parameter import Parameter, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.metrics.metric import Metric

KINDS: Final = {
    "imagenet": "evaltools.tasks.imagenet:KIND",
    "coco": "evaltools.tasks.coco:KIND",
    "inference_diff": "evaltools.tasks.inference_diff:KIND",
}
"""Where each task is, by the name that results give it; on the command line dashes stand for underscores."""
ENTRY_POINTS: Final = "evaltools.tasks"


class TaskReport(Protocol):
    """How a task's figures are shown: a module or an object with these functions."""

    def lines(self, result: Any, configuration: Any) -> list[str]:
        """The native tool's lines of one measured configuration, none where there is no such tool."""

    def fill(self, message: Any, result: Any, configuration: Any) -> None:
        """Put the figures of one configuration into the native tool's ``EvaluationStageMetrics``."""

    def print_figures(self, result: Any, console: Console) -> None:
        """The figures for a person, on stderr."""


class TaskKind(Protocol):
    """One task. Attributes are at hand without NumPy or a runtime; methods import what they need."""

    @property
    def name(self) -> str:
        """As in results, such as ``inference_diff``."""

    @property
    def command(self) -> str:
        """As on the command line, such as ``inference-diff``."""

    @property
    def summary(self) -> str:
        """A line for ``evaltools --help``."""

    @property
    def description(self) -> str:
        """A few lines for the task's own ``--help``."""

    @property
    def options(self) -> Mapping[str, Sequence[Parameter]]:
        """Its own options under their headings, without those that all tasks have."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """All options by name, its own and those that all tasks have."""

    @property
    def part_type(self) -> type:
        """The type of its part of the result, a dataclass."""

    @property
    def report(self) -> TaskReport:
        """How its figures are shown."""

    @property
    def metrics(self) -> Sequence[Metric]:
        """The figures that only this task has."""

    def example_facts(self, result: Any) -> Sequence[str]:
        """What else than their number and their names says which examples a result is of."""

    def outputs(self, result: Any, configuration: Any) -> Sequence[tuple[Sequence[str], Mapping[str, float | None]]]:
        """The figures of each of the model's outputs, with the names that it goes by; none where they have none."""


def kind_names() -> list[str]:
    """The names of all tasks, those from outside last."""
    return [*KINDS, *(entry.name for entry in entry_points(group=ENTRY_POINTS) if entry.name not in KINDS)]


def kind_of(name: str) -> TaskKind:
    """The task of that name; raises :class:`UsageError` for a name that is none."""
    place = KINDS.get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        kind: TaskKind = getattr(importlib.import_module(module), attribute)
        return kind
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == name:
            found: TaskKind = entry.load()
            return found
    raise UsageError(f"there is no task {name!r}.{did_you_mean(name, KINDS)} There are {', '.join(KINDS)}")


def metrics_of(task: str) -> dict[str, Metric]:
    """The metrics of a task's results by name, its own first."""
    from evaltools.result.metrics import METRICS

    return {metric.name: metric for metric in (*kind_of(task).metrics, *METRICS)}


def all_metrics() -> dict[str, Metric]:
    """The metrics of all tasks by name, those that all of them have last."""
    from evaltools.result.metrics import METRICS

    own = [metric for name in kind_names() for metric in kind_of(name).metrics]
    return {metric.name: metric for metric in (*own, *METRICS)}
