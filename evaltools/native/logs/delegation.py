"""What delegates took in a run of a native program, by what it logged, as a result states it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from evaltools.configuration import Configuration
from evaltools.delegates import DelegateSettings
from evaltools.delegates.gpu import GPU
from evaltools.delegates.native_only import CPU_DEVICES, nnapi_may_use_cpu
from evaltools.delegates.xnnpack import XNNPACK
from evaltools.native.logs.delegates import (
    DelegateLog,
    TakenNodes,
    applied_as,
    taken_by,
    undelegated,
)
from evaltools.parameter import Value
from evaltools.result.facts import DelegateUsed, DelegationProof

FALLBACK_HINT: Final = "its figures would be those of the CPU; --allow_fallback=true measures them all the same"
_NNAPI: Final = "NNAPI"


class LoggedDelegation(Struct, frozen=True):
    """What ran where, and why that is not what was asked for, None where it is or where nothing was asked for.

    The log does not say which operators stay on the CPU: those of ``proof`` are empty.
    """

    delegates: list[DelegateUsed]
    proof: DelegationProof
    why_not: str | None


def delegation_of(configuration: Configuration, log: DelegateLog, node_count: int) -> LoggedDelegation:
    """What a run logged; a delegate that was asked for must be said to have taken nodes.

    ``node_count`` is that of the model's main graph.
    """
    settings = configuration.delegates
    options = {delegate.name: settings.effective_options(delegate) for delegate in settings.requested}
    taken = {name: taken_by(log, name, list(options)) for name in options}
    used = [_requested(log, name, options[name], taken[name], node_count) for name in options]
    added = _added_nodes(configuration, log)
    used += [_added(settings, added)] if added else []
    reasons = undelegated(log, list(options), nnapi_may_use_cpu(options.get(_NNAPI, {})))
    why_not = "; ".join(f"{name} was asked for, but {reason}" for name, reason in reasons.items()) or None
    return LoggedDelegation(used, delegation_proof(used, node_count), why_not)


def delegation_proof(used: Iterable[DelegateUsed], node_count: int) -> DelegationProof:
    """What delegates took together of a main graph of so many nodes; which operators stay, logs do not say."""
    return DelegationProof(node_count, min(node_count, sum(entry.nodes or 0 for entry in used)), {})


def _requested(
    log: DelegateLog, name: str, options: Mapping[str, Value], taken: Sequence[TakenNodes], node_count: int
) -> DelegateUsed:
    """Where nothing says how many nodes, benchmark_model's word may: a graph executed completely has all of them."""
    found = _used(name, True, options, taken)
    if name == _NNAPI and log.devices:
        found = replace(found, device=", ".join(log.devices), is_cpu=CPU_DEVICES.issuperset(log.devices))
    if name == GPU.name and log.gpu_api:
        found = replace(found, device=log.gpu_api)
    applied = applied_as(log, name)
    if applied is None or applied.coverage == "none":
        return replace(found, nodes=0, partitions=0) if found.nodes is None and name in log.created else found
    if applied.coverage == "full":
        return replace(found, nodes=node_count, partitions=1, evidence=found.evidence or _word(name, "completely"))
    return replace(found, partitions=applied.kernels, evidence=found.evidence or _word(name, "partially"))


def _added(settings: DelegateSettings, taken: Sequence[TakenNodes]) -> DelegateUsed:
    return _used(XNNPACK.name, False, settings.effective_options(XNNPACK), taken)


def _word(delegate: str, coverage: str) -> str:
    return f"its log: {delegate} executes the graph {coverage}"


def _used(name: str, requested: bool, options: Mapping[str, Value], taken: Sequence[TakenNodes]) -> DelegateUsed:
    """A delegate with what it took of the main graph, in all its turns.

    ``taken`` is all that the log says that it took: null nodes where that is nothing, 0 where it took only nodes of
    other graphs. ``partitions`` is None where the log counts those left to the CPU too.
    """
    main = _of_main_graph(taken)
    said = ", ".join(map(_in_words, main))
    partitions = [entry.kernels if entry.kernels is not None else _half(entry.partitions) for entry in main]
    return DelegateUsed(
        name=name,
        requested=requested,
        options=dict(options),
        nodes=sum(entry.nodes for entry in main) if taken else None,
        partitions=None if not partitions or None in partitions else sum(filter(None, partitions)),
        evidence=f"its log: {said}" if said else "",
    )


def _in_words(entry: TakenNodes) -> str:
    total = "" if entry.total is None else f" of {entry.total}"
    return f"{entry.delegate} took {entry.nodes}{total} nodes"


def _half(pieces: int | None) -> int | None:
    """Pieces of a graph belong to the delegate and to the CPU by turns: half of an even number is the delegate's."""
    return pieces // 2 if pieces is not None and pieces % 2 == 0 else None


def _of_main_graph(taken: Iterable[TakenNodes]) -> list[TakenNodes]:
    return [entry for entry in taken if entry.subgraph in (None, 0)]


def _main_xnnpack(log: DelegateLog) -> list[TakenNodes]:
    return _of_main_graph(taken_by(log, XNNPACK.name, [XNNPACK.name]))


def _added_nodes(configuration: Configuration, log: DelegateLog) -> list[TakenNodes]:
    """XNNPACK as the runtime adds it: not with builtin kernels, and behind other delegates on what those left.

    Where it was asked for nothing is added: all that it took counts there.
    """
    requested = [delegate.name for delegate in configuration.delegates.requested]
    if configuration.kernel_set != "default" or XNNPACK.name in requested:
        return []
    return _main_xnnpack(log)
