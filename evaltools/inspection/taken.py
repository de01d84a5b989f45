"""What a delegate or a chip took of a model: rows of a result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from evaltools.model.contents import Graph
from evaltools.result.facts import DelegateUsed, DelegationProof
from evaltools.result.result import Row

TESTED: Final = "tested here"
NOT_TESTED: Final = "not tested"
COMPILED: Final = "compiled here"
REFUSED: Final = "refused"
FROM_GRAPH: Final = "from the graph"
BASIS: Final = "basis"
"""The name of the text that says what a row rests on."""
LEFT: Final = "operator"
"""The role of a part: an operator of which some nodes stay on the CPU."""
WARNING: Final = "warning"
"""The role of a part: what puts the result in doubt."""
_LONGEST_REASON: Final = 1200
_CUT: Final = " ..."


def not_taken(row: Row, basis: str, why: str) -> Row:
    """The row of what could not be tried, or was refused."""
    return replace(row, status="not measured", reason=why, texts={**row.texts, BASIS: basis})


def taken(
    row: Row,
    basis: str,
    delegate: DelegateUsed,
    proof: DelegationProof,
    graph: Graph,
    reasons: Mapping[str, str],
    warnings: tuple[str, ...],
) -> Row:
    """The row with the nodes that were taken, and those left on the CPU: their types, and the delegate's own reasons.

    ``graph`` is the model's main one.
    """
    left = [
        Row(
            operator,
            LEFT,
            counts={"nodes": count},
            texts={"types": types_of_left(graph, operator, count), "reason": reasons.get(operator, "")},
        )
        for operator, count in proof.cpu_operators.items()
    ]
    return replace(
        row,
        texts={**row.texts, BASIS: basis},
        delegates=[delegate],
        delegation=proof,
        rows=[*left, *(Row(text, WARNING) for text in warnings)],
    )


def types_of_left(graph: Graph, operator: str, count: int) -> str:
    """The types that the ``count`` nodes of an operator left on the CPU compute with; empty where that is not known.

    It is known where all nodes of the operator are left, and where only one group of equal types is as many.

    >>> from evaltools.model.contents import Operation
    >>> types_of_left(Graph((), (Operation(0, "ADD", (), ()),) * 2, (), ()), "ADD", 1)
    ''
    """
    types = Counter(graph.types_of(node) for node in graph.nodes if node.operator == operator)
    if sum(types.values()) == count:
        return "; ".join(types)
    as_many = [name for name, number in types.items() if number == count]
    return as_many[0] if len(as_many) == 1 else ""


def first_line(text: str) -> str:
    """The first line of a message, which may be cut."""
    lines = text.strip().splitlines()
    if not lines:
        return "no reason given"
    return lines[0] if len(lines[0]) <= _LONGEST_REASON else lines[0][:_LONGEST_REASON] + _CUT
