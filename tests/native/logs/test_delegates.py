"""What logs say of delegates: every line by itself, and whole logs in all styles."""

from __future__ import annotations

import pytest

from evaltools.native.logs.delegates import (
    AppliedDelegate,
    DelegateLog,
    Refutation,
    TakenNodes,
    delegate_lines,
    family_of,
    read_delegate_log,
    taken_by,
    undelegated,
)

GPU_TAKES: str = (
    "Replacing 63 out of 64 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 2 partitions for subgraph 0."
)
RESTORED: str = "Restored original execution plan after delegate application failure."


def read(*lines: str) -> DelegateLog:
    """What lines say; each must be one that is picked out of a log."""
    assert delegate_lines("\n".join(lines)) == lines
    return read_delegate_log(lines)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Replacing 31 out of 31 node(s) with delegate (TfLiteGpuDelegateV2) node, yielding 1 partitions.",
            TakenNodes("TfLiteGpuDelegateV2", 31, 31, 1, 1),
        ),
        (
            "Replacing 31 out of 40 node(s) with delegate (TfLiteNnapiDelegate) node, yielding 3 partitions for the "
            "whole graph.",
            TakenNodes("TfLiteNnapiDelegate", 31, 40, 3),
        ),
        (GPU_TAKES, TakenNodes("TfLiteGpuDelegateV2", 63, 64, 2, subgraph=0)),
        (
            "Replacing 2 out of 9 node(s) with delegate (TfLiteXNNPackDelegate) node, yielding 1 partitions for "
            "subgraph 12 (body).",
            TakenNodes("TfLiteXNNPackDelegate", 2, 9, 1, 1, 12),
        ),
        (
            "Replacing 136 node(s) with delegate (TfLiteHexagonDelegate) node, yielding 5 partitions.",
            TakenNodes("TfLiteHexagonDelegate", 136, None, 5),
        ),
        (
            "Replacing 518 out of 518 node(s) with delegate (TfLiteQnnDelegate) node",
            TakenNodes("TfLiteQnnDelegate", 518, 518),
        ),
        (
            "TfLiteHexagonDelegate delegate: 136 nodes delegated out of 139 nodes with 2 partitions.",
            TakenNodes("TfLiteHexagonDelegate", 136, 139, kernels=2, announced=True),
        ),
        ("Hexagon delegate: 95 nodes delegated out of 96 nodes.", TakenNodes("Hexagon", 95, 96, announced=True)),
        (
            "CoreML delegate: 64 nodes delegated out of 66 nodes, with 2 partitions.",
            TakenNodes("CoreML", 64, 66, kernels=2, announced=True),
        ),
        (
            "EthosuDelegate: 1 nodes delegated out of 1 nodes with 1 partitions.",
            TakenNodes("EthosuDelegate", 1, 1, kernels=1, announced=True),
        ),
        (
            "[Qnn Delegate] QNN delegate: 47 nodes delegated out of 47 nodes with 1 partitions.",
            TakenNodes("QNN", 47, 47, kernels=1, announced=True),
        ),
    ],
)
def test_a_line_about_nodes(line: str, expected: TakenNodes) -> None:
    found = read(line)
    assert (found.taken, found.created, found.refuted) == ((expected,), (), ())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Created TensorFlow Lite delegate for GPU.", "GPU"),
        ("Created TensorFlow Lite delegate for Metal.", "GPU"),
        ("Created TensorFlow Lite delegate for Hexagon.", "Hexagon"),
        ("Created TensorFlow Lite delegate for select TF ops.", "Flex"),
        ("Created TensorFlow Lite XNNPACK delegate for CPU.", "XNNPACK"),
        ("GPU delegate created.", "GPU"),
        ("STABLE_DELEGATE delegate created.", "STABLE_DELEGATE"),
    ],
)
def test_to_be_created_proves_nothing(line: str, expected: str) -> None:
    found = read(line)
    assert (found.created, found.taken, found.refuted) == ((expected,), (), ())
    assert undelegated(found, [expected]) == {
        expected: "no line of the log says that it took nodes, only that it was created"
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Explicitly applied GPU delegate, and the model graph will be completely executed by the delegate.",
            AppliedDelegate("GPU", "full", None),
        ),
        (
            "Explicitly applied EXTERNAL delegate, and the model graph will be partially executed by the delegate w/ 3 "
            "delegate kernels.",
            AppliedDelegate("EXTERNAL", "partial", 3),
        ),
        (
            "Applied NNAPI delegate, and the model graph will be completely executed w/ the delegate.",
            AppliedDelegate("NNAPI", "full", None),
        ),
    ],
)
def test_what_benchmark_model_applied_is_proof(line: str, expected: AppliedDelegate) -> None:
    found = read(line)
    assert found.applied == (expected,)
    assert undelegated(found, [expected.delegate]) == {}


