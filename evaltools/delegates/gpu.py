"""GPU: OpenCL or OpenGL on Android, Metal on Apple devices."""

from typing import Final

from evaltools.delegates.provider import Delegate
from evaltools.parameter import Parameter

_BOTH: Final = "Android, Apple, or native builds with CL_DELEGATE_NO_GL"
_ANDROID: Final = "Android, or native builds with CL_DELEGATE_NO_GL"
_APPLE: Final = "iPhone and Apple-silicon Mac"

GPU: Final = Delegate(
    name="GPU",
    key="gpu",
    enabled_by="use_gpu",
    parameters=(
        Parameter("use_gpu", "bool", False, "Apply the GPU delegate."),
        Parameter("gpu_precision_loss_allowed", "bool", True, "Allow fp16 instead of fp32.", _BOTH),
        Parameter(
            "gpu_experimental_enable_quant",
            "bool",
            True,
            "Run quantised models. false has no effect on Android.",
            _BOTH,
        ),
        Parameter(
            "gpu_inference_for_sustained_speed",
            "bool",
            False,
            "Prefer sustained throughput over the fastest single answer.",
            _ANDROID,
        ),
        Parameter("gpu_backend", "string", "", "cl (OpenCL) or gl (OpenGL).", _ANDROID, ("", "cl", "gl")),
        Parameter(
            "gpu_wait_type",
            "string",
            "",
            "How to wait for the GPU.",
            _APPLE,
            ("", "passive", "active", "do_not_wait", "aggressive"),
        ),
    ),
    works_in="the native tools on Android and Apple devices, or built with CL_DELEGATE_NO_GL",
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
