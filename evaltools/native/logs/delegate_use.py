"""What delegates took in a run of a native program, from its log, as a result states it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from evaltools.native.logs.delegates import TakenNodes
from evaltools.parameter import Value
from evaltools.result.evaluation import DelegateUsed, DelegationProof

FALLBACK_HINT: Final = "its figures would be those of the CPU; --allow_fallback=true measures them all the same"


def of_main_graph(taken: Iterable[TakenNodes]) -> list[TakenNodes]:
    """Without what was taken of other graphs."""
    return [entry for entry in taken if entry.subgraph in (None, 0)]


def delegate_used(
    name: str, requested: bool, options: Mapping[str, Value], taken: Sequence[TakenNodes]
) -> DelegateUsed:
    """A delegate with what it took of the main graph, in all its turns.

    ``taken`` is all that the log says that it took: null nodes where that is nothing, 0 where it took only nodes of
    other graphs. ``partitions`` is None where the log counts those left to the CPU too.

    >>> used = delegate_used("XNNPACK", True, {}, [TakenNodes("X", 30, 31, 2), TakenNodes("X", 1, 2, 1, 1)])
    >>> used.nodes, used.partitions, used.evidence
    (31, 2, 'its log: X took 30 of 31 nodes, X took 1 of 2 nodes')
    """
    main = of_main_graph(taken)
    said = ", ".join(map(_in_words, main))
    return DelegateUsed(
        name=name,
        requested=requested,
        options=dict(options),
        nodes=sum(entry.nodes for entry in main) if taken else None,
        partitions=_partitions(main),
        evidence=f"its log: {said}" if said else "",
    )


def delegation_proof(used: Iterable[DelegateUsed], node_count: int) -> DelegationProof:
    """What delegates took together of a main graph of so many nodes; which operators stay, logs do not say."""
    return DelegationProof(node_count, min(node_count, sum(entry.nodes or 0 for entry in used)), {})


def _in_words(entry: TakenNodes) -> str:
    total = "" if entry.total is None else f" of {entry.total}"
    return f"{entry.delegate} took {entry.nodes}{total} nodes"


def _partitions(taken: Sequence[TakenNodes]) -> int | None:
    """Those of the delegate.

    Pieces of a graph belong to the delegate and to the CPU by turns, so that half of an even number is the delegate's.
    """
    known = [entry.kernels if entry.kernels is not None else _half(entry.partitions) for entry in taken]
    return None if not known or None in known else sum(filter(None, known))


def _half(pieces: int | None) -> int | None:
    return pieces // 2 if pieces is not None and pieces % 2 == 0 else None
