"""What delegates took of a model, as a session proves it, and whether they ran: one that took nothing did not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from evaltools.errors import DelegateTookNothing

_MOST_KINDS: Final = 5


class DelegateCoverage(Struct, frozen=True):
    """What one delegate took of the main graph.

    ``nodes`` and ``partitions`` are None where a log proves that it ran, and states no number. ``requested`` is false
    for XNNPACK where the runtime added it by itself. ``device`` is what ran, as the runtime names it, empty where it
    names none; ``is_cpu`` says that this is the CPU after all, as with a software GPU. ``evidence`` says what shows
    that the delegate ran. ``operators`` are the numbers of those that it took, empty where only their count is known.
    """

    delegate: str
    requested: bool
    nodes: int | None
    partitions: int | None
    device: str = ""
    is_cpu: bool = False
    evidence: str = ""
    operators: frozenset[int] = frozenset()


class Delegation(Struct, frozen=True):
    """Proof of delegation: of ``total_nodes`` nodes, which ran on a delegate and which operators stayed on the CPU.

    ``refused`` has a delegate's own words about operators that it does not take, where it says any, ``warnings`` those
    that put its results in doubt. ``without_effect`` says of a setting that it had nothing to do.
    """

    total_nodes: int
    delegates: tuple[DelegateCoverage, ...]
    cpu_operators: Mapping[str, int]
    refused: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    without_effect: str = ""

    @property
    def delegated_nodes(self) -> int:
        """Nodes that run on any delegate."""
        return sum(delegate.nodes or 0 for delegate in self.delegates)


def require_delegates_ran(delegation: Delegation) -> None:
    """Raise :class:`DelegateTookNothing` where a requested delegate took no node, or a setting had no effect."""
    if delegation.without_effect:
        raise DelegateTookNothing(delegation.without_effect)
    idle = [delegate.delegate for delegate in delegation.delegates if delegate.requested and delegate.nodes == 0]
    if not idle:
        return
    applied = f"the {' and the '.join(idle)} delegate was applied but"
    if delegation.total_nodes == 0:
        raise DelegateTookNothing(f"{applied} had nothing to take: the graph that is run has no operators")
    raise DelegateTookNothing(
        f"{applied} took none of the {delegation.total_nodes} nodes ({'; '.join(_who_has_them(delegation))})"
    )


def _who_has_them(delegation: Delegation) -> list[str]:
    """Who has the nodes that a delegate did not take."""
    others = [f"{entry.delegate} took {entry.nodes}" for entry in delegation.delegates if entry.nodes]
    kinds = [f"{name} x{count}" for name, count in delegation.cpu_operators.items()]
    if not kinds:
        return others
    more = [f"and {len(kinds) - _MOST_KINDS} more"] if len(kinds) > _MOST_KINDS else []
    return [*others, f"the CPU keeps {', '.join([*kinds[:_MOST_KINDS], *more])}"]


def require_full_delegation(delegation: Delegation) -> None:
    """Raise unless delegates run the whole model, by the native tool's rule.

    Some delegate was asked for, and each one takes everything in one piece.
    """
    asked_for = [entry for entry in delegation.delegates if entry.requested]
    part = [entry for entry in asked_for if entry.partitions != 1 or entry.nodes != delegation.total_nodes]
    if asked_for and not part:
        return
    took = [f"{entry.delegate} took {entry.nodes} of {delegation.total_nodes} nodes" for entry in part]
    left = [f"the CPU keeps {', '.join(delegation.cpu_operators)}"] if took and delegation.cpu_operators else []
    message = "; ".join([*took, *left]) or "no delegate was asked for; switch one on, as with --use_xnnpack=true"
    raise DelegateTookNothing(f"Disallowed CPU fallback detected (--require_full_delegation): {message}")
