"""What makes requests: the command of a benchmark, a search or a suite, and that of a task.

It needs neither NumPy nor a runtime; what a command does is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from evaltools.extensions import named
from evaltools.parameter import Parameter

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.errors import OutputError
    from evaltools.metrics.metric import Metric
    from evaltools.result.evaluation import ConfigurationResult, EvaluationResult
    from evaltools.result.section import Section

Groups = Mapping[str, Sequence[Parameter]]
"""Options under their headings."""


@dataclass(frozen=True, eq=False)
class Command:
    """A command that makes requests.

    ``name`` is what requests and results call it, ``words`` what the command line does. ``options`` gives all options
    when they are first asked for. ``modules_on_devices`` are those that a device must be able to import.
    """

    name: str
    words: str
    options: Callable[[], Groups]
    modules_on_devices: Sequence[str] = ()

    @cached_property
    def groups(self) -> Groups:
        """All options under their headings."""
        return self.options()

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All options by name."""
        return {parameter.name: parameter for group in self.groups.values() for parameter in group}


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


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskCommand(Command):
    """The command of a task: one that comes with evaltools, one of an installed package, or one in a file.

    ``summary`` is a line for ``--help``, ``description`` a few lines for the command's own. ``alias`` is a shorter name
    of the command. Tasks that come with evaltools are listed by ascending ``place``, equal ones by name. ``source`` is
    the task's function and where it is from (``evaltools.tasks.own.loading.Loaded``). ``accuracy`` is None for a task
    without a ground truth.

    What ends in ``_at`` is ``MODULE:NAME``, or a module with the functions: ``part_at`` the struct of the task's part
    of a result, ``report_at`` how its figures are shown, ``evaluation_at`` the class that carries out a task that is no
    function. ``stated_metrics`` is the module that has the metrics, or what each means by name. ``has_native_tool``:
    there is a native tool that does the same.

    ``more_than_records``: a run measures more than what its records hold. ``has_limits``: limits can be options, so
    that exit code 1 means a broken limit and not a crash. ``compares_models``: of several models in one command, the
    first is the reference of the others; else each is compared with itself. ``native_reference`` are the kernels of the
    native tool's reference. ``complete`` gives options that follow from those that were stated; relative paths start at
    the folder that it is given.
    """

    summary: str
    description: str
    alias: str = ""
    place: int = 100
    source: Any = None
    accuracy: Accuracy | None = None
    part_at: str = "evaltools.tasks.own.result:OwnPart"
    report_at: str = "evaltools.tasks.own.report"
    evaluation_at: str = ""
    stated_metrics: Mapping[str, str] | str = "evaltools.tasks.own.topk_metrics"
    has_native_tool: bool = False
    more_than_records: bool = False
    has_limits: bool = False
    compares_models: bool = True
    native_reference: str = "builtin"
    complete: Callable[[Mapping[str, Any], Path], Mapping[str, str]] | None = None

    @property
    def part_type(self) -> type:
        """The struct or dataclass of the task's part of a result."""
        found: type = named(self.part_at)
        return found

    @property
    def report(self) -> TaskReport:
        """How the task's figures are shown."""
        found: TaskReport = named(self.report_at)
        return found

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task's own figures, without those that all tasks have."""
        if isinstance(self.stated_metrics, str):
            found: Sequence[Metric] = named(self.stated_metrics).METRICS
            return found
        from evaltools.metrics.metric import metric_of_own_task

        return [replace(metric_of_own_task(name), meaning=meaning) for name, meaning in self.stated_metrics.items()]
