"""NPU: accelerators of several vendors behind LiteRT's dispatch libraries."""

from collections.abc import Mapping
from typing import Final

from evaltools.delegates.npu_flags import FLAGS, FLAGS_OF, NOT_EMULATED, NOT_IN_PYTHON, check_vendor_flags
from evaltools.delegates.provider import COMPILED, EMULATED, ONLY_COMPILED, Delegate
from evaltools.errors import UsageError
from evaltools.parameter import Parameter, Value

EMULATED_VENDORS: Final = ("qualcomm",)
_PLATFORM: Final = "ai-edge-litert's CompiledModel"
_NEEDS_EMULATOR: Final = (
    "a chip is emulated by --runtime=emulated, which needs pip install 'evaltools[npu-qualcomm]' (x86-64 Linux, "
    "Python 3.11 to 3.13)"
)
_NOT_EMULATED: Final = {
    **NOT_EMULATED,
    "dispatch_library_path": "it is for the chip itself; an emulated one has no dispatch library",
}
_NO_CHIP: Final = {
    flag.name: f"only chips of {', '.join(EMULATED_VENDORS)} can be emulated"
    for vendor, flags in FLAGS_OF.items()
    if vendor not in EMULATED_VENDORS
    for flag in flags
}


def _check(values: Mapping[str, Value]) -> None:
    if not values.get("npu_vendor"):
        raise UsageError(f"--use_npu=true needs --npu_vendor; use one of {', '.join(FLAGS_OF)}")
    if values.get("npu_soc") and values["npu_vendor"] not in EMULATED_VENDORS:
        raise UsageError(
            f"--npu_soc={values['npu_soc']} --npu_vendor={values['npu_vendor']}: only chips of "
            f"{', '.join(EMULATED_VENDORS)} can be emulated; leave --npu_soc out, or say --npu_vendor=qualcomm"
        )
    check_vendor_flags(str(values["npu_vendor"]), values)
    if values.get("npu_soc"):
        _refuse_what_no_emulator_has(values)


def _refuse_what_no_emulator_has(values: Mapping[str, Value]) -> None:
    for name, reason in _NOT_EMULATED.items():
        default = FLAGS[name].default if name in FLAGS else ""
        if values.get(name, default) != default:
            raise UsageError(f"--{name} has no effect on an emulated chip: {reason}; leave it out")


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
            choices=("", *FLAGS_OF),
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "npu_soc",
            "Emulate the NPU of this chip here, as SM8750: compiled by its vendor's compiler, run by its vendor's "
            "emulator, without latencies.",
            platforms="x86-64 Linux with evaltools[npu-qualcomm]",
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "dispatch_library_path",
            "Folder of the dispatch library; without it, the one of the ai-edge-litert wheel.",
            platforms=_PLATFORM,
            role="machine_path",
            not_native=ONLY_COMPILED,
        ),
        Parameter(
            "compiler_plugin_library_path",
            "Folder of the compiler plug-in; without it, the one of the ai-edge-litert wheel.",
            platforms=_PLATFORM,
            role="machine_path",
            not_native=ONLY_COMPILED,
        ),
        *(flag.parameter() for flag in FLAGS.values()),
    ),
    works_in="ai-edge-litert (--runtime=compiled), and emulated (--npu_soc)",
    here="Qualcomm's, where its SDK is for this machine; the NPU of a phone only emulated (--npu_soc)",
    runtimes={
        COMPILED: {**NOT_IN_PYTHON, "npu_soc": _NEEDS_EMULATOR},
        EMULATED: _NO_CHIP,
    },
    check=_check,
    per_worker_flag="npu_soc",
)
