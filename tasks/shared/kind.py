"""The base class of tasks that evaluate examples, and what devices need of one: parts, and names of files.

Each task has one object of it, in the ``__init__`` of its folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.configuration import CONFIGURATION_PARAMETERS, OWN_PARAMETERS, Configuration
from evaltools.delegates import COMMON, DELEGATES
from evaltools.errors import OutputError, UsageError
from evaltools.parameter import Parameter, Value
from evaltools.task_kind import Accuracy, TaskEvidence, TaskReport, kind_of
from evaltools.tasks.shared.options import CONFIGURATIONS, EXECUTION, EXECUTION_WITH_ONE_WORKER

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.engine.execution import Shard
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.request.flags import GivenFlags
    from evaltools.result.evaluation import DelegateUsed, EvaluationResult
    from evaltools.tasks.shared.evaluation import Evaluation
    from evaltools.tasks.shared.request import TaskRequest

_OF_CONFIGURATIONS: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "sweep", "reference"})
"""Flags that become configurations and are no options of the task."""


class HostNames(Struct, frozen=True):
    """The names that files and folders have on the host, by their names on devices.

    evaltools made the names on devices, so that nothing else in a text is one of them.
    ``reference`` is the name for outputs of the reference that the host computed, empty where it computed none.

    >>> names = HostNames({"/store/1f/m.tflite": "models/m.tflite"})
    >>> names.value("/store/1f/m.tflite"), names.text("/store/1f/m.tflite is damaged")
    ('models/m.tflite', 'models/m.tflite is damaged')
    """

    by_device_name: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    def value(self, value: Value) -> Value:
        """The value of an option, replaced if it is the name of a file or folder on devices."""
        return self.by_device_name.get(value, value) if isinstance(value, str) else value

    def delegates(self, delegates: Sequence[DelegateUsed]) -> list[DelegateUsed]:
        """Delegates with their options' values replaced as by :meth:`value`."""
        return [
            replace(used, options={name: self.value(value) for name, value in used.options.items()})
            for used in delegates
        ]

    def text(self, text: str) -> str:
        """A text that a program printed, with all names in it replaced; the longest first, for one may begin another.

        >>> HostNames({"folder-1": "a", "folder-10": "b"}).text("in folder-10")
        'in b'
        """
        for on_device in sorted(self.by_device_name, key=len, reverse=True):
            text = text.replace(on_device, self.by_device_name[on_device])
        return text

    def reason(self, reason: str | None) -> str | None:
        """A reason with all names in it replaced; None stays None."""
        return None if reason is None else self.text(reason)


class PartsOfTask(Struct, frozen=True):
    """How the examples of a task can be divided among devices.

    ``count`` is the number of examples. ``pictures`` has, by the name of an option with a folder of pictures, the
    pictures in the order of the examples; if there are fewer pictures than examples, they are used again in that order.
    Every part needs the first ``shared`` of them. ``in_one_part``: the examples cannot be divided, since each depends
    on those before it.
    """

    count: int
    pictures: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    shared: int = 0
    in_one_part: bool = False

    def pictures_of(self, option: str, shard: Shard) -> tuple[Path, ...]:
        """The pictures that a part needs, in the order of their names."""
        paths = self.pictures[option]
        needed = {number % len(paths) for number in shard.numbers_of(self.count)}
        needed |= set(range(min(self.shared, len(paths))))
        return tuple(dict.fromkeys(paths[number] for number in sorted(needed)))


