"""What the tasks that evaluate examples have in common as objects; each is one in the ``__init__`` of its folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evaltools import exit_codes
from evaltools.configuration import CONFIGURATION_PARAMETERS, Configuration
from evaltools.errors import OutputError, UsageError
from evaltools.parameter import Parameter
from evaltools.task_kind import Accuracy, TaskEvidence, TaskReport, kind_of
from evaltools.tasks.shared.options import with_shared_options

_OF_CONFIGURATIONS: Final = frozenset({*CONFIGURATION_PARAMETERS, "config", "sweep", "reference"})
"""Flags that become configurations and are no options of the task."""

if TYPE_CHECKING:
    from rich.console import Console

    from evaltools.engine import Shard
    from evaltools.metrics.metric import Metric
    from evaltools.request import Options, Request
    from evaltools.request.flags import GivenFlags
    from evaltools.result.evaluation import EvaluationResult
    from evaltools.tasks.shared.evaluation import Evaluation
    from evaltools.tasks.shared.names_here import NamesHere
    from evaltools.tasks.shared.request import TaskRequest


@dataclass(frozen=True)
class PartsOfTask:
    """What devices need to know of a task's examples, to do them in parts.

    ``pictures`` are those of an option's folder in the order of the examples; they repeat where there are fewer. The
    first ``shared`` are needed by every part. ``in_one_part``: each example depends on those before it.
    """

    count: int
    pictures: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    shared: int = 0
    in_one_part: bool = False

    def pictures_of(self, option: str, shard: Shard) -> tuple[Path, ...]:
        """The pictures that a part needs, in the order of their names."""
        paths = self.pictures[option]
        needed = {number % len(paths) for number in range(shard.index, self.count, shard.count)}
        needed |= set(range(min(self.shared, len(paths))))
        return tuple(dict.fromkeys(paths[number] for number in sorted(needed)))


class EvaluationKind(ABC):
    """A task over examples; follows :class:`evaltools.task_kind.TaskKind`.

    ``name`` stands in results, ``options`` are its own under their headings. ``one_worker``: unless more are asked for.
    ``alias`` is a shorter name of its command, ``place`` where help lists it.
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
    """What is imported there, at the latest when there are figures."""
    whole_run_option: str = ""
    """The option about what only a place that runs every example can measure; empty: there is no such thing."""
    has_limits: bool = False
    """Whether limits may be options, so that an evaluation that ends with exit code 1 has measured all."""
    kernels_of_reference: str = "builtin"
    kernels_of_native_reference: str = "builtin"
    """Those of the reference where the native tool runs it."""

    @property
    @abstractmethod
    def part_type(self) -> type:
        """The type of its part of the result, a dataclass."""

    @property
    @abstractmethod
    def report(self) -> TaskReport:
        """How its figures are shown."""

    @property
    @abstractmethod
    def evidence(self) -> TaskEvidence:
        """What its part of a result says in the words of limits."""

    @property
    def command(self) -> str:
        """As on the command line."""
        return self.name.replace("_", "-")

    @cached_property
    def groups(self) -> dict[str, Sequence[Parameter]]:
        """All options under their headings, those that all tasks share behind its own."""
        return with_shared_options(self.options, self.one_worker)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """All options by name."""
        return {parameter.name: parameter for group in self.groups.values() for parameter in group}

    def reference(self, options: Options, text: str | None, native_tool: bool = False) -> Configuration | None:
        """The reference that ``text`` describes, or where that is None, the one that the task has unless told.

        ``native_tool``: that is what runs it.
        """
        if text is not None and text.strip() == "none":
            return None
        kernels = self.kernels_of_native_reference if native_tool else self.kernels_of_reference
        return Configuration.from_text("reference", text or "", options.text("compat") == "native", kernels)

    def with_stated_paths(self, options: Options, folder: Path) -> Options:
        """With paths that were not given but are known stated; all are meant from ``folder``."""
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
        """What a request asks, checked; raises :class:`UsageError` for values that make no sense."""

    @abstractmethod
    def prepare(self, asked: Any) -> Evaluation[Any]:
        """Read and check model and data; raises :class:`UsageError` and its kinds."""

    @abstractmethod
    def files_read(self, asked: Any) -> Iterable[Path | None]:
        """What result files must not overwrite, beside what configurations read."""

    def more_files(self, request: Request, asked: Any, outputs: Iterable[Path]) -> Any:
        """Files of its own that are asked for, checked before any long work; ``outputs`` are written anyhow."""
        return None

    def debug_lines(self, result: EvaluationResult, options: Options) -> list[str]:
        """Lines for stdout before those of the native tool."""
        return []

    def as_asked(self, result: EvaluationResult, options: Options) -> EvaluationResult:
        """The result without what was only kept for other files."""
        return result

    def write_more(self, result: EvaluationResult, files: Any, asked: Any, console: Console) -> list[OutputError]:
        """Write what :meth:`more_files` planned; returns what could not be written."""
        return []

    @abstractmethod
    def example_count(self, result: EvaluationResult) -> int:
        """How many examples there are, over all shards."""

    @abstractmethod
    def is_damaged(self, result: EvaluationResult) -> bool:
        """Whether outputs hold NaN or infinite numbers."""

    def breaks_limits(self, result: EvaluationResult) -> bool:
        """Whether limits that were options are broken."""
        return False

    def exit_code(self, result: EvaluationResult) -> int:
        """That of an evaluation whose files were written."""
        if result.stopped == "interrupted":
            return exit_codes.INTERRUPTED
        without_input = [failure for failure in result.failed if failure.stage == "input"]
        no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
        unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
        if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
            return exit_codes.NOT_MEASURED
        if self.breaks_limits(result):
            return exit_codes.LIMIT_BROKEN
        return exit_codes.EXAMPLES_FAILED if result.failed or self.is_damaged(result) else exit_codes.OK

    @property
    def metrics(self) -> Sequence[Metric]:
        """What is known of its figures, beside those that all tasks have."""
        return ()

    @abstractmethod
    def parts(self, asked: Any) -> PartsOfTask:
        """Check model and data here, before anything is sent; raises :class:`UsageError` and its kinds."""

    def saving_reference(self, request: Request, folder: Path) -> Request | None:
        """What gives, in ``folder``, the outputs that places are held against which all do everything.

        None where each has a reference of its own, or such outputs are loaded anyway.
        """
        return None

    def against_saved(self, request: Request, folder: Path) -> Request:
        """The same held against the outputs in ``folder``."""
        return request

    def named_here(self, result: EvaluationResult, names: NamesHere) -> EvaluationResult:
        """A result from devices with the names that files have here in the task's own part."""
        return result

    def moved(self, task: str, take: Callable[[Path], str]) -> str:
        """How a request names the task where its own files are called what ``take`` says; most have none."""
        return task

    def files_beside(self) -> Sequence[Path]:
        """What must lie beside its own file, in the same folders below, where that is moved."""
        return ()


def evaluation_kind(name: str) -> EvaluationKind:
    """The task of that name; raises :class:`UsageError` for a name that is none."""
    kind = kind_of(name)
    if not isinstance(kind, EvaluationKind):
        raise UsageError(f"{name} is no evaluation of examples but {type(kind).__name__}")
    return kind
