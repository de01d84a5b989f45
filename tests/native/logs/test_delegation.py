"""What a native run's log proves of delegation."""

from __future__ import annotations

import pytest

from evaltools.configuration import Configuration
from evaltools.native.logs.delegates import read_delegate_log
from evaltools.native.logs.delegation import LoggedDelegation, delegation_of

NODES = 31


def line(
    nodes: int, total: int, delegate: str = "TfLiteXNNPackDelegate", partitions: int = 1, subgraph: int = 0
) -> str:
    return (
        f"Replacing {nodes} out of {total} node(s) with delegate ({delegate}) node, yielding {partitions} partitions "
        f"for subgraph {subgraph}."
    )


GPU_TOOK = line(28, NODES, "TfLiteGpuDelegateV2", 2)
REST = line(3, 4)
ALL = line(31, NODES)


def configured(text: str) -> Configuration:
    return Configuration.from_text("test", text)


def read(text: str, *lines: str) -> LoggedDelegation:
    return delegation_of(configured(text), read_delegate_log(lines), NODES)


def taken(text: str, *lines: str) -> list[tuple[str, bool, int | None, int | None]]:
    found = read(text, *lines)
    return [(used.name, used.requested, used.nodes, used.partitions) for used in found.delegates]


def test_a_delegate_that_took_nodes_is_proven_by_its_line() -> None:
    found = read("use_gpu=true gpu_backend=cl", GPU_TOOK, "Created 1 GPU delegate kernels.")
    (used,) = found.delegates
    assert (used.name, used.requested, used.nodes, used.partitions) == ("GPU", True, 28, 1)
    assert used.options["gpu_backend"] == "cl"
    assert used.evidence == "its log: TfLiteGpuDelegateV2 took 28 of 31 nodes"
    assert (found.proof.total_nodes, found.proof.delegated_nodes, found.proof.cpu_operators) == (31, 28, {})
    assert found.why_not is None


def test_what_the_runtime_adds_stands_behind_what_was_asked_for() -> None:
    assert taken("use_gpu=true", GPU_TOOK, REST) == [("GPU", True, 28, 1), ("XNNPACK", False, 3, 1)]
    assert taken("", ALL) == [("XNNPACK", False, 31, 1)]
    assert taken("kernels=builtin", ALL) == []
    assert taken("") == []
    assert taken("use_xnnpack=true", line(30, NODES), line(1, 2)) == [("XNNPACK", True, 31, 2)]


@pytest.mark.parametrize(
    ("text", "lines", "said"),
    [
        ("use_gpu=true", [], "GPU was asked for, but no line of the log says that it took nodes"),
        (
            "use_gpu=true",
            ["GPU delegate created."],
            "GPU was asked for, but no line of the log says that it took nodes, only",
        ),
        (
            "use_gpu=true",
            ["GPU acceleration is unsupported on this platform."],
            'GPU was asked for, but the log says "GPU acceleration is unsupported on this platform."',
        ),
        ("use_gpu=true", [ALL], "XNNPACK took 31"),
        (
            "use_gpu=true",
            [GPU_TOOK, "Created 0 GPU delegate kernels."],
            'the log says "Created 0 GPU delegate kernels."',
        ),
        ("use_hexagon=true", [], "Hexagon was asked for"),
        ("use_gpu=true use_nnapi=true", [GPU_TOOK], "NNAPI was asked for"),
        ("external_delegate_path=a.so", [ALL], "EXTERNAL was asked for"),
    ],
)
def test_without_proof_the_log_is_quoted(text: str, lines: list[str], said: str) -> None:
    found = read(text, *lines)
    assert found.why_not is not None
    assert said in found.why_not


