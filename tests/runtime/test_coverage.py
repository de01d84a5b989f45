"""Which nodes a partition covers, on graphs drawn by hand."""

from __future__ import annotations

from evaltools.runtime.interpreter import covered_nodes, operators_left, original_operators


def node(index: int, name: str, inputs: list[int], outputs: list[int]) -> dict[str, object]:
    return {"index": index, "op_name": name, "inputs": inputs, "outputs": outputs}


DIAMOND = [
    node(0, "CONV_2D", [0, 10], [1]),
    node(1, "MUL", [1, -1], [2]),
    node(2, "NEG", [1], [3]),
    node(3, "ADD", [2, 3], [4]),
]
"""Tensor 0 goes into CONV_2D, whose output is multiplied and negated, and both are added; 10 is a weight."""


def test_a_partition_over_everything() -> None:
    assert covered_nodes(node(4, "DELEGATE", [0, 10], [4]), DIAMOND) == {0, 1, 2, 3}


def test_a_partition_stops_at_its_inputs() -> None:
    assert covered_nodes(node(4, "DELEGATE", [1], [4]), DIAMOND) == {1, 2, 3}
    assert covered_nodes(node(4, "DELEGATE", [2, 3], [4]), DIAMOND) == {3}


def test_a_partition_with_two_outputs() -> None:
    assert covered_nodes(node(4, "DELEGATE", [1], [2, 3]), DIAMOND) == {1, 2}


def test_the_rest_stays_on_the_cpu() -> None:
    assert operators_left(DIAMOND, frozenset({1, 2})) == {"CONV_2D": 1, "ADD": 1}


def test_delegate_entries_are_told_apart() -> None:
    entry = node(4, "DELEGATE", [1], [4])
    assert original_operators([*DIAMOND, entry]) == DIAMOND
