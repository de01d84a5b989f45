"""What delegates took in a run of a native tool, by what it logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from evaltools.configuration import Configuration
from evaltools.delegates import DELEGATES, Delegate, DelegateSettings
from evaltools.delegates.nnapi import nnapi_may_use_cpu
from evaltools.native.logs.delegate_use import delegate_used, delegation_proof, of_main_graph
from evaltools.native.logs.delegates import (
    DelegateLog,
    TakenNodes,
    read_delegate_log,
    taken_by,
    undelegated,
)
from evaltools.result.evaluation import DelegateUsed, DelegationProof

_XNNPACK: Final = next(delegate for delegate in DELEGATES if delegate.name == "XNNPACK")
_NNAPI: Final = "NNAPI"


class ProvenRun(Struct, frozen=True):
    """What a log proves of a delegate that was asked for.

    ``nodes`` counts those of the main graph that it took, None where the log does not prove that it ran. ``devices``
    are those that NNAPI compiled for, none where the log does not name them.
    """

    nodes: int | None
    devices: tuple[str, ...] = ()

    def is_like(self, other: ProvenRun) -> bool:
        """Whether the same ran in the same place, as far as both logs say."""
        is_one_device = not self.devices or not other.devices or set(self.devices) == set(other.devices)
        return self.nodes == other.nodes and is_one_device

    def __str__(self) -> str:
        if self.nodes is None:
            return "is not proven to run"
        where = f" with {', '.join(sorted(self.devices))}" if self.devices else ""
        return f"took {self.nodes} nodes{where}"


class NativeDelegation(Struct, frozen=True):
    """What ran where, and why that is not what was asked for, None where it is or where nothing was asked for.

    The log does not say which operators stay on the CPU: those of ``proof`` are empty. ``asked`` has every delegate
    that was asked for.
    """

    delegates: list[DelegateUsed]
    proof: DelegationProof
    why_not: str | None
    asked: Mapping[str, ProvenRun] = field(default_factory=dict)


def delegation_of(
    configuration: Configuration, lines: Sequence[str], node_count: int, beside_reference: bool = False
) -> NativeDelegation:
    """Read what a run logged; a delegate that was asked for must be said to have taken nodes.

    ``node_count`` is that of the model's main graph. ``beside_reference``: the log is that of two interpreters, of
    which the second is inference_diff's reference.
    """
    log = read_delegate_log(lines)
    settings = configuration.delegates
    asked = [delegate.name for delegate in settings.requested]
    taken = {name: taken_by(log, name, asked) for name in asked}
    if beside_reference and _XNNPACK.name in taken:
        taken[_XNNPACK.name] = _first_of_a_fresh_graph(taken[_XNNPACK.name], node_count)
    used = [_used(settings, delegate, True, taken[delegate.name]) for delegate in settings.requested]
    added = _added_xnnpack(configuration, log, node_count, beside_reference)
    used += [_used(settings, _XNNPACK, False, added)] if added else []
    on_cpu = any(
        delegate.name == _NNAPI and nnapi_may_use_cpu(settings.effective_options(delegate))
        for delegate in settings.requested
    )
    reasons = undelegated(log, asked, on_cpu)
    why_not = "; ".join(f"{name} was asked for, but {reason}" for name, reason in reasons.items()) or None
    nodes = {entry.name: entry.nodes or 0 for entry in used}
    proven = {
        name: ProvenRun(None if name in reasons else nodes[name], log.devices if name == _NNAPI else ())
        for name in asked
    }
    return NativeDelegation(used, delegation_proof(used, node_count), why_not, proven)


def differences(one: Mapping[str, NativeDelegation], other: Mapping[str, NativeDelegation], *places: str) -> list[str]:
    """In words, which delegates that were asked for ran differently in configurations that both have, by their names.

    What the runtime adds by itself stays on the CPU, and is no difference. ``places`` are what ``one`` and ``other``
    ran on.
    """
    found = []
    for name in one.keys() & other.keys():
        for delegate, proven in one[name].asked.items():
            own = other[name].asked[delegate]
            if not proven.is_like(own):
                found.append(f"configuration {name}: {delegate} {proven} on {places[0]}, {own} on {places[1]}")
    return sorted(found)


def reference_delegation(lines: Sequence[str], node_count: int) -> NativeDelegation:
    """That of inference_diff's own reference, which takes a fresh graph and what the runtime adds to it."""
    added = [entry for entry in _xnnpack(read_delegate_log(lines)) if entry.total in (None, node_count)]
    used = [_used(DelegateSettings(), _XNNPACK, False, added)] if added else []
    return NativeDelegation(used, delegation_proof(used, node_count), None)


def _xnnpack(log: DelegateLog) -> list[TakenNodes]:
    return of_main_graph(taken_by(log, _XNNPACK.name, [_XNNPACK.name]))


def _first_of_a_fresh_graph(taken: Sequence[TakenNodes], node_count: int) -> list[TakenNodes]:
    """Without what XNNPACK took of the reference's graph: the test's comes first, and may be the same line."""
    fresh = [entry for entry in taken if entry.total in (None, node_count)]
    return [entry for entry in taken if entry not in fresh[1:]]


def _added_xnnpack(
    configuration: Configuration, log: DelegateLog, node_count: int, beside_reference: bool
) -> list[TakenNodes]:
    """XNNPACK as the runtime adds it: not with builtin kernels, and behind other delegates on what those left.

    Where it was asked for nothing is added: all that it took counts there. The reference's takes the whole graph.
    """
    requested = configuration.delegates.requested
    if configuration.kernel_set != "default" or _XNNPACK in requested:
        return []
    found = _xnnpack(log)
    if beside_reference and requested:
        return [entry for entry in found if entry.total is not None and entry.total != node_count]
    return found


def _used(settings: DelegateSettings, delegate: Delegate, requested: bool, taken: Sequence[TakenNodes]) -> DelegateUsed:
    return delegate_used(delegate.name, requested, settings.effective_options(delegate), taken)
