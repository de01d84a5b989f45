"""What a task does with one request: :func:`evaltools.tasks.shared.run.evaluate` calls it, step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Generic

from msgspec import Struct, field
from msgspec.structs import replace

from evaltools import exit_codes
from evaltools.configuration import Configuration
from evaltools.engine.describe import describe_entry, describe_model
from evaltools.engine.journal import Journal
from evaltools.engine.opening import NotMeasured, Opened
from evaltools.engine.run import PassOptions
from evaltools.engine.run_folder import RunIdentity
from evaltools.engine.task import Observation, Steps
from evaltools.errors import ModelError, UsageError
from evaltools.model import ModelFile, TensorInfo, read_model
from evaltools.request import Request
from evaltools.result.evaluation import ConfigurationResult, EvaluationResult, Model
from evaltools.result.verdict import Verdict
from evaltools.runtime import Open, Session, TensorSpec
from evaltools.tasks.shared.figures import MeasuredPass, RunSums
from evaltools.tasks.shared.host_names import HostNames
from evaltools.tasks.shared.merging import TASK, RunAtPlace, libraries_of
from evaltools.tasks.shared.observer import Observer
from evaltools.tasks.shared.request import TaskRequest
from evaltools.tasks.shared.two_models import SessionWithOwnInputs

NO_OTHERS: Final[Mapping[str, Model]] = {}


class OpenConfigurations(Struct, frozen=True):
    """The configurations of an evaluation, reference first: ``described`` are all, ``entries`` those that can run."""

    described: list[ConfigurationResult]
    entries: Sequence[Opened]

    @classmethod
    def of(
        cls,
        entries: Collection[Opened | NotMeasured],
        reference: Configuration | None,
        other_models: Mapping[str, Model] = NO_OTHERS,
    ) -> OpenConfigurations:
        """Of the results of opening each configuration; ``reference`` is the configuration that is the reference.

        ``other_models`` are those of configurations that run another model than the evaluation's.
        """
        described = [
            replace(
                describe_entry(entry, "reference" if entry.configuration is reference else "test"),
                other_model=other_models.get(entry.configuration.name),
            )
            for entry in entries
        ]
        return cls(described, [entry for entry in entries if isinstance(entry, Opened)])

    @property
    def sessions(self) -> dict[str, Session]:
        """The sessions by configuration."""
        return {entry.configuration.name: entry.session for entry in self.entries}

    @property
    def warnings(self) -> list[str]:
        """What runtimes said when they opened the model that puts their results in doubt."""
        return [
            f"{entry.configuration.name}: its runtime warns: {text}"
            for entry in self.entries
            for text in entry.session.delegation.warnings
        ]

    @property
    def runnable(self) -> bool:
        """Whether a test configuration can run; with only the reference nothing is measured."""
        return any(entry.role == "test" and entry.name in self.sessions for entry in self.described)


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
    """One evaluation of a task: its request, its checked inputs, and its figures in the end.

    A task has a class of it, which its declaration names. The constructor takes what :meth:`read` gives; it reads and
    checks model and data, and raises :class:`UsageError` and its kinds. The methods are called in the order in which
    they stand here, those of results last.

    ``name`` is the task's name in results. ``task`` makes
    inputs and observes outputs. ``one_worker``: one worker runs unless the user asks for more. ``interrupted``: Ctrl-C
    ended what was measured after the pass.
    """

    name: str
    request: TaskRequest
    model: ModelFile
    reference_model: ModelFile | None = None
    one_worker: bool = False
    interrupted: bool = False

    @classmethod
    def read(cls, request: Request) -> TaskRequest:
        """Parse and check the options of a request; raises :class:`UsageError` for values that make no sense."""
        raise NotImplementedError

    @property
    def wanted(self) -> list[tuple[ModelFile, Configuration]]:
        """Each configuration with the model that it runs; that of the reference may be another."""
        other, reference = self.reference_model or self.model, self.request.reference
        return [
            (other if configuration is reference else self.model, configuration)
            for configuration in self.request.configurations
        ]

    @property
    def other_models(self) -> dict[str, Model]:
        """The models of the configurations that run another one than :attr:`model`."""
        others = ((each.name, model) for model, each in self.wanted if model.sha256 != self.model.sha256)
        return {name: describe_model(model) for name, model in others}

    @property
    @abstractmethod
    def steps(self) -> Steps[Observation]:
        """What the pass does with each example."""

    @property
    def example_count(self) -> int:
        """How many examples there are, over all shards."""
        return len(self.steps.names)

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
        """The identity of task, models, options and libraries, with the ``inputs`` that only this task has."""
        own = {TASK: self.name, "the model": self.model.sha256, **inputs}
        if self.reference_model is not None:
            own["the reference's model"] = self.reference_model.sha256
        return RunIdentity(
            own,
            options=dict(self.request.flags),
            libraries=libraries_of(configuration for _, configuration in self.wanted),
        )

    def check_sessions(self, opened: OpenConfigurations) -> None:
        """Raise :class:`ModelError` for a model whose inputs are others in the runtime than in its file."""
        for entry in opened.entries:
            for stated, actual in zip(entry.model.inputs, entry.session.inputs, strict=True):
                require_stated(entry.model, entry.session, "input", stated, actual)

    def ready(self, opened: OpenConfigurations, journal: Journal) -> bool:
        """Find out what only open sessions can show; returns whether there is anything to run."""
        return opened.runnable

    def ready_to_merge(self, places: Sequence[RunAtPlace]) -> None:
        """Take what :meth:`ready` found out from run folders, which have the records; no session is open."""

    def wrap(self, name: str, session: Session) -> Session:
        """The session that takes the task's inputs, of that of a configuration.

        With two models these are the inputs of both, the reference's behind.
        """
        if self.reference_model is None:
            return session
        is_reference = name == self.request.reference_name
        return SessionWithOwnInputs(session, self.model, self.reference_model, is_reference)

    def before(self, sessions: Mapping[str, Session]) -> None:
        """Called with the first worker's sessions before the pass."""

    def after_pass(self, measured: MeasuredPass, opened: Sequence[Opened], observer: Observer, open_with: Open) -> None:
        """Measure what is measured after the pass."""

    def after_merge(
        self, measured: MeasuredPass, places: Sequence[RunAtPlace], observer: Observer, open_with: Open
    ) -> None:
        """Measure what is measured after the records of run folders are merged."""

    @abstractmethod
    def findings(self, described: Sequence[ConfigurationResult], measured: MeasuredPass) -> Findings:
        """Compute the figures of all records. A configuration that was not measured has none."""

    # on devices

    def check_on_host(self) -> None:
        """Check, before a run on devices, what can be found out here; raises :class:`UsageError` and its kinds."""

    @property
    def sent_pictures(self) -> Mapping[str, Sequence[Path]]:
        """By the name of an option with a folder of pictures, the pictures in the order of the examples.

        If there are fewer pictures than examples, they are used again in that order.
        """
        return {}

    def pictures_of(self, option: str) -> tuple[Path, ...]:
        """The pictures that a device needs, in the order of the examples."""
        return tuple(dict.fromkeys(self.sent_pictures[option][: self.example_count]))

    @classmethod
    def saving_reference(cls, request: Request, folder: Path) -> Request | None:
        """The request by which the host saves the reference's outputs to ``folder``, to compare devices with.

        It is used with several devices. None if each device runs a reference of its own, or if ``request`` loads such
        outputs anyway.
        """
        return None

    @classmethod
    def against_saved(cls, request: Request, folder: Path) -> Request:
        """The request that compares with the outputs in ``folder``, which :meth:`saving_reference` saved."""
        return request

    # of results

    @classmethod
    @abstractmethod
    def example_count_of(cls, result: EvaluationResult) -> int:
        """The number of examples of all shards together."""

    @classmethod
    def with_host_names(cls, result: EvaluationResult, names: HostNames) -> EvaluationResult:
        """A result from devices, with the names that files have on the host in the task's own part."""
        return result

    @classmethod
    def breaks_limits(cls, result: EvaluationResult) -> bool:
        """Whether a limit that was given as an option is broken."""
        return False

    @classmethod
    def exit_code(cls, result: EvaluationResult) -> int:
        """The exit code of an evaluation whose files were all written."""
        if result.stopped == "interrupted":
            return exit_codes.INTERRUPTED
        without_input = [failure for failure in result.failed if failure.stage == "input"]
        no_input_at_all = bool(without_input) and len(without_input) == result.examples_done
        unavailable = [entry for entry in result.configurations if entry.status == "not measured"]
        if unavailable and not (no_input_at_all and all(entry.runtime is not None for entry in unavailable)):
            return exit_codes.NOT_MEASURED
        if cls.breaks_limits(result):
            return exit_codes.LIMIT_BROKEN
        is_clean = not any(entry.not_clean or entry.nan_outputs for entry in result.configurations)
        is_whole = result.stopped is None and not result.failed and is_clean
        return exit_codes.OK if is_whole else exit_codes.EXAMPLES_FAILED


def read_reference_model(request: TaskRequest) -> ModelFile | None:
    """The other model that the reference runs, None where it is the same.

    Raises :class:`UsageError` where there is no reference, and for a file that is not a model.
    """
    if request.reference_model_file is None:
        return None
    if request.reference is None:
        raise UsageError("--reference_model_file has no effect without a reference; leave one of the two out")
    return read_model(request.reference_model_file)


def require_stated(
    model: ModelFile,
    session: Session,
    kind: str,
    stated: TensorInfo,
    actual: TensorSpec,
    advice: str = "convert the model again",
) -> None:
    """Raise :class:`ModelError` if a tensor has another type or shape in the runtime than in the model file."""
    dtype = "string" if actual.dtype.kind == "S" else actual.dtype.name
    if (dtype, actual.shape) != (stated.dtype, stated.shape):
        raise ModelError(
            f"{model.path}: the file states the {kind} {stated}, but {session.facts.package} makes it "
            f"{dtype}{list(actual.shape)}; {advice}"
        )
