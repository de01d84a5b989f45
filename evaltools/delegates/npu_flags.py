"""The flags of each vendor of NPUs, with the names and defaults that they have in LiteRT's own tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter, Role, Value

_TOOLS: Final = "LiteRT's own tools"
_TOOLS_AND_COMPILED: Final = f"{_TOOLS}, ai-edge-litert's CompiledModel"
_NOT_NATIVE: Final = NotNative("only LiteRT's own tools and ai-edge-litert have it")
_BACKENDS: Final = re.compile(r"(cpu|gpu|npu)|\d+:(cpu|gpu|npu)(;\d+:(cpu|gpu|npu))*")
_IDS: Final = re.compile(r"-1|\d{1,9}(,\d{1,9})*")


class VendorFlag(Struct, frozen=True):
    """A flag of one vendor, after whom its name begins.

    ``choices`` are the texts that LiteRT's tools accept (empty: any). ``field`` is what ai-edge-litert's options for
    Python call it; empty where they lack it.
    """

    name: str
    help: str
    default: Value = ""
    choices: tuple[str, ...] = ()
    field: str = ""
    role: Role = "plain"

    def parameter(self) -> Parameter:
        """The flag as every other flag of a delegate is declared."""
        platforms = _TOOLS_AND_COMPILED if self.field else _TOOLS
        return Parameter(
            self.name,
            self.help,
            self.default,
            platforms,
            self.choices,
            role=self.role,
            not_native=_NOT_NATIVE,
        )


_MODES_OF_DSP: Final = (
    *("default", "sustained_high_performance", "burst", "high_performance", "power_saver", "low_power_saver"),
    *("high_power_saver", "low_balanced", "balanced"),
)
_PD_SESSIONS: Final = ("unsigned", "signed", "adaptive")
_PERF_CTRL_MODES: Final = ("manual", "auto")

QUALCOMM: Final = (
    VendorFlag(
        "qualcomm_backend",
        "Backend of QNN.",
        "htp",
        ("gpu", "htp", "dsp", "ir", "lpai"),
        field="backend",
    ),
    VendorFlag(
        "qualcomm_optimization_level",
        "How QNN optimises: O1 for inference, O2 for a short preparation, O3 harder for inference.",
        "O3",
        ("O1", "O2", "O3"),
        field="optimization_level",
    ),
    VendorFlag(
        "qualcomm_graph_priority",
        "Priority of a graph among others; default is normal.",
        "default",
        ("default", "low", "normal", "normal_high", "high"),
        field="graph_priority",
    ),
    VendorFlag(
        "qualcomm_graph_io_tensor_mem_type",
        "Memory of a graph's inputs and outputs.",
        "memhandle",
        ("raw", "memhandle"),
        field="graph_io_tensor_mem_type",
    ),
    VendorFlag("qualcomm_graph_transform", "Transformations of the graph to apply, NAME,NAME."),
    VendorFlag(
        "qualcomm_enable_just_in_time", "Hand what is compiled on in memory, without writing it as a file.", False
    ),
    VendorFlag(
        "qualcomm_enable_weight_sharing",
        "Let graphs share weights; phones do not support it.",
        False,
        field="enable_weight_sharing",
    ),
    VendorFlag(
        "qualcomm_use_int64_bias_as_int32",
        "Turn int64 biases of FULLY_CONNECTED and CONV_2D into int32.",
        True,
        field="use_int64_bias_as_int32",
    ),
    VendorFlag(
        "qualcomm_use_conv_hmx",
        "Short convolutions on HMX: faster, but inexact for short depths and weights that are not symmetric.",
        True,
        field="use_conv_hmx",
    ),
    VendorFlag(
        "qualcomm_use_fold_relu",
        "Fold RELU into the convolution: faster, and right where the convolution's range lies within that of RELU.",
        True,
        field="use_fold_relu",
    ),
    VendorFlag("qualcomm_vtcm_size", "VTCM to use; 0: all that the NPU has.", 0, field="vtcm_size"),
    VendorFlag("qualcomm_num_hvx_thread", "HVX threads; 0: as many as there are.", 0, field="num_hvx_threads"),
    VendorFlag("qualcomm_htp_p_point", "A preset of the compiler, experimental, for HTP with O3.", 0),
    VendorFlag(
        "qualcomm_htp_performance_mode",
        "Clocks and power of HTP while it runs.",
        "default",
        (*_MODES_OF_DSP, "extreme_power_saver"),
        field="htp_performance_mode",
    ),
    VendorFlag(
        "qualcomm_htp_perf_ctrl_mode",
        "When HTP is asked for that mode: manual once, auto with each inference, of which one may run at a time.",
        "manual",
        _PERF_CTRL_MODES,
    ),
    VendorFlag(
        "qualcomm_htp_pd_session",
        "Process domain on HTP; adaptive: signed where unsigned is not supported.",
        "unsigned",
        _PD_SESSIONS,
    ),
    VendorFlag(
        "qualcomm_dsp_performance_mode",
        "Clocks and power of the DSP while it runs.",
        "default",
        _MODES_OF_DSP,
        field="dsp_performance_mode",
    ),
    VendorFlag(
        "qualcomm_dsp_perf_ctrl_mode",
        "When the DSP is asked for that mode: manual once, auto with each inference, of which one may run at a time.",
        "manual",
        _PERF_CTRL_MODES,
    ),
    VendorFlag(
        "qualcomm_dsp_pd_session",
        "Process domain on the DSP; adaptive: signed where unsigned is not supported.",
        "unsigned",
        _PD_SESSIONS,
    ),
    VendorFlag(
        "qualcomm_dsp_encoding",
        "Encoding of graphs on the DSP: static is faster, dynamic more exact.",
        "static",
        ("static", "dynamic"),
    ),
    VendorFlag("qualcomm_lpai_target", "What LPAI runs on.", "adsp", ("x86", "arm", "adsp", "tensilica")),
    VendorFlag("qualcomm_lpai_fps", "Inferences per second that LPAI aims at.", 1),
    VendorFlag("qualcomm_lpai_ftrt_ratio", "How much faster than real time LPAI is to run.", 10),
    VendorFlag(
        "qualcomm_lpai_client_perf_type",
        "Kind of client of LPAI.",
        "default",
        ("default", "real_time", "non_real_time"),
    ),
    VendorFlag(
        "qualcomm_lpai_core_affinity_type",
        "How firmly LPAI keeps to the cores.",
        "default",
        ("default", "soft", "hard"),
    ),
    VendorFlag("qualcomm_lpai_core_selection", "Cores of LPAI as bits: 1 is core 0, 2 core 1; 0: any.", 0),
    VendorFlag(
        "qualcomm_profiling",
        "How closely QNN profiles.",
        "off",
        ("off", "basic", "detailed", "linting", "optrace"),
        field="profiling",
    ),
    VendorFlag(
        "qualcomm_log_level",
        "What Qualcomm's libraries log.",
        "info",
        ("off", "error", "warn", "info", "verbose", "debug"),
        field="log_level",
    ),
    VendorFlag(
        "qualcomm_dump_tensor_ids",
        "Tensors to give as outputs too, for debugging, ID,ID; -1: the outputs of all operators.",
        field="dump_tensor_ids",
    ),
    VendorFlag(
        "qualcomm_custom_op_package",
        "A package of custom operators, key:value;key:value; target is the backend in capitals, as HTP.",
        "name:;interface_provider:;compile_package_path:;dispatch_package_path:;target:;",
    ),
    VendorFlag("qualcomm_qnn_lib_dir", "Folder of QNN's libraries of the CPU.", role="machine_path"),
    VendorFlag(
        "qualcomm_dsp_skel_dir",
        "Folder of the libraries that run on the DSP; without it, qualcomm_qnn_lib_dir.",
        role="machine_path",
    ),
    VendorFlag(
        "qualcomm_dlc_dir",
        "Folder for QNN's graphs in the format DLC.",
        field="dlc_dir",
        role="machine_path",
    ),
    VendorFlag("qualcomm_ir_json_dir", "Folder for QNN's graphs as JSON.", field="ir_json_dir", role="machine_path"),
    VendorFlag(
        "qualcomm_saver_output_dir",
        "Folder for a recording of all calls of QNN.",
        field="saver_output_dir",
        role="machine_path",
    ),
    VendorFlag("qualcomm_schematic_dir", "Folder for schematic.bin, which optrace reads.", role="machine_path"),
)
MEDIATEK: Final = (
    VendorFlag(
        "mediatek_sdk_version_type", "Version of the Neuron SDK.", "version8", ("version7", "version8", "version9")
    ),
    VendorFlag(
        "mediatek_performance_mode_type",
        "What the NPU is to aim at.",
        "sustained_speed",
        ("low_power", "fast_single_answer", "sustained_speed", "turbo_boost"),
    ),
    VendorFlag(
        "mediatek_optimization_hint",
        "What the compiler is to aim at.",
        "normal",
        ("normal", "low_latency", "deep_fusion", "batch_processing"),
    ),
    VendorFlag("mediatek_enable_l1_cache_optimizations", "Optimise for the L1 cache.", False),
    VendorFlag(
        "mediatek_use_get_supported_operations",
        "Ask the Neuron compiler which operators it takes; false: use the list of the plug-in.",
        True,
    ),
    VendorFlag("mediatek_aot_compilation_options", "Options for the compiler, passed on as given."),
    VendorFlag("mediatek_enable_gemma_compiler_optimizations", "Optimise for Gemma.", False),
    VendorFlag(
        "mediatek_option_bundle",
        "Bundle of the compiler's options for all graphs, in place of the two below; with those for Gemma.",
    ),
    VendorFlag(
        "mediatek_option_bundle_decode",
        "Bundle for the decoding graph, and those that do neither; with the optimisations for Gemma.",
        "gemma-decode-accuracy",
    ),
    VendorFlag(
        "mediatek_option_bundle_prefill",
        "Bundle for the graph that reads the prompt; with the optimisations for Gemma.",
        "gemma-prefill-accuracy",
    ),
    VendorFlag("mediatek_dla_dir", "Folder for all that is compiled (DLA).", role="machine_path"),
    VendorFlag("mediatek_disable_dla_dir_removal", "Keep that folder after compiling.", False),
)
GOOGLE_TENSOR: Final = (
    VendorFlag(
        "google_tensor_truncation_type",
        "What floats are cut to.",
        "auto",
        ("auto", "no_truncation", "bfloat16", "half"),
    ),
    VendorFlag("google_tensor_int64_to_int32", "Cut int64 to int32.", False),
    VendorFlag("google_tensor_enable_4bit_compilation", "Compile for 4 bits.", False),
    VendorFlag("google_tensor_enable_dynamic_range_quantization", "Compile with dynamic range quantisation.", False),
    VendorFlag("google_tensor_enable_large_model_support", "Compile large models.", False),
    VendorFlag(
        "google_tensor_sharding_intensity",
        "How finely a model is divided.",
        "unspecified",
        ("unspecified", "minimal", "moderate", "extensive", "maximum"),
    ),
    VendorFlag(
        "google_tensor_performance_mode",
        "What the NPU is to aim at.",
        "balanced",
        ("extreme_power_saver", "power_saver", "balanced", "high_performance", "sustained_performance", "burst"),
    ),
    VendorFlag("google_tensor_dump_op_timings", "Print how long operators take.", False),
    VendorFlag("google_tensor_op_filters_proto", "File of filters of operators, as text proto.", role="machine_path"),
    VendorFlag("google_tensor_extra_options", "More options for the compiler, as text proto or JSON."),
    VendorFlag("google_tensor_extra_options_path", "File of more options for the compiler.", role="machine_path"),
)
SAMSUNG: Final = (
    VendorFlag("samsung_soc_model", "Chip that is compiled for.", "E9965"),
    VendorFlag("samsung_large_model_support", "Compile large models.", False),
)
INTEL_OPENVINO: Final = (
    VendorFlag(
        "intel_openvino_graph_backends",
        "Device of OpenVINO: cpu, gpu or npu for all graphs, or INDEX:DEVICE;INDEX:DEVICE, and npu for the others.",
    ),
    VendorFlag(
        "intel_openvino_performance_mode",
        "What OpenVINO is to aim at.",
        "latency",
        ("latency", "throughput", "cumulative_throughput"),
    ),
    VendorFlag(
        "intel_openvino_configs_map",
        "Properties of OpenVINO, KEY=VALUE,KEY=VALUE, as INFERENCE_PRECISION_HINT=f32.",
    ),
    VendorFlag("intel_openvino_graph_configs_map", "Properties of single graphs, INDEX:KEY=VALUE;INDEX:KEY=VALUE."),
    VendorFlag(
        "intel_openvino_enable_weight_sharing",
        "Let graphs share weights; false: each is compiled for itself.",
        True,
    ),
)
FLAGS_OF: Final[Mapping[str, tuple[VendorFlag, ...]]] = {
    "intel_openvino": INTEL_OPENVINO,
    "qualcomm": QUALCOMM,
    "mediatek": MEDIATEK,
    "google_tensor": GOOGLE_TENSOR,
    "samsung": SAMSUNG,
}
"""The flags of each vendor, as ``npu_vendor`` names it."""
FLAGS: Final[Mapping[str, VendorFlag]] = {flag.name: flag for flags in FLAGS_OF.values() for flag in flags}
_VENDORS: Final = {flag.name: vendor for vendor, flags in FLAGS_OF.items() for flag in flags}
NOT_IN_PYTHON: Final[Mapping[str, str]] = {
    name: "ai-edge-litert's options for Python lack it; LiteRT's own tools have it"
    for name, flag in FLAGS.items()
    if not flag.field
}
"""Why CompiledModel cannot honour these."""
_OF_THE_PHONE: Final = "it is about how the phone runs what was compiled; an emulator has nothing of the kind"
_HTP_ALONE: Final = "HTP is the backend that is emulated"
_NOT_COMPILED: Final = "with it the compiler leaves no compiled graph that could be run"
NOT_EMULATED: Final[Mapping[str, str]] = {
    "qualcomm_backend": _HTP_ALONE,
    **{name: _HTP_ALONE for name in FLAGS if name.startswith(("qualcomm_dsp_", "qualcomm_lpai_"))},
    "qualcomm_dsp_skel_dir": _OF_THE_PHONE,
    "qualcomm_htp_pd_session": _OF_THE_PHONE,
    "qualcomm_htp_perf_ctrl_mode": _OF_THE_PHONE,
    "qualcomm_htp_performance_mode": _OF_THE_PHONE,
    "qualcomm_profiling": _OF_THE_PHONE,
    "qualcomm_log_level": "what the NPU takes, and why not the rest, is read from the log",
    "qualcomm_dlc_dir": _NOT_COMPILED,
    "qualcomm_enable_just_in_time": _NOT_COMPILED,
    "qualcomm_saver_output_dir": _NOT_COMPILED,
    "qualcomm_dump_tensor_ids": "the emulator runs graphs with only the outputs of the model",
}
"""Why an emulated chip cannot honour these."""


def check_vendor_flags(vendor: str, values: Mapping[str, Value]) -> None:
    """Raise :class:`UsageError` for a flag of another vendor, and for what LiteRT's tools would not understand.

    >>> check_vendor_flags("qualcomm", {"intel_openvino_graph_backends": "cpu"})
    Traceback (most recent call last):
    ...
    evaltools.errors.UsageError: --intel_openvino_graph_backends is a flag of intel_openvino, and --npu_vendor is \
    qualcomm; leave it out
    """
    for name, value in values.items():
        if name not in FLAGS:
            continue
        if _VENDORS[name] != vendor:
            raise UsageError(f"--{name} is a flag of {_VENDORS[name]}, and --npu_vendor is {vendor}; leave it out")
        if value != FLAGS[name].default:
            _check_value(name, value)


def _check_value(name: str, value: Value) -> None:
    text = str(value)
    if name == "intel_openvino_graph_backends" and not _BACKENDS.fullmatch(text):
        raise UsageError(f"--{name}={text}: use cpu, gpu or npu, or one for each graph, as 0:npu;1:cpu")
    if name == "qualcomm_dump_tensor_ids" and not _IDS.fullmatch(text):
        raise UsageError(f"--{name}={text}: use numbers of tensors, as 3,17, or -1 for the outputs of all operators")
    if name == "intel_openvino_configs_map":
        _check_properties(text)
    if isinstance(value, int) and FLAGS[name].field and value < 0:
        raise UsageError(f"--{name}={text}: use 0 or more")


def _check_properties(text: str) -> None:
    """LiteRT's tools leave out any of OpenVINO's properties that is no ``KEY=VALUE``: here that is an error."""
    pairs = [item.partition("=") for item in text.split(",")] if text else []
    for key, _, value in pairs:
        if not key or not value or "=" in value:
            raise UsageError(f"--intel_openvino_configs_map={text}: use KEY=VALUE,KEY=VALUE, as CACHE_DIR=/tmp/cache")
    if len({key for key, _, _ in pairs}) < len(pairs):
        raise UsageError(f"--intel_openvino_configs_map={text}: a property is given twice; give it once")
