"""Delegates that only the native tools can create: NNAPI, Hexagon, Core ML, stable delegates and YNNPACK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from evaltools.delegates.provider import Delegate
from evaltools.parameter import Parameter, Value

CPU_DEVICES: Final = frozenset({"nnapi-reference", "CPU"})
"""What NNAPI calls the CPU."""
_ALL_BUT_WINDOWS: Final = "all but Windows; does something on Android"

NNAPI: Final = Delegate(
    name="NNAPI",
    key="nnapi",
    enabled_by="use_nnapi",
    parameters=(
        Parameter("use_nnapi", "Apply the NNAPI delegate.", default=False, platforms=_ALL_BUT_WINDOWS, log="Use NNAPI"),
        Parameter(
            "nnapi_execution_preference",
            "What to optimise for.",
            platforms=_ALL_BUT_WINDOWS,
            choices=("", "low_power", "fast_single_answer", "sustained_speed", "undefined"),
            log="NNAPI execution preference",
        ),
        Parameter(
            "nnapi_execution_priority",
            "Priority among the device's jobs (Android 11 and later).",
            platforms=_ALL_BUT_WINDOWS,
            choices=("", "default", "low", "medium", "high"),
            log="Model execution priority in nnapi (Android 11+)",
        ),
        Parameter(
            "nnapi_accelerator_name",
            "Accelerator to use (Android 10 and later); disable_nnapi_cpu is then not forwarded.",
            platforms=_ALL_BUT_WINDOWS,
            log="NNAPI accelerator name (Android 10+)",
        ),
        Parameter(
            "disable_nnapi_cpu",
            "Keep NNAPI from using its own CPU kernels.",
            default=True,
            platforms=_ALL_BUT_WINDOWS,
            log="Disable NNAPI cpu",
        ),
        Parameter(
            "nnapi_allow_fp16",
            "Allow fp16 instead of fp32.",
            default=False,
            platforms=_ALL_BUT_WINDOWS,
            log="Allow fp16 in NNAPI",
        ),
        Parameter(
            "nnapi_allow_dynamic_dimensions",
            "Allow dynamic dimensions (Android 9 and later).",
            default=False,
            platforms=_ALL_BUT_WINDOWS,
            log="Allow dynamic dimensions in NNAPI (Android 9+)",
        ),
        Parameter(
            "nnapi_use_burst_mode",
            "Use burst mode.",
            default=False,
            platforms=_ALL_BUT_WINDOWS,
            log="Use burst mode in NNAPI",
        ),
        Parameter(
            "nnapi_support_library_path",
            "NNAPI support library; nnapi_accelerator_name must then name one of its devices.",
            platforms=_ALL_BUT_WINDOWS,
            role="machine_path",
        ),
    ),
    works_in="the native tools on Android",
    common=frozenset({"max_delegated_partitions", "delegate_serialize_dir", "delegate_serialize_token"}),
)


def nnapi_may_use_cpu(options: Mapping[str, Value]) -> bool:
    """Whether NNAPI may use its own CPU with these options; an accelerator's name outweighs the other one.

    >>> nnapi_may_use_cpu({"disable_nnapi_cpu": False}), nnapi_may_use_cpu({"nnapi_accelerator_name": "qti-dsp"})
    (True, False)
    """
    accelerator = options.get("nnapi_accelerator_name")
    return accelerator in CPU_DEVICES if accelerator else options.get("disable_nnapi_cpu") is False


_HEXAGON_PLATFORMS: Final = "ARM builds with TFLITE_ENABLE_HEXAGON"

HEXAGON: Final = Delegate(
    name="Hexagon",
    key="hexagon",
    enabled_by="use_hexagon",
    parameters=(
        Parameter(
            "use_hexagon", "Apply the Hexagon delegate.", default=False, platforms=_HEXAGON_PLATFORMS, log="Use Hexagon"
        ),
        Parameter(
            "hexagon_lib_path",
            "Folder of libhexagon_nn_skel*.so; libhexagon_interface.so must be on the loader's path.",
            default="/data/local/tmp",
            platforms=_HEXAGON_PLATFORMS,
            log="Hexagon lib path",
            role="machine_path",
        ),
        Parameter(
            "hexagon_profiling",
            "Profile in cycles; shown with operator profiling.",
            default=False,
            platforms=_HEXAGON_PLATFORMS,
            log="Hexagon profiling",
        ),
    ),
    works_in="the native tools on Android phones with a Qualcomm Hexagon DSP",
    common=frozenset({"max_delegated_partitions", "min_nodes_per_partition"}),
)


_COREML_PLATFORMS: Final = "iPhone and Apple-silicon Mac"

COREML: Final = Delegate(
    name="COREML",
    key="coreml",
    enabled_by="use_coreml",
    parameters=(
        Parameter(
            "use_coreml", "Apply the Core ML delegate.", default=False, platforms=_COREML_PLATFORMS, log="Use CoreML"
        ),
        Parameter(
            "coreml_version",
            "Core ML version; 0 means the newest.",
            default=0,
            platforms=_COREML_PLATFORMS,
            choices=(0, 2, 3),
            log="CoreML version",
        ),
    ),
    works_in="the native tools on iPhones and Apple-silicon Macs",
    common=frozenset(
        {
            "max_delegated_partitions",
            "min_nodes_per_partition",
            "first_delegate_node_index",
            "last_delegate_node_index",
        }
    ),
)


STABLE: Final = Delegate(
    name="STABLE_DELEGATE",
    key="",
    enabled_by="stable_delegate_settings_file",
    parameters=(
        Parameter(
            "stable_delegate_settings_file",
            "JSON file (TFLiteSettings) with stable_delegate_loader_settings.delegate_path; a path switches it on.",
            platforms="all but Windows",
            log="Delegate settings file path",
            role="settings_file",
        ),
    ),
    works_in="the native tools (the Python interpreters cannot load stable-ABI delegates)",
)


_YNNPACK_PLATFORMS: Final = "LiteRT"

YNNPACK: Final = Delegate(
    name="YNNPACK",
    key="",
    enabled_by="use_ynnpack",
    parameters=(
        Parameter(
            "use_ynnpack", "Apply the YNNPACK delegate.", default=False, platforms=_YNNPACK_PLATFORMS, log="Use ynnpack"
        ),
        Parameter(
            "ynnpack_static_shape",
            "Assume that shapes do not change.",
            default=False,
            platforms=_YNNPACK_PLATFORMS,
            log="YNNPACK static shape",
        ),
        Parameter(
            "ynnpack_fast_math",
            "Allow faster, less exact arithmetic.",
            default=False,
            platforms=_YNNPACK_PLATFORMS,
            log="YNNPACK fast math",
        ),
        Parameter(
            "ynnpack_consistent_arithmetic",
            "Same arithmetic on every processor.",
            default=False,
            platforms=_YNNPACK_PLATFORMS,
            log="YNNPACK consistent arithmetic",
        ),
        Parameter(
            "ynnpack_no_excess_precision",
            "Round every intermediate to the tensor's type.",
            default=False,
            platforms=_YNNPACK_PLATFORMS,
            log="YNNPACK no excess precision",
        ),
    ),
    works_in="native LiteRT tools built with YNNPACK",
    owns_device=False,
)