class EvaluationKind(ABC):
    """A task that evaluates examples; it implements :class:`evaltools.task_kind.TaskKind`.

    ``name`` is the name in results. ``options`` are the task's own options under their headings. ``one_worker``: one
    worker runs unless the user asks for more. ``alias`` is a shorter name of its command. ``--help`` lists tasks by
    ascending ``place``.
    """

    name: str
    summary: str
    description: str
    options: Mapping[str, Sequence[Parameter]]
    one_worker: bool = False
    alias: str = ""
    place: int = 100
    accuracy: Accuracy | None = None
    modules_on_devices: Sequence[str] = ()
    """The modules that a device must be able to import to run this task."""
    whole_run_option: str = ""
    """The option for what can be measured only where every example is run; empty if there is no such option."""
    has_limits: bool = False
    """Whether limits can be options, so that exit code 1 means a broken limit and not a crash."""
    kernels_of_reference: str = "builtin"
    kernels_of_native_reference: str = "builtin"
    """The kernels of the reference if the native tool runs it."""

    @property
    @abstractmethod
    def part_type(self) -> type:
        """The struct of the task's part of a result."""

    @property
    @abstractmethod
    def report(self) -> TaskReport:
        """How the task's figures are shown."""

    @property
    @abstractmethod
    def evidence(self) -> TaskEvidence:
        """How limits read the task's part of a result."""

    @property
    def command(self) -> str:
        """The task's name on the command line."""
        return self.name.replace("_", "-")

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

    def reference(self, options: Options, text: str | None, native_tool: bool = False) -> Configuration | None:
        """The reference that ``text`` describes as ``--reference`` does; the task's default if ``text`` is None.

        Returns None for the text "none". ``native_tool``: the native tool runs the reference, not a Python runtime.
        """
        if text is not None and text.strip() == "none":
            return None
        kernels = self.kernels_of_native_reference if native_tool else self.kernels_of_reference
        return Configuration.from_text("reference", text or "", options.text("compat") == "native", kernels)

    def with_stated_paths(self, options: Options, folder: Path) -> Options:
        """The options, completed with paths that can be derived from others. Relative paths start at ``folder``."""
        return options

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

    @abstractmethod
    def read(self, request: Request) -> TaskRequest:
        """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""

    @abstractmethod
    def prepare(self, asked: Any) -> Evaluation[Any]:
        """Read and check model and data; raises :class:`UsageError` and its kinds."""

    @abstractmethod
    def files_read(self, asked: Any) -> Iterable[Path | None]:
        """The files that the task reads, which result files must not overwrite; without those of configurations."""

    def more_files(self, request: Request, asked: Any, outputs: Iterable[Path]) -> Any:
        """Check, before any long work, the output files that only this task has; returns what :meth:`write_more` takes.

        ``outputs`` are the files that are written for every task. Raises :class:`UsageError`.
        """
        return None

    def debug_lines(self, result: EvaluationResult, options: Options) -> list[str]:
        """Lines that are printed on stdout before those of the native tool."""
        return []

    def as_asked(self, result: EvaluationResult, options: Options) -> EvaluationResult:
        """The result as it is written to the result file, without what was kept only for other files."""
        return result

    def write_more(self, result: EvaluationResult, files: Any, asked: Any, console: Console) -> list[OutputError]:
        """Write ``files``, which :meth:`more_files` returned; returns an error for each that could not be written."""
        return []

    @abstractmethod
    def example_count(self, result: EvaluationResult) -> int:
        """The number of examples of all shards together."""

    def breaks_limits(self, result: EvaluationResult) -> bool:
        """Whether a limit that was given as an option is broken."""
        return False

    def exit_code(self, result: EvaluationResult) -> int:
        """The exit code of an evaluation whose files were all written."""
        if result.stopped == "interrupted":
            return exit_codes.INTERRUPTED
        without_input = [failure for failure in result.failed if failure.stage == "input"]
        no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
        unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
        if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
            return exit_codes.NOT_MEASURED
        if self.breaks_limits(result):
            return exit_codes.LIMIT_BROKEN
        is_clean = not any(entry.not_clean or entry.nan_outputs for entry in result.configurations)
        is_whole = not result.failed and is_clean
        return exit_codes.OK if is_whole else exit_codes.EXAMPLES_FAILED

    @property
    def metrics(self) -> Sequence[Metric]:
        """The metrics of the task's own figures, without those that all tasks have."""
        return ()

    @abstractmethod
    def parts(self, asked: Any) -> PartsOfTask:
        """Check model and data on the host, before anything is sent; raises :class:`UsageError` and its kinds."""

    def saving_reference(self, request: Request, folder: Path) -> Request | None:
        """The request by which the host saves the reference's outputs to ``folder``, for devices to be compared with.

        It is used if every device does everything. None if each device runs a reference of its own, or if ``request``
        loads such outputs anyway.
        """
        return None

    def against_saved(self, request: Request, folder: Path) -> Request:
        """The request that compares with the outputs in ``folder``, which :meth:`saving_reference` saved."""
        return request

    def with_host_names(self, result: EvaluationResult, names: HostNames) -> EvaluationResult:
        """A result from devices, with the names that files have on the host in the task's own part."""
        return result

    def moved(self, task: str, take: Callable[[Path], str]) -> str:
        """The name of the task in a request for another folder or machine, where ``take`` gives the new names of files.

        Only a task that is itself in a file has another name there.
        """
        return task

    def files_beside(self) -> Sequence[Path]:
        """The files that must be sent along with the task's own file, in the same folders relative to it."""
        return ()


def evaluation_kind(name: str) -> EvaluationKind:
    """The task of that name; raises :class:`UsageError` for an unknown name, or one of no :class:`EvaluationKind`."""
    kind = kind_of(name)
    if not isinstance(kind, EvaluationKind):
        raise UsageError(f"{name} is no evaluation of examples but {type(kind).__name__}")
    return kind
