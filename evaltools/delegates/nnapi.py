"""NNAPI: Android's own interface to accelerators."""

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