@pytest.mark.parametrize(
    ("line", "delegate"),
    [
        ("GPU acceleration is unsupported on this platform.", "GPU"),
        ("CoreML acceleration is unsupported on this platform.", "COREML"),
        (
            "Could not create Hexagon delegate: platform may not support delegate or required libraries are missing",
            "Hexagon",
        ),
        ("Hexagon Delegate is not supported.", "Hexagon"),
        ("Hexagon delegate is not supported on the platform or required libraries are missing.", "Hexagon"),
        ("GPU delegate not supported.", "GPU"),
        ("Failed to apply NNAPI delegate.", "NNAPI"),
        ("Failed to apply delegate 0", ""),
        ("Internal error: Failed to apply delegate: TfLiteGpuDelegate Init: no", ""),
        ("Internal error: Error applying delegate: no", ""),
        ("Unsupported TFLite delegate: gpuu", ""),
        ("Disallowed CPU fallback detected.", ""),
        (RESTORED, ""),
        ("Created 0 GPU delegate kernels.", "GPU"),
        ("No operations will run on the GPU, and all 65 operations will run on the CPU.", "GPU"),
        ("Couldn't load NNAPI support library from path: /data/local/tmp/sl.so", "NNAPI"),
        ("Could not find the specified NNAPI accelerator: qti-htp. Must be one of: {nnapi-reference}.", "NNAPI"),
        ("NNAPI accelerator name (Android 10+): [nnapi-reference]", "NNAPI"),
        ("NNAPI accelerators available: [nnapi-reference]", "NNAPI"),
        ("ExecutionPlan::SimpleBody::finish: compilation finished successfully on nnapi-reference", "NNAPI"),
        ("ModelBuilder::partitionTheWork: only one best device: 1 = CPU", "NNAPI"),
        (
            "Though XNNPACK delegate is explicitly applied, the model graph will not be executed by the delegate.",
            "XNNPACK",
        ),
        ("Though GPU delegate is applied, the model graph will not be executed w/ the delegate.", "GPU"),
        ("Unable to load external delegate from : /data/a.so (dlopen failed: no such file)", "EXTERNAL"),
        ("Invalid TFLiteSettings for the stable delegate.", "STABLE_DELEGATE"),
        (
            "Failed to load stable ABI delegate from stable ABI delegate binary (/data/a.so).",
            "STABLE_DELEGATE",
        ),
        ("Falling back to CPU.", ""),
        ("GPU failed, will fall back to the XNNPACK delegate", ""),
    ],
)
def test_a_line_that_refutes(line: str, delegate: str) -> None:
    found = read(line)
    assert found.refuted == (Refutation(delegate, line),)
    asked = delegate or "GPU"
    assert undelegated(found, [asked]) == {asked: f'the log says "{line}"'}


@pytest.mark.parametrize(
    "line",
    [
        "Falling back to OpenGL",
        "Initialized OpenCL-based API.",
        "Initialized OpenGL-based API.",
        "Loaded OpenCL library with dlopen.",
        "Created 2 GPU delegate kernels.",
        "Going to apply 2 delegates one after another.",
        "Applied GPU delegate.",
        "NNAPI accelerators available: [google-edgetpu,nnapi-reference]",
        "NNAPI accelerator name: [google-edgetpu]",
        "Following operations are not supported by GPU delegate:",
        "Next operations are not supported by GPU delegate:",
        "63 operations will run on the GPU, and the remaining 1 operations will run on the CPU.",
        "First 63 operations will run on the GPU, and the remaining 1 on the CPU.",
        "The GPU delegate compile options are only supported on Android or iOS platforms or when the tool was built "
        "with -DCL_DELEGATE_NO_GL.",
    ],
)
def test_a_line_that_is_kept_and_decides_nothing(line: str) -> None:
    assert read(line).refuted == ()
    assert undelegated(read(line, GPU_TAKES), ["GPU"]) == {}
    assert undelegated(read(line), ["GPU"]) == {"GPU": "no line of the log says that it took nodes"}


@pytest.mark.parametrize(
    "cause",
    [
        'Can not open OpenCL library on this device - dlopen failed: library "libOpenCL.so" not found',
        "Failed to open OpenCL library: UNKNOWN: Can not open OpenCL library on this device",
        "OpenCL library not loaded - dlopen failed",
        "No GPU detected.",
        "TfLiteGpuDelegate Init: FULLY_CONNECTED: Amount of input data should match weights width",
        "NN API returned error ANEURALNETWORKS_OP_FAILED at line 3779 while completing NNAPI compilation.",
        'Failed to load libhexagon_interface.so, Error: dlopen failed: library "libhexagon_interface.so" not found',
        "Failed to fetch Hexagon NN version. This might be because you're using incompatible versions.",
        "hexagon_nn_config failed. Error: -1",
        "Delegate kernel was not initialized",
        "Node number 125 (TfLiteHexagonDelegate) failed to prepare.",
    ],
)
def test_the_cause_is_quoted_with_what_it_led_to(cause: str) -> None:
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
