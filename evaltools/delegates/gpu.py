"""GPU: OpenCL or OpenGL on Android, Metal on Apple devices; WebGPU (Vulkan, Metal, D3D12) in ai-edge-litert."""

from typing import Final

from evaltools.delegates.provider import COMPILED, ONLY_COMPILED, Delegate
from evaltools.parameter import Parameter

_BOTH: Final = "Android, Apple, or native builds with CL_DELEGATE_NO_GL"
_ANDROID: Final = "Android, or native builds with CL_DELEGATE_NO_GL"
_APPLE: Final = "iPhone and Apple-silicon Mac"
_COMPILED: Final = "ai-edge-litert's CompiledModel"
_NO_EQUIVALENT: Final = "its WebGPU accelerator has nothing of the kind; the native tools on a device have it"
_NOT_HONOURED: Final = {
    "gpu_experimental_enable_quant": "its WebGPU accelerator always takes quantised models",
    "gpu_inference_for_sustained_speed": _NO_EQUIVALENT,
    "gpu_backend": "its accelerator is WebGPU, neither OpenCL nor OpenGL",
    "gpu_wait_type": _NO_EQUIVALENT,
    "max_delegated_partitions": _NO_EQUIVALENT,
    "first_delegate_node_index": _NO_EQUIVALENT,
    "last_delegate_node_index": _NO_EQUIVALENT,
    "gpu_invoke_loop_times": _NO_EQUIVALENT,
    "delegate_serialize_dir": "the Python package does not pass a folder for compiled shaders on",
    "delegate_serialize_token": "the Python package does not pass a folder for compiled shaders on",
}

GPU: Final = Delegate(
    name="GPU",
    key="gpu",
    enabled_by="use_gpu",
    parameters=(
        Parameter("use_gpu", "Apply the GPU delegate.", default=False, log="Use gpu"),
        Parameter(
            "gpu_precision_loss_allowed",
            "Allow fp16 instead of fp32.",
            default=True,
            platforms=_BOTH,
            log="Allow lower precision in gpu",
        ),
        Parameter(
            "gpu_experimental_enable_quant",
            "Run quantised models. false has no effect on Android.",
            default=True,
            platforms=_BOTH,
            log="Enable running quant models in gpu",
        ),
        Parameter(
            "gpu_inference_for_sustained_speed",
            "Prefer sustained throughput over the fastest single answer.",
            default=False,
            platforms=_ANDROID,
            log="Prefer maximizing the throughput in gpu",
        ),
        Parameter(
            "gpu_backend",
            "cl (OpenCL) or gl (OpenGL).",
            platforms=_ANDROID,
            choices=("", "cl", "gl"),
            log="GPU backend",
        ),
        Parameter(
            "gpu_wait_type",
            "How to wait for the GPU.",
            platforms=_APPLE,
            choices=("", "passive", "active", "do_not_wait", "aggressive"),
            log="GPU delegate wait type",
        ),
        Parameter(
            "gpu_infinite_float_capping",
            "Replace infinite values by the largest finite ones.",
            default=False,
            platforms=_COMPILED,
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "gpu_allow_src_quantized_fc_conv_ops",
            "Keep quantised sources of FULLY_CONNECTED and CONV_2D instead of dequantising them.",
            default=False,
            platforms=_COMPILED,
            not_native=ONLY_COMPILED,
        ),
    ),
    works_in="ai-edge-litert (--runtime=compiled), and the native tools on Android and Apple devices",
    here="WebGPU; neither Android's OpenCL or OpenGL delegate nor Apple's Metal delegate",
    runtimes={COMPILED: _NOT_HONOURED},
    common=frozenset(
        {
            "max_delegated_partitions",
            "first_delegate_node_index",
            "last_delegate_node_index",
            "gpu_invoke_loop_times",
            "delegate_serialize_dir",
            "delegate_serialize_token",
        }
    ),
)