@pytest.mark.parametrize(
    ("flags", "lines", "is_proven"),
    [
        ("", [], True),
        ("disable_nnapi_cpu=false", [], False),
        ("disable_nnapi_cpu=false nnapi_accelerator_name=qti-dsp", [], True),
        ("disable_nnapi_cpu=false", ["NNAPI accelerator name: [qti-dsp]"], True),
        ("nnapi_accelerator_name=nnapi-reference", [], False),
    ],
)
def test_nnapi_that_may_have_used_its_own_cpu_is_not_proven(flags: str, lines: list[str], is_proven: bool) -> None:
    found = read(f"use_nnapi=true {flags}", line(31, NODES, "TfLiteNnapiDelegate"), *lines)
    doubt = (
        "NNAPI was asked for, but the log does not name the device; NNAPI may have used its own CPU: "
        "disable_nnapi_cpu=true or an accelerator name rules that out"
    )
    assert found.why_not == (None if is_proven else doubt)
    assert found.delegates[0].device == ("qti-dsp" if lines else "")


def test_nothing_that_was_not_asked_for_is_missed() -> None:
    assert read("", "GPU acceleration is unsupported on this platform.").why_not is None


def test_partitions_that_the_log_does_not_tell_are_not_known() -> None:
    """Pieces belong to the delegate and to the CPU by turns: of three, one or two are the delegate's."""
    assert taken("use_gpu=true", line(28, NODES, "TfLiteGpuDelegateV2", 3)) == [("GPU", True, 28, None)]
    assert taken("use_gpu=true", line(28, NODES, "TfLiteGpuDelegateV2", 6)) == [("GPU", True, 28, 3)]


def test_nodes_of_other_graphs_prove_but_do_not_count() -> None:
    found = read("use_gpu=true", line(5, 5, "TfLiteGpuDelegateV2", 1, subgraph=1))
    assert found.why_not is None
    assert found.delegates[0].nodes == 0
    assert found.proof.delegated_nodes == 0


def announced(nodes: int, total: int, more: str = "", delegate: str = "TfLiteHexagonDelegate") -> str:
    return f"{delegate} delegate: {nodes} nodes delegated out of {total} nodes{more}."


def replaced(nodes: int, more: str = "", delegate: str = "TfLiteHexagonDelegate") -> str:
    return f"Replacing {nodes} node(s) with delegate ({delegate}) node{more}."


@pytest.mark.parametrize(
    ("lines", "nodes", "partitions"),
    [
        ([announced(30, 31), replaced(30, ", yielding 2 partitions")], 30, 1),
        ([replaced(30, ", yielding 5 partitions")], 30, None),
        ([announced(20, 31, " with 1 partitions"), replaced(5, ", yielding 2 partitions")], 25, 2),
        (
            [
                announced(20, 31, " with 1 partitions"),
                replaced(20, ", yielding 3 partitions"),
                replaced(5, ", yielding 2 partitions for subgraph 0"),
                replaced(20, ", yielding 1 partitions for subgraph 1"),
            ],
            25,
            None,
        ),
        (
            [announced(31, 31), "Restored original execution plan after delegate application failure.", replaced(31)],
            31,
            None,
        ),
    ],
)
def test_an_announcement_and_what_the_runtime_logs_of_it_are_one(
    lines: list[str], nodes: int, partitions: int | None
) -> None:
    assert taken("use_hexagon=true", *lines) == [("Hexagon", True, nodes, partitions)]


def test_a_library_may_be_named_otherwise_by_the_runtime_but_not_as_another_of_ours() -> None:
    library = announced(20, NODES, " with 3 partitions", delegate="[Qnn Delegate] QNN")
    external = "external_delegate_path=a.so"
    assert taken(external, library, replaced(20, delegate="TfLiteQnnDelegate"))[0][2] == 20
    beside = [nodes for _, _, nodes, _ in taken(external, library, replaced(20, delegate="TfLiteXNNPackDelegate"))]
    assert beside == [20, 20]


def test_the_proof_is_of_no_more_nodes_than_there_are() -> None:
    assert read("use_hexagon=true", replaced(20), replaced(15)).proof.delegated_nodes == NODES
