"""A task as it is declared: its options, and where the classes and modules of its parts are.

It needs neither NumPy nor a runtime; what a task does is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools.configuration import CONFIGURATION_PARAMETERS, OWN_PARAMETERS, Configuration
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import UsageError
from evaltools.extensions import named
from evaltools.parameter import Parameter
from evaltools.task_kind import Accuracy, TaskReport, kind_of
from evaltools.tasks.shared.options import CONFIGURATIONS, EXECUTION, EXECUTION_WITH_ONE_WORKER

if TYPE_CHECKING:
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.request.flags import GivenFlags
    from evaltools.tasks.shared.evaluation import Evaluation
    from evaltools.tasks.shared.request import TaskRequest

_OF_CONFIGURATIONS: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "sweep", "reference"})
"""Flags that become configurations and are no options of the task."""


class DeclaredTask:
    """A task; it implements :class:`evaltools.task_kind.TaskKind`.

    Each task has one, as the ``KIND`` of its folder, or as an entry point of another package. ``name`` is the name in
    results. ``options`` are the task's own options under their headings.

    ``evaluation`` names the class that carries the task out, ``part`` the struct of its part of a result, ``report``
    how its figures are shown: ``MODULE:NAME``, or a module with the functions. ``metrics`` is the module that has its
    ``METRICS``. ``needs`` are more modules that a device must be able to import. ``accuracy`` is the figure that is the
    accuracy. ``alias`` is a shorter name of the command; ``--help`` lists tasks by ascending ``place``.

    ``one_worker``: one worker runs unless the user asks for more. ``more_than_records``: a run measures more than what
    its records hold. ``has_limits``: limits can be options, so that exit code 1 means a broken
    limit and not a crash. ``compares_models``: of several models in one command, the first is the reference of the
    others; else each is compared with itself. ``native_reference`` are the kernels of the native tool's reference.
    ``complete`` completes the options with what can be derived from others; relative paths start at the folder that it
    is given.
    """

    def __init__(
        self,
        name: str,
        *,
        summary: str,
        description: str,
        options: Mapping[str, Sequence[Parameter]],
        evaluation: str,
        part: str,
        report: str,
        metrics: str,
        needs: Sequence[str] = (),
        accuracy: Accuracy | None = None,
        place: int = 100,
        alias: str = "",
        one_worker: bool = False,
        more_than_records: bool = False,
        has_limits: bool = False,
        compares_models: bool = True,
        native_reference: str = "builtin",
        complete: Callable[[Options, Path], Options] | None = None,
    ) -> None:
        self.name = name
        self.summary = summary
        self.description = description
        self.alias: Final = alias
        self.place: Final = place
        self.accuracy: Final = accuracy
        self.one_worker: Final = one_worker
        self.more_than_records: Final = more_than_records
        self.has_limits: Final = has_limits
        self.compares_models: Final = compares_models
        self._options = options
        self._evaluation, self._part, self._report, self._metrics = evaluation, part, report, metrics
        self._needs = needs
        self._native_reference = native_reference
        self._complete = complete

    @property
    def command(self) -> str:
        """The task's name on the command line."""
        return self.name.replace("_", "-")

    @property
    def options(self) -> Mapping[str, Sequence[Parameter]]:
        """The task's own options under their headings."""
        return self._options

    @cached_property
    def groups(self) -> dict[str, Sequence[Parameter]]:
        """All options under their headings: first the task's own, then those that all tasks share."""
        return {
            **self.options,
            "execution": EXECUTION_WITH_ONE_WORKER if self.one_worker else EXECUTION,
            "configurations": (*CONFIGURATIONS, *OWN_PARAMETERS),
            **{f"delegate {delegate.name}": delegate.parameters for delegate in DELEGATES},
            "delegates, common": COMMON,
        }

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All options by name."""
        return {parameter.name: parameter for group in self.groups.values() for parameter in group}

    @property
    def evaluation(self) -> type[Evaluation[Any]]:
        """The class that carries the task out."""
        found: type[Evaluation[Any]] = named(self._evaluation)
        return found

    @property
    def part_type(self) -> type:
        """The struct of the task's part of a result."""
        found: type = named(self._part)
        return found

    @property
    def report(self) -> TaskReport:
        """How the task's figures are shown."""
        found: TaskReport = named(self._report)
        return found

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task's own figures, without those that all tasks have."""
        found: Sequence[Metric] = named(self._metrics).METRICS
        return found

    @property
    def modules_on_devices(self) -> Sequence[str]:
        """The modules that a device must be able to import to run this task."""
        return (self._evaluation.partition(":")[0], *self._needs)

    def reference(self, options: Options, text: str | None, native_tool: bool = False) -> Configuration | None:
        """The reference that ``text`` describes as ``--reference`` does; the task's default if ``text`` is None.

        Returns None for the text "none", and where the outputs of the reference are loaded. ``native_tool``: the native
        tool runs the reference, not a Python runtime.
        """
        if (text is not None and text.strip() == "none") or (text is None and "load_reference" in options):
            return None
        is_native = options.text("compat") == "native"
        kernels = self._native_reference if native_tool or is_native else "builtin"
        return Configuration.from_text("reference", text or "", is_native, kernels)

    def with_stated_paths(self, options: Options, folder: Path) -> Options:
        """The options, completed with paths that can be derived from others. Relative paths start at ``folder``."""
        return options if self._complete is None else self._complete(options, folder)

    def request_of_flags(
        self,
        flags: GivenFlags,
        command: Sequence[str] = (),
        folder: Path | None = None,
        native_tool: bool = False,
        tests: Sequence[Configuration] | None = None,
    ) -> Request:
        """What flags ask for; raises :class:`UsageError` for those that are wrong or missing.

        Relative paths are meant from ``folder``, None: from here. ``native_tool``: that is what runs the reference.
        ``tests`` None: the flags say which.
        """
        from evaltools.request import Request
        from evaltools.request.flags import read_tests

        folder = folder or Path.cwd()
        options = self.with_stated_paths(flags.options(leave_out=_OF_CONFIGURATIONS), folder)
        needed = [parameter.name for parameter in self.parameters.values() if parameter.required]
        if missing := " ".join(f"--{name}=..." for name in needed if not options.text(name)):
            words = f"device run {self.command.removeprefix('run ')}" if "device" in command[1:2] else self.command
            raise UsageError(f"missing: {missing}. See evaltools {words} --help")
        if tests is None:
            tests = read_tests(flags, options.text("compat") == "native", folder)
        text = flags.text("reference") if "reference" in flags else None
        reference = self.reference(options, text, native_tool)
        return Request(self.name, options, reference, tuple(tests), folder, command=tuple(command))

    def read(self, request: Request) -> TaskRequest:
        """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
        return self.evaluation.read(request)

    def prepare(self, asked: TaskRequest) -> Evaluation[Any]:
        """Read and check model and data; raises :class:`UsageError` and its kinds."""
        prepare: Callable[[TaskRequest], Evaluation[Any]] = self.evaluation
        return prepare(asked)

    def moved(self, task: str, take: Callable[[Path], str]) -> str:
        """The name of the task in a request for another folder or machine, where ``take`` gives the new names of files.

        Only a task that is itself in a file has another name there.
        """
        return task

    def files_beside(self) -> Sequence[Path]:
        """The files that must be sent along with the task's own file, in the same folders relative to it."""
        return ()


def declared_task(name: str) -> DeclaredTask:
    """The task of that name; raises :class:`UsageError` for an unknown name, or one that is not declared here."""
    kind = kind_of(name)
    if not isinstance(kind, DeclaredTask):
        raise UsageError(f"{name} is not a DeclaredTask but a {type(kind).__name__}")
    return kind
