"""Which nodes of a graph a delegate took, read from the interpreter's list of operators.

After a delegate is applied the interpreter still lists the original nodes, followed by one ``DELEGATE`` entry per
partition. A partition covers the producers of its outputs, backwards until its inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

DELEGATE_OP: Final = "DELEGATE"
Operator = Mapping[str, Any]


def original_operators(operators: Sequence[Operator]) -> list[Operator]:
    """The nodes of the model itself."""
    return [operator for operator in operators if operator["op_name"] != DELEGATE_OP]


def covered_nodes(partition: Operator, originals: Sequence[Operator]) -> frozenset[int]:
    """Indices of the original nodes that one partition replaced.

    >>> first = {"index": 0, "op_name": "ADD", "inputs": [0, 0], "outputs": [1]}
    >>> second = {"index": 1, "op_name": "MUL", "inputs": [1, 0], "outputs": [2]}
    >>> sorted(covered_nodes({"index": 2, "op_name": "DELEGATE", "inputs": [0], "outputs": [2]}, [first, second]))
    [0, 1]
    """
    producers = {int(tensor): operator for operator in originals for tensor in operator["outputs"]}
    boundary = {int(tensor) for tensor in partition["inputs"]}
    open_tensors = [int(tensor) for tensor in partition["outputs"]]
    covered: set[int] = set()
    while open_tensors:
        tensor = open_tensors.pop()
        producer = producers.get(tensor)
        if producer is None or tensor in boundary or producer["index"] in covered:
            continue
        covered.add(int(producer["index"]))
        open_tensors.extend(int(source) for source in producer["inputs"] if source >= 0)
    return frozenset(covered)


def operators_left(originals: Sequence[Operator], covered: frozenset[int]) -> dict[str, int]:
    """Operators that stayed on the CPU, most frequent first."""
    names = Counter(str(operator["op_name"]) for operator in originals if operator["index"] not in covered)
    return dict(names.most_common())
