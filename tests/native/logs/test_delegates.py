"""What logs say of delegates: every line by itself, and whole logs in all styles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from evaltools.native.logs.delegates import (
    DelegateLog,
    Refutation,
    TakenNodes,
    delegate_lines,
    family_of,
    read_delegate_log,
    taken_by,
    undelegated,
)

LINES: Final = Path(__file__).with_name("delegate_lines.txt")
GPU_TAKES: str = (
    "Replacing 63 out of 64 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 2 partitions for subgraph 0."
)
RESTORED: str = "Restored original execution plan after delegate application failure."


def read(*lines: str) -> DelegateLog:
    """What lines say; each must be one that is picked out of a log."""
    assert delegate_lines("\n".join(lines)) == lines
    return read_delegate_log(lines)


def listed(kind: str) -> list[tuple[str, str]]:
    """What lines of a kind say, and each line."""
    found: list[tuple[str, str]] = []
    said = ""
    for line in LINES.read_text().splitlines():
        if line.startswith("== "):
            of, _, said = line.removeprefix("== ").partition(":")
        elif line and not line.startswith("#") and of == kind:
            found.append((said.strip(), line))
    return found


@pytest.mark.parametrize(("said", "line"), listed("took"))
def test_a_line_about_nodes(said: str, line: str) -> None:
    delegate, _, facts = said.partition(": ")
    numbers = {name: int(number == "True" or number) for name, number in re.findall(r"(\w+)=(\w+)", facts)}
    announced = bool(numbers.pop("announced", 0))
    found = read(line)
    assert (found.taken, found.created, found.refuted) == (
        (TakenNodes(delegate, announced=announced, **numbers),), (), ()
    )  # fmt: skip


@pytest.mark.parametrize(("delegate", "line"), listed("created"))
def test_to_be_created_proves_nothing(delegate: str, line: str) -> None:
    found = read(line)
    assert (found.created, found.taken, found.refuted) == ((delegate,), (), ())
    assert undelegated(found, [delegate]) == {
        delegate: "no line of the log says that it took nodes, only that it was created"
    }


@pytest.mark.parametrize(("said", "line"), listed("applied"))
def test_what_benchmark_model_applied_is_proof(said: str, line: str) -> None:
    found = read(line)
    (applied,) = found.applied
    kernels = "" if applied.kernels is None else f" {applied.kernels}"
    assert f"{applied.delegate}: {applied.coverage}{kernels}" == said
    assert undelegated(found, [applied.delegate]) == {}


@pytest.mark.parametrize(("delegate", "line"), listed("refuted"))
def test_a_line_that_refutes(delegate: str, line: str) -> None:
    found = read(line)
    assert found.refuted == (Refutation("" if delegate == "any" else delegate, line),)
    asked = "GPU" if delegate == "any" else delegate
    assert undelegated(found, [asked]) == {asked: f'the log says "{line}"'}


@pytest.mark.parametrize(("_", "line"), listed("nothing"))
def test_a_line_that_is_kept_and_decides_nothing(_: str, line: str) -> None:
    assert read(line).refuted == ()
    assert undelegated(read(line, GPU_TAKES), ["GPU"]) == {}
    assert undelegated(read(line), ["GPU"]) == {"GPU": "no line of the log says that it took nodes"}


@pytest.mark.parametrize(("_", "cause"), listed("cause"))
def test_the_cause_is_quoted_with_what_it_led_to(_: str, cause: str) -> None:
    found = read(cause, "Failed to apply GPU delegate.")
    assert undelegated(found, ["GPU"]) == {"GPU": f'the log says "Failed to apply GPU delegate.", after "{cause}"'}
    assert read(cause).refuted == ()


def test_the_first_of_several_causes_is_quoted_and_only_once() -> None:
    found = read(
        "No GPU detected.", "TfLiteGpuDelegate Prepare: delegate is not initialized", RESTORED, "Falling back to CPU"
    )
    assert [entry.cause for entry in found.refuted] == ["No GPU detected.", ""]


def test_opencl_that_failed_is_no_cause_once_opengl_serves() -> None:
    found = read(
        "No GPU detected.", "Falling back to OpenGL", GPU_TAKES, "NNAPI acceleration is unsupported on this platform."
    )
    assert found.refuted == (Refutation("NNAPI", "NNAPI acceleration is unsupported on this platform."),)
    assert set(undelegated(found, ["GPU", "NNAPI"])) == {"NNAPI"}


def test_what_was_restored_was_not_taken() -> None:
    xnnpack = "Replacing 64 out of 64 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1 partitions."
    found = read("GPU delegate created.", GPU_TAKES, RESTORED, xnnpack)
    assert [entry.delegate for entry in found.taken] == ["TfLiteXNNPackDelegate"]
    assert undelegated(found, ["GPU", "XNNPACK"]) == {"GPU": f'the log says "{RESTORED}"'}


def test_nodes_that_were_replaced_are_no_proof_against_the_word_of_benchmark_model() -> None:
    """Seen with NNAPI, which takes every node of a model of float32 and gives it to the CPU."""
    word = "Though NNAPI delegate is explicitly applied, the model graph will not be executed by the delegate."
    taken = "Replacing 31 out of 31 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 1 partitions."
    assert undelegated(read(taken, word), ["NNAPI"]) == {"NNAPI": f'the log says "{word}"'}


def test_no_node_at_all_is_no_proof() -> None:
    line = "Replacing 0 out of 31 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 1 partitions."
    assert undelegated(read(line), ["GPU"]) == {"GPU": "no line of the log says that it took nodes"}


@pytest.mark.parametrize("kernel", ["TfLiteQnnDelegate", "Vx Delegate", "TfLiteGpuDelegateV2"])
def test_a_library_names_its_delegate_as_it_likes(kernel: str) -> None:
    taken = f"Replacing 3 out of 4 node(s) with delegate ({kernel}) node, yielding 2 partitions."
    runtime = "Replacing 1 out of 2 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 2 partitions."
    for asked in ("EXTERNAL", "EXTERNAL#2", "STABLE_DELEGATE"):
        assert undelegated(read(taken, runtime), [asked]) == {}
        assert [entry.nodes for entry in taken_by(read(taken, runtime), asked, [asked])] == [3]
        assert set(undelegated(read(runtime), [asked])) == {asked}
    assert set(undelegated(read(GPU_TAKES), ["GPU", "EXTERNAL"])) == {"EXTERNAL"}


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("TfLiteGpuDelegateV2", "GPU"),
        ("TfLiteMetalDelegate", "GPU"),
        ("LITERT_CL", "GPU"),
        ("LITERT_OPENGL", "GPU"),
        ("TfLiteNnapiDelegate", "NNAPI"),
        ("TfLiteHexagonDelegate", "Hexagon"),
        ("TfLiteCoreMlDelegate", "COREML"),
        ("TfLiteXNNPackDelegate", "XNNPACK"),
        ("YNNPACK", "YNNPACK"),
        ("DispatchDelegate", "NPU"),
        ("TfLiteFlexDelegate", "Flex"),
        ("Neutron", "Neutron"),
    ],
)
def test_delegates_by_their_names_in_logs(name: str, family: str) -> None:
    assert family_of(name) == family


def test_operators_that_a_gpu_refused_are_kept_until_the_end_of_their_list() -> None:
    log = (
        "INFO: STARTING!\nADD: of no list\nERROR: Following operations are not supported by GPU delegate:\n"
        "RELU_0_TO_1: Not supported op RELU_0_TO_1\nDEQUANTIZE: \nCUSTOM Detect: Detect\n"
        "130 operations will run on the GPU, and the remaining 114 operations will run on the CPU.\nADD: after it\n"
    )
    assert delegate_lines(log) == (
        "Following operations are not supported by GPU delegate:",
        "RELU_0_TO_1: Not supported op RELU_0_TO_1",
        "DEQUANTIZE:",
        "CUSTOM Detect: Detect",
        "130 operations will run on the GPU, and the remaining 114 operations will run on the CPU.",
    )


@pytest.mark.parametrize("text", ["", "INFO: STARTING!\nINFO: Graph: [gpu delegate created.tflite]\ncount=3 curr=1"])
def test_other_lines_are_left_out(text: str) -> None:
    assert delegate_lines(text) == ()
    assert read_delegate_log(()) == DelegateLog((), ())
