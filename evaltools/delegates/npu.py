"""NPU: accelerators of several vendors behind LiteRT's dispatch libraries."""

from collections.abc import Mapping
from typing import Final

from evaltools.delegates.option_text import parse_options
from evaltools.delegates.provider import COMPILED, ONLY_COMPILED, Delegate
from evaltools.errors import UsageError
from evaltools.parameter import Parameter, Value

VENDORS: Final = ("intel_openvino", "qualcomm", "mediatek", "google_tensor", "samsung")
_PLATFORM: Final = "ai-edge-litert's CompiledModel"


def _check(values: Mapping[str, Value]) -> None:
    if not values.get("npu_vendor"):
        raise UsageError(f"--use_npu=true needs --npu_vendor; use one of {', '.join(VENDORS)}")
    parse_options("npu_options", str(values.get("npu_options", "")))


NPU: Final = Delegate(
    name="NPU",
    key="npu",
    enabled_by="use_npu",
    parameters=(
        Parameter(
            "use_npu",
            "Run on an NPU, through its vendor's dispatch library.",
            default=False,
            platforms=_PLATFORM,
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "npu_vendor",
            "Whose dispatch library.",
            platforms=_PLATFORM,
            choices=("", *VENDORS),
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "npu_options",
            'Options for it, key1:value1;key2:"value with : or ;".',
            platforms=_PLATFORM,
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "npu_dispatch_library_dir",
            "Folder of the dispatch library; without it, the one of the ai-edge-litert wheel.",
            platforms=_PLATFORM,
            role="machine_path",
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "npu_compiler_plugin_dir",
            "Folder of the compiler plug-in; without it, the one of the ai-edge-litert wheel.",
            platforms=_PLATFORM,
            role="machine_path",
            not_native=ONLY_COMPILED,
        ),
    ),
    works_in="ai-edge-litert (--runtime=compiled)",
    here="the vendor's library for this machine, as OpenVINO; not the NPU of a phone",
    runtimes={COMPILED: {}},
    check=_check,
)
