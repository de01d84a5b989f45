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
            "true: XNNPACK must run. false: XNNPACK is kept out. Not given, the runtime decides.",
            default=False,
            platforms="all but s390x",
            log="Use xnnpack",
            given_counts=True,
        ),
        Parameter(
            "xnnpack_force_fp16",
            "Compute float models in fp16.",
            default=False,
            platforms="all but s390x",
            log="xnnpack_force_fp16",
        ),
        Parameter(
            "xnnpack_weight_cache_file_path",
            "File that keeps packed weights between runs.",
            platforms="all but s390x",
            log="xnnpack_weight_cache_file_path",
            role="machine_path",
        ),
        Parameter(
            "xnnpack_runtime_flags",
            "Extra flags for XNNPACK, passed on as given.",
            default=0,
            platforms="all but s390x",
            log="Extra flags for XNNPACK runtime",
        ),
    ),
    works_in="tflite_runtime (float models) and ai-edge-litert (float and quantised models)",
    here="the same library as on phones, which have other instructions: last digits and times differ there",
    runtimes={LITERT: _NOT_HONOURED, TFLITE_RUNTIME: _NOT_HONOURED, COMPILED: {}},
    owns_device=False,
)
