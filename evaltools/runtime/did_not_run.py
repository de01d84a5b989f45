"""Decides whether a delegate ran, from the nodes that it took, which the session proves."""

from __future__ import annotations

from typing import Final

from evaltools.errors import DelegateTookNothing
from evaltools.runtime.session import Delegation

_MOST_KINDS: Final = 5


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
