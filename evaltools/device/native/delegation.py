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


class NativeDelegation(Struct, frozen=True):
    """What ran where, and why that is not what was asked for, None where it is or where nothing was asked for.

    The log does not say which operators stay on the CPU: those of ``proof`` are empty. ``asked`` says of every delegate
    that was asked for how many nodes of the main graph it took, with the devices that NNAPI compiled for.
    """

    delegates: list[DelegateUsed]
    proof: DelegationProof
    why_not: str | None
    asked: Mapping[str, str] = field(default_factory=dict)


def delegation_of(
    configuration: Configuration, lines: Sequence[str], node_count: int, reference_nodes: int | None = None
) -> NativeDelegation:
    """Read what a run logged; a delegate that was asked for must be said to have taken nodes.

    ``node_count`` is that of the model's main graph. ``reference_nodes`` is that of the reference's graph where the log
    is that of two interpreters, one of them the reference; None where there is no reference in it.
    """
    log = read_delegate_log(lines)
    settings = configuration.delegates
    asked = [delegate.name for delegate in settings.requested]
    taken = {name: taken_by(log, name, asked) for name in asked}
    if reference_nodes is not None and _XNNPACK.name in taken:
        taken[_XNNPACK.name] = _first_of_a_fresh_graph(taken[_XNNPACK.name], reference_nodes)
    used = [_used(settings, delegate, True, taken[delegate.name]) for delegate in settings.requested]
    added = _added_xnnpack(configuration, log, reference_nodes)
    used += [_used(settings, _XNNPACK, False, added)] if added else []
    on_cpu = any(
        delegate.name == _NNAPI and nnapi_may_use_cpu(settings.effective_options(delegate))
        for delegate in settings.requested
    )
    reasons = undelegated(log, asked, on_cpu)
    why_not = "; ".join(f"{name} was asked for, but {reason}" for name, reason in reasons.items()) or None
    proven = {}
    for entry in used[: len(asked)]:
        where = f" with {', '.join(sorted(log.devices))}" if entry.name == _NNAPI and log.devices else ""
        took = f"took {entry.nodes or 0} nodes{where}"
        proven[entry.name] = "is not proven to run" if entry.name in reasons else took
    return NativeDelegation(used, delegation_proof(used, node_count), why_not, proven)


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


def _added_xnnpack(configuration: Configuration, log: DelegateLog, reference_nodes: int | None) -> list[TakenNodes]:
    """XNNPACK as the runtime adds it: not with builtin kernels, and behind other delegates on what those left.

    Where it was asked for nothing is added: all that it took counts there. The reference's takes the whole graph.
    """
    requested = configuration.delegates.requested
    if configuration.kernel_set != "default" or _XNNPACK in requested:
        return []
    found = _xnnpack(log)
    if reference_nodes is not None and requested:
        return [entry for entry in found if entry.total is not None and entry.total != reference_nodes]
    return found


def _used(settings: DelegateSettings, delegate: Delegate, requested: bool, taken: Sequence[TakenNodes]) -> DelegateUsed:
    return delegate_used(delegate.name, requested, settings.effective_options(delegate), taken)
