"""What ai-edge-litert 2.3.0 prints while it compiles, as it was seen."""

from __future__ import annotations

import pytest

from evaltools.runtime.compiled.messages import (
    AcceleratorShare,
    Device,
    doubts,
    first_error,
    gpu_device,
    gpu_share,
    npu_device,
    npu_share,
)

GPU = """\
INFO: [delegate_webgpu.cc:342] Create WebGPU environment (use_low_power=0, enable_host_mapped_pointer=1)
Warning: maxDynamicStorageBuffersPerPipelineLayout artificially reduced from 1000000 to 16
I0000 00:00:1795316383.471345   13116 environment.cc:532] Selected adapter: {adapter}
ERROR: Following operations are not supported by GPU delegate:
SQUEEZE: Operation is not supported.
CUSTOM TFLite_Detection_PostProcess: TFLite_Detection_PostProcess
29 operations will run on the GPU, and the remaining 2 operations will run on the CPU.
I0000 00:00:1795316313.922562   13006 delegate_kernel.cc:984] Initializing WebGPU-based API from graph.
"""
SOFTWARE = "llvmpipe (LLVM 15.0.6, 256 bits), arch=software, vendor=mesa, backend=Vulkan, adapterType=CPU / Software"
HARDWARE = "Some GPU 9, arch=nine, vendor=some, backend=Vulkan, adapterType=Discrete GPU"
NPU = """\
INFO: [compiler.cc:742] Partitioned subgraph<0>, selected 63 ops, from a total of 64 ops. resulted in 2 partitions.
INFO: [openvino_compile_context.cc:77] Using Intel OpenVINO device: NPU
INFO: [invocation_context.cc:293] Using Intel OpenVINO device: {device}
"""
NO_ADAPTER = """\
WARNING: Logging before InitGoogle() is written to STDERR
ERROR: [delegate_webgpu.cc:359] Failed to initialize WebGPU environment: INTERNAL: No adapters found
E0000 00:00:1795316288.225031   12961 delegate_webgpu.cc:736] Failed to get or create delegate WebGPU environment
"""


def test_what_the_gpu_took_and_why_it_did_not_take_the_rest() -> None:
    refused = {
        "SQUEEZE": "Operation is not supported.",
        "CUSTOM TFLite_Detection_PostProcess": "TFLite_Detection_PostProcess",
    }
    assert gpu_share(GPU, 31) == AcceleratorShare(29, 31, 1, refused)
    assert gpu_share("nothing of the kind", 31) is None
    assert gpu_share(GPU, 30) is None, "it speaks of another graph"


STARTED = "I0000 00:00:1795316313.922562   13006 delegate_kernel.cc:984] Initializing WebGPU-based API from graph.\n"


def said(taken: int, total: int) -> str:
    """What is printed of a graph."""
    if taken == total:
        return STARTED
    words = (
        f"{taken} operations will run on the GPU, and the remaining {total - taken} operations will run on the CPU.\n"
        if taken
        else f"No operations will run on the GPU, and all {total} operations will run on the CPU.\n"
    )
    refused = "ERROR: Following operations are not supported by GPU delegate:\nABS: Operation is not supported.\n"
    return refused + words + (STARTED if taken else "")


@pytest.mark.parametrize("taken", [0, 3, 4])
def test_a_graph_is_taken_in_part_as_a_whole_or_not_at_all(taken: int) -> None:
    found = gpu_share(said(taken, 4), 4)
    assert found is not None
    assert (found.operations, found.total, found.partitions) == (taken, 4, min(1, taken))
    assert found.refused == ({} if taken == 4 else {"ABS": "Operation is not supported."})


@pytest.mark.parametrize("printed", [said(3, 5), said(3, 4).removesuffix(STARTED), ""])
def test_words_about_another_graph_or_of_no_beginning_prove_nothing(printed: str) -> None:
    assert gpu_share(printed, 4) is None


def test_a_software_adapter_is_the_cpu_and_another_is_not() -> None:
    assert gpu_device(GPU.format(adapter=SOFTWARE)) == Device("llvmpipe (LLVM 15.0.6, 256 bits)", True)
    assert gpu_device(GPU.format(adapter=HARDWARE)) == Device("Some GPU 9", False)
    assert gpu_device(NO_ADAPTER) is None


def test_what_the_compiler_of_an_npu_selected_and_where_it_runs() -> None:
    assert npu_share(NPU, 0, 64) == AcceleratorShare(63, 64, 2)
    assert npu_device(NPU.format(device="CPU")) == Device("Intel OpenVINO device: CPU", True)
    assert npu_device(NPU.format(device="NPU")) == Device("Intel OpenVINO device: NPU", False)
    assert npu_device(NPU.splitlines()[1]) is None, "that is what was compiled for"


def test_of_several_graphs_the_compiler_of_an_npu_names_the_number() -> None:
    second = NPU.splitlines()[0].replace("<0>, selected 63", "<1>, selected 10")
    printed = f"{NPU}{second}\n"
    assert npu_share(printed, 0, 64) == AcceleratorShare(63, 64, 2)
    assert npu_share(printed, 1, 64) == AcceleratorShare(10, 64, 2)
    assert npu_share(printed, 1, 5) is None, "it speaks of another graph"
    assert npu_share(NPU, 1, 64) is None


def test_the_first_error_is_quoted_without_its_place() -> None:
    assert first_error(NO_ADAPTER) == "Failed to initialize WebGPU environment: INTERNAL: No adapters found"
    assert first_error(NO_ADAPTER.splitlines()[2]) == "Failed to get or create delegate WebGPU environment"
    assert first_error(GPU) == ""


def test_an_error_of_several_lines_is_quoted_as_a_whole() -> None:
    printed = (
        "ERROR: [plugin.cc:714] Exception in compilation: Exception from core.cpp:117:\nException from plugin.cpp:54:\n"
        "Unsupported option zzz\n\nINFO: [compiled_model.cc:1397] 0 compiler plugins were applied\n"
    )
    assert first_error(printed) == (
        "Exception in compilation: Exception from core.cpp:117: Exception from plugin.cpp:54: Unsupported option zzz"
    )


def test_a_heading_above_the_errors_of_others_is_not_the_error() -> None:
    printed = (
        "ERROR: [compiled_model.cc:1400] Plugin errs: IntelOpenVINO compiler plugin (ver 0.1.0) ERROR: [x.cc:81]\n"
        "ERROR: Encountered unresolved custom op: fake-op-double.\nSee instructions.\n"
        "ERROR: Node number 0 (fake-op-double) failed to prepare.\n"
    )
    assert first_error(printed) == "Encountered unresolved custom op: fake-op-double. See instructions."
    assert first_error(printed.splitlines()[0]).startswith("Plugin errs: IntelOpenVINO")


def test_outputs_of_another_shape_than_the_models_put_results_in_doubt() -> None:
    mismatch = (
        "Shape mismatch in GpuModelBuilder::UpdateOutputTensors(output of fully_connected_int8). Requested "
        "shape:{bhwdc, {1, 1, 1, 1, 8}} vs reference shape: {bhwdc, {1, 4, 4, 1, 8}}"
    )
    line = f"W0000 00:00:1795577550.656998   10262 gpu_model_builder.cc:3901] {mismatch}\n"
    assert doubts(GPU.format(adapter=SOFTWARE) + line + line) == (mismatch,)
    assert doubts(GPU.format(adapter=SOFTWARE)) == ()
