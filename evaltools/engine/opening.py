"""Opens the sessions of configurations, and describes these. One whose delegates did not run is not measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import DELEGATES, Delegate
from evaltools.errors import ConfigurationUnavailable, DelegateTookNothing
from evaltools.model import ModelFile, TensorInfo
from evaltools.model.contents import operator_counts, read_contents
from evaltools.result.facts import DelegateUsed, DelegationProof, Model, RuntimeUsed, Tensor
from evaltools.result.metrics import figures_of, figures_of_nodes
from evaltools.result.result import Row
from evaltools.runtime import DelegateCoverage, OpenProcess, ProcessSession
from evaltools.runtime.delegation import require_delegates_ran
from evaltools.runtime.session import Crashes


class Opened(Struct, frozen=True):
    """A configuration that can be measured with a model.

    ``running`` is what the session was opened with: the configuration itself, or with ``fallback``, which says why, the
    same without delegates that cannot be created. ``crashes`` are those of processes that were to run these.
    """

    model: ModelFile
    configuration: Configuration
    session: ProcessSession
    running: Configuration
    fallback: str = ""
    crashes: Crashes = Crashes()


class NotMeasured(Struct, frozen=True):
    """A configuration that cannot be measured here, and why.

    ``cannot_exist`` as in :class:`ConfigurationUnavailable`. ``crashes`` are those of processes that were to run it.
    """

    configuration: Configuration
    reason: str
    cannot_exist: bool = False
    crashes: Crashes = Crashes()


@contextmanager
def open_all(
    wanted: Iterable[tuple[ModelFile, Configuration]], open_session: OpenProcess, allow_fallback: bool
) -> Iterator[dict[str, Opened | NotMeasured]]:
    """A context that opens every configuration with its model, by name; all sessions are closed at its end."""
    with ExitStack() as stack:
        entries = {}
        for model, configuration in wanted:
            entry = open_configuration(model, configuration, open_session, allow_fallback)
            if isinstance(entry, Opened):
                stack.callback(entry.session.close)
            entries[configuration.name] = entry
        yield entries


def open_configuration(
    model: ModelFile, configuration: Configuration, open_session: OpenProcess, allow_fallback: bool
) -> Opened | NotMeasured:
    """Open a session and demand that every requested delegate took at least one node.

    With ``allow_fallback`` a delegate that cannot be created is left out, and one that took nothing is forgiven, as the
    native tools do; the result says so. The other delegates and flags stay as they are.
    """
    left_out: list[str] = []
    crashes = Crashes()
    running = configuration
    while True:
        try:
            session = open_session(model, running)
            break
        except ConfigurationUnavailable as error:
            if error.crashed:
                crashes += Crashes(1, str(error))
            refused = next((each for each in running.delegates.requested if each.name == error.delegate), None)
            if not allow_fallback or refused is None:
                return NotMeasured(configuration, str(error), error.cannot_exist, crashes)
            running = running.without(refused)
            left_out.append(str(error))
    try:
        require_delegates_ran(session.delegation)
    except DelegateTookNothing as error:
        if not allow_fallback:
            session.close()
            hint = "its figures would be those of the CPU; --allow_fallback=true measures them all the same"
            return NotMeasured(configuration, f"{error}; {hint}", crashes=crashes)
        left_out.append(str(error))
    return Opened(model, configuration, session, running, "; ".join(left_out), crashes)


Role = Literal["reference", "test"]


def describe_model(model: ModelFile) -> Model:
    """The facts about the model file."""
    return Model(
        file=str(model.path),
        sha256=model.sha256,
        size_bytes=model.size_bytes,
        node_count=model.node_count,
        inputs=[describe_tensor(tensor) for tensor in model.inputs],
        outputs=[describe_tensor(tensor) for tensor in model.outputs],
        operators=operator_counts(read_contents(model).graphs),
    )


def describe_tensor(tensor: TensorInfo) -> Tensor:
    """The facts about an input or output."""
    return Tensor(tensor.name, tensor.dtype, list(tensor.shape_signature), tensor.scale, tensor.zero_point)


def describe_row(entry: Opened | NotMeasured, model: int = 0) -> Row:
    """The row of a configuration before it is measured: its flags, runtime and delegates, and no figures."""
    configuration = entry.configuration
    opened = entry if isinstance(entry, Opened) else None
    runtime = proof = None
    if opened is not None:
        facts, taken = opened.session.facts, opened.session.delegation
        machine = facts.elsewhere.machine if facts.elsewhere else ""
        own = (facts.name, facts.package, facts.version, facts.kernels, facts.messages, facts.emulator)
        runtime = RuntimeUsed(*own, machine)
        proof = DelegationProof(taken.total_nodes, taken.delegated_nodes, dict(taken.cpu_operators))
    return Row(
        configuration.name,
        status="measured" if opened else "not measured",
        reason=entry.reason if isinstance(entry, NotMeasured) else "",
        fallback=opened.fallback if opened else "",
        cannot_exist=isinstance(entry, NotMeasured) and entry.cannot_exist,
        model=model,
        flags=configuration.to_flags(),
        num_threads=configuration.num_threads,
        runtime=runtime,
        delegates=_delegates_used(configuration, opened),
        delegation=proof,
    )


def describe_entry(entry: Opened | NotMeasured, role: Role) -> Row:
    """The row of an evaluation before the pass: with crashes and time of opening it, and what its delegates took."""
    row = describe_row(entry)
    figures = figures_of_nodes(row.delegates, row.delegation)
    if isinstance(entry, Opened) and not row.is_emulated:
        figures |= figures_of({"load_ms": entry.session.facts.load_ms})
    return with_crashes(replace(row, role=role, figures=figures), entry.crashes)


class OpenConfigurations(Struct, frozen=True):
    """The configurations of an evaluation, reference first: ``described`` are all, ``entries`` those that can run."""

    described: list[Row]
    entries: Sequence[Opened]

    @classmethod
    def of(
        cls,
        entries: Collection[Opened | NotMeasured],
        reference: Configuration | None,
        other_models: Mapping[str, Model],
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
    def sessions(self) -> dict[str, ProcessSession]:
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


def with_crashes(row: Row, crashes: Crashes) -> Row:
    """The row with the crashes of its processes, and why one first crashed."""
    texts = row.texts | ({"first_crash": crashes.first_reason} if crashes.first_reason else {})
    return replace(row, figures=row.figures | figures_of({"crashes": crashes.count}), texts=texts)


def comparison_pairs(configurations: Sequence[Row]) -> list[tuple[str, str]]:
    """Which configurations are compared: every test with the reference, and the other tests with the first one.

    Where several places did the same, that first one is, for each test, the first with the same name at another place;
    the reference of another place is compared only with the reference. Only those with figures.
    """
    measured = [entry for entry in configurations if entry.status == "measured"]
    references = [entry for entry in measured if entry.role == "reference"]
    tests = [entry for entry in measured if entry.role == "test"]
    pairs = [(reference.name, test.name) for reference in references for test in tests]
    for position, test in enumerate(tests):
        first = next((earlier for earlier in [*references, *tests[:position]] if _is_namesake(earlier, test)), None)
        if first is not None and first.role == "test":
            pairs.append((first.name, test.name))
    return pairs


def _is_namesake(one: Row, other: Row) -> bool:
    """Whether both are the same configuration at different places; or, without places, whether both are tests."""
    if not one.place and not other.place:
        return one.role == other.role
    return one.place != other.place and _name_anywhere(one) == _name_anywhere(other)


def _name_anywhere(entry: Row) -> str:
    return entry.name.removesuffix(f"@{entry.place}")


def _delegates_used(configuration: Configuration, opened: Opened | None) -> list[DelegateUsed]:
    """The delegates that were asked for, in order, then those that the runtime added.

    Only those that the session has state their nodes.
    """
    requested = configuration.delegates.requested
    if opened is None:
        return [_delegate_used(delegate, True, configuration, None) for delegate in requested]
    running = opened.running
    covered = {entry.delegate: entry for entry in opened.session.delegation.delegates}
    created = {delegate.name: covered.get(delegate.name) for delegate in running.delegates.requested}
    asked_for = [_delegate_used(delegate, True, configuration, created.get(delegate.name)) for delegate in requested]
    added = [
        _delegate_used(delegate, False, running, covered[delegate.name])
        for delegate in DELEGATES
        if delegate.name in covered and delegate.name not in created
    ]
    return asked_for + added


def _delegate_used(
    delegate: Delegate, requested: bool, configuration: Configuration, coverage: DelegateCoverage | None
) -> DelegateUsed:
    return DelegateUsed(
        name=delegate.name,
        requested=requested,
        options=configuration.delegates.effective_options(delegate),
        nodes=coverage.nodes if coverage else None,
        partitions=coverage.partitions if coverage else None,
        device=coverage.device if coverage else "",
        is_cpu=coverage.is_cpu if coverage else False,
        evidence=coverage.evidence if coverage else "",
    )
