"""XNNPACK: optimised CPU kernels, for float models and (in ai-edge-litert) quantised ones."""

from typing import Final

from evaltools.delegates.provider import COMPILED, LITERT, TFLITE_RUNTIME, Delegate
from evaltools.parameter import Parameter

_REASON: Final = "the interpreters apply XNNPACK with its default options only; --runtime=compiled can set this"
_NOT_HONOURED: Final = {
    "xnnpack_force_fp16": _REASON,
    "xnnpack_weight_cache_file_path": _REASON,
    "xnnpack_runtime_flags": _REASON,
}

XNNPACK: Final = Delegate(
    name="XNNPACK",
    key="xnnpack",
    enabled_by="use_xnnpack",
    parameters=(
        Parameter(
            "use_xnnpack",
            "bool",
            False,
            "true: XNNPACK must run. false: XNNPACK is kept out. Not given: the runtime decides.",
            "all but s390x",
            log="Use xnnpack",
        ),
        Parameter(
            "xnnpack_force_fp16",
            "bool",
            False,
            "Compute float models in fp16.",
            "all but s390x",
            log="xnnpack_force_fp16",
        ),
        Parameter(
            "xnnpack_weight_cache_file_path",
            "string",
            "",
            "File that keeps packed weights between runs.",
            "all but s390x",
            log="xnnpack_weight_cache_file_path",
            role="machine_path",
        ),
        Parameter(
            "xnnpack_runtime_flags",
            "int32",
            0,
            "Extra flags for XNNPACK, passed on as given.",
            "all but s390x",
            log="Extra flags for XNNPACK runtime",
        ),
    ),
    works_in="tflite_runtime (float models) and ai-edge-litert (float and quantised models)",
    runtimes={LITERT: _NOT_HONOURED, TFLITE_RUNTIME: _NOT_HONOURED, COMPILED: {}},
    owns_device=False,
)
