"""What delegates took, as a result states it."""

from __future__ import annotations

import pytest

from evaltools.native.logs.delegate_use import delegate_used, delegation_proof
from evaltools.native.logs.delegates import TakenNodes, read_delegate_log, taken_by
from evaltools.result.evaluation import DelegateUsed, DelegationProof


def used(*lines: str, name: str = "Hexagon") -> DelegateUsed:
    return delegate_used(name, True, {}, taken_by(read_delegate_log(lines), name, [name]))


def announced(nodes: int, total: int, more: str = "", delegate: str = "TfLiteHexagonDelegate") -> str:
    return f"{delegate} delegate: {nodes} nodes delegated out of {total} nodes{more}."


def replaced(nodes: int, more: str = "", delegate: str = "TfLiteHexagonDelegate") -> str:
    return f"Replacing {nodes} node(s) with delegate ({delegate}) node{more}."


@pytest.mark.parametrize(
    ("lines", "nodes", "partitions"),
    [
        ([announced(136, 139, " with 2 partitions"), replaced(136, ", yielding 5 partitions")], 136, 2),
        ([announced(30, 31), replaced(30, ", yielding 2 partitions")], 30, 1),
        ([announced(31, 31), replaced(31, ", yielding 1 partitions")], 31, 1),
        ([announced(136, 139, " with 2 partitions")], 136, 2),
        ([replaced(136, ", yielding 5 partitions")], 136, None),
        ([announced(20, 31, " with 1 partitions"), replaced(5, ", yielding 2 partitions")], 25, 2),
        (
            [
                announced(20, 31, " with 1 partitions"),
                replaced(20, ", yielding 3 partitions"),
                replaced(5, ", yielding 2 partitions for subgraph 0"),
                replaced(20, ", yielding 1 partitions for subgraph 1"),
            ],
            25,
            2,
        ),
    ],
)
def test_an_announcement_and_what_the_runtime_logs_of_it_are_one(
    lines: list[str], nodes: int, partitions: int | None
) -> None:
    found = used(*lines)
    assert (found.nodes, found.partitions) == (nodes, partitions)


def test_a_library_may_be_named_otherwise_by_the_runtime_but_not_as_another_of_ours() -> None:
    library = announced(47, 50, " with 3 partitions", delegate="[Qnn Delegate] QNN")
    assert used(library, replaced(47, delegate="TfLiteQnnDelegate"), name="EXTERNAL").nodes == 47
    lines = [library, replaced(47, delegate="TfLiteXNNPackDelegate")]
    assert (used(*lines, name="EXTERNAL").nodes, used(*lines, name="XNNPACK").nodes) == (47, 47)


def test_what_was_undone_is_not_the_announcement_of_what_follows() -> None:
    restored = "Restored original execution plan after delegate application failure."
    assert used(announced(31, 31), restored, replaced(31)).nodes == 31


def test_nodes_are_null_without_a_word_and_0_where_other_graphs_have_them() -> None:
    assert (used().nodes, used().partitions, used().evidence) == (None, None, "")
    other = used(replaced(5, ", yielding 1 partitions for subgraph 1"))
    assert (other.nodes, other.partitions, other.evidence) == (0, None, "")


def test_the_proof_is_of_no_more_nodes_than_there_are() -> None:
    found = [delegate_used("GPU", True, {}, [TakenNodes("GPU", nodes)]) for nodes in (20, 15)]
    assert delegation_proof(found, 64) == DelegationProof(64, 35, {})
    assert delegation_proof([*found, delegate_used("NNAPI", True, {}, [])], 31) == DelegationProof(31, 31, {})
