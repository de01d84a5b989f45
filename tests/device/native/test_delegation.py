"""What a native run's log proves of delegation."""

from __future__ import annotations

import pytest

from evaltools.configuration import Configuration
from evaltools.device.native.delegation import delegation_of, reference_delegation
from evaltools.native.logs.delegates import delegate_lines
from tests.native.logs.log_styles import STYLES, recorded

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


def taken(text: str, *lines: str, beside_reference: bool = False) -> list[tuple[str, bool, int | None, int | None]]:
    found = delegation_of(configured(text), lines, NODES, NODES if beside_reference else None)
    return [(used.name, used.requested, used.nodes, used.partitions) for used in found.delegates]


def test_a_delegate_that_took_nodes_is_proven_by_its_line() -> None:
    found = delegation_of(
        configured("use_gpu=true gpu_backend=cl"), [GPU_TOOK, "Created 1 GPU delegate kernels."], NODES
    )
    (used,) = found.delegates
    assert (used.name, used.requested, used.nodes, used.partitions) == ("GPU", True, 28, 1)
    assert used.options["gpu_backend"] == "cl"
    assert used.evidence == "its log: TfLiteGpuDelegateV2 took 28 of 31 nodes"
    assert (found.proof.total_nodes, found.proof.delegated_nodes, found.proof.cpu_operators) == (31, 28, {})
    assert found.why_not is None


@pytest.mark.parametrize("style", STYLES)
def test_what_a_delegate_announces_and_the_runtime_logs_counts_once(style: str) -> None:
    lines = delegate_lines(STYLES[style](recorded("eval_hexagon")))
    found = delegation_of(configured("use_hexagon=true"), lines, 139, 139)
    assert [(used.name, used.nodes, used.partitions, used.evidence) for used in found.delegates] == [
        ("Hexagon", 136, 2, "its log: TfLiteHexagonDelegate took 136 of 139 nodes")
    ]
    assert (found.proof.delegated_nodes, found.why_not) == (136, None)


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
    found = delegation_of(configured(text), lines, NODES)
    assert found.why_not is not None
    assert said in found.why_not


@pytest.mark.parametrize(
    ("flags", "lines", "is_proven"),
    [
        ("", [], True),
        ("disable_nnapi_cpu=false", [], False),
        ("disable_nnapi_cpu=false nnapi_accelerator_name=qti-dsp", [], True),
        ("disable_nnapi_cpu=false", ["NNAPI accelerator name: [qti-dsp]"], True),
    ],
)
def test_nnapi_that_may_have_used_its_own_cpu_is_not_proven(flags: str, lines: list[str], is_proven: bool) -> None:
    found = delegation_of(
        configured(f"use_nnapi=true {flags}"), [line(31, NODES, "TfLiteNnapiDelegate"), *lines], NODES
    )
    doubt = (
        "NNAPI was asked for, but the log does not name the device; NNAPI may have used its own CPU: "
        "disable_nnapi_cpu=true or an accelerator name rules that out"
    )
    assert found.why_not == (None if is_proven else doubt)
    assert found.asked["NNAPI"].startswith("took 31 nodes") is is_proven


def test_nothing_that_was_not_asked_for_is_missed() -> None:
    assert delegation_of(configured(""), ["GPU acceleration is unsupported on this platform."], NODES).why_not is None


def test_partitions_that_the_log_does_not_tell_are_not_known() -> None:
    """Pieces belong to the delegate and to the CPU by turns: of three, one or two are the delegate's."""
    assert taken("use_gpu=true", line(28, NODES, "TfLiteGpuDelegateV2", 3)) == [("GPU", True, 28, None)]
    assert taken("use_gpu=true", line(28, NODES, "TfLiteGpuDelegateV2", 6)) == [("GPU", True, 28, 3)]


def test_nodes_of_other_graphs_prove_but_do_not_count() -> None:
    found = delegation_of(configured("use_gpu=true"), [line(5, 5, "TfLiteGpuDelegateV2", 1, subgraph=1)], NODES)
    assert found.why_not is None
    assert found.delegates[0].nodes == 0
    assert found.proof.delegated_nodes == 0


def test_a_reference_beside_the_test_has_the_whole_graph() -> None:
    """inference_diff logs both; a line that both have stands once."""
    both = [GPU_TOOK, REST, ALL]
    assert taken("use_gpu=true", *both, beside_reference=True) == [("GPU", True, 28, 1), ("XNNPACK", False, 3, 1)]
    assert taken("use_gpu=true", GPU_TOOK, ALL, beside_reference=True) == [("GPU", True, 28, 1)]
    assert taken("", ALL, beside_reference=True) == [("XNNPACK", False, 31, 1)]
    assert taken("kernels=builtin", ALL, beside_reference=True) == []
    assert taken("use_xnnpack=true", line(30, NODES), line(1, 2), ALL, beside_reference=True) == [
        ("XNNPACK", True, 31, 2)
    ]
    reference = reference_delegation(both, NODES)
    assert [(used.name, used.requested, used.nodes) for used in reference.delegates] == [("XNNPACK", False, 31)]
    assert reference_delegation([], NODES).proof.delegated_nodes == 0
