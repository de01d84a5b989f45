"""The flags of ``evaltools benchmark``: those of the native tool that it has, and those that it refuses by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from evaltools.errors import UsageError
from evaltools.parameter import NotNative, Parameter

RECORDS: Final = "records"
"""The format of a result file that has what was measured, round by round, and nothing that follows from it."""
NO_OPERATORS: Final = NotNative("operators are not read from native logs")
_NOT_WRITTEN: Final = "it is not written for devices; --output_file_path=FILE.json has everything"
_MEASURING: Final = (
    Parameter(
        "verbose",
        "Print all flags with their values, not only those given.",
        default=False,
        log="Log parameter values verbosely",
        about="execution",
    ),
    Parameter("num_runs", "Fewest regular runs.", default=50, log="Min num runs"),
    Parameter("min_secs", "Fewest seconds of regular runs.", default=1.0, log="Min runs duration (seconds)"),
    Parameter(
        "max_secs",
        "Begin no further run after so many seconds, for warm-up and regular runs each.",
        default=150.0,
        log="Max runs duration (seconds)",
    ),
    Parameter(
        "run_delay", "Seconds to wait after each run; 0 or less: none.", default=-1.0, log="Inter-run delay (seconds)"
    ),
    Parameter(
        "run_frequency",
        "Runs per second, in place of run_delay; late runs follow at once. 0 or less: as fast as they go.",
        default=-1.0,
        log="Number of prorated runs per second",
    ),
)
_RUNS: Final = (
    Parameter("warmup_runs", "Fewest warm-up runs.", default=1, log="Min warmup runs"),
    Parameter(
        "warmup_min_secs", "Fewest seconds of warm-up runs.", default=0.5, log="Min warmup runs duration (seconds)"
    ),
    Parameter(
        "dry_run",
        "Open the model and allocate tensors, but run nothing.",
        default=False,
        log="Run w/o invoking kernels",
    ),
    Parameter(
        "report_peak_memory_footprint",
        "Look at the resident memory again and again; the thread that does so may disturb the times.",
        default=False,
        log="Report the peak memory footprint",
    ),
    Parameter(
        "memory_footprint_check_interval_ms",
        "Milliseconds between two looks of report_peak_memory_footprint.",
        default=50,
        log="Memory footprint check interval (ms)",
        only_with=("report_peak_memory_footprint=true",),
    ),
    Parameter(
        "graph",
        "The .tflite model. Required; may be repeated.",
        repeatable=True,
        log="Graph",
        role="input_file",
        about="candidates",
        short="model_file model",
        positional=True,
    ),
    Parameter(
        "signature_to_run_for", "Signature to run; required where the model has more than one.", log="Signature to run"
    ),
    Parameter("input_layer", "Names of all inputs in the model's order, name,name2.", log="Input layers"),
    Parameter("input_layer_shape", "Shapes of the inputs in that order, 1,224,224,3:1,20.", log="Input shapes"),
    Parameter(
        "input_layer_value_range",
        "Range of an input's random values, both ends included, name,low,high:name2,low,high.",
        log="Input value ranges",
    ),
    Parameter(
        "input_layer_value_files",
        "Raw values of an input, name:file,name2:file2; a colon within is written twice. Rank before ranges.",
        log="Input value files",
        role="layer_files",
    ),
    Parameter(
        "require_full_delegation",
        "Fail where a delegate that was asked for leaves a node to the CPU.",
        default=False,
        log="Require full delegation",
    ),
    Parameter(
        "enable_op_profiling",
        "Time each operator as well.",
        default=False,
        log="Enable op profiling",
        only_with=("dry_run=false",),
        not_native=NO_OPERATORS,
    ),
    Parameter(
        "op_profiling_output_mode",
        "Form of the operators' times.",
        default="stdout",
        choices=("stdout", "csv", "proto"),
        log="Op profiling output mode.",
        about="execution",
        only_with=("enable_op_profiling=true",),
        not_native=NO_OPERATORS,
    ),
    Parameter(
        "op_profiling_output_file",
        "File for the operators' times; without it, stdout.",
        log="Op profiling output file.",
        role="output_file",
        about="result",
        only_with=("enable_op_profiling=true",),
        refused_on_devices=_NOT_WRITTEN,
    ),
    Parameter(
        "profiling_output_csv_file",
        "Old name for op_profiling_output_file with op_profiling_output_mode=csv.",
        log="CSV File to export profiling data to",
        role="output_file",
        about="result",
        only_with=("enable_op_profiling=true",),
        refused_on_devices=_NOT_WRITTEN,
    ),
    Parameter(
        "output_filepath",
        "File for the outputs of the last run: the raw bytes of all, one after the other.",
        log="File path to export outputs layer to",
        role="output_file",
        about="result",
        only_with=("dry_run=false",),
        refused_on_devices=_NOT_WRITTEN,
    ),
    Parameter(
        "result_file_path",
        "File for the result as the native tool's binary protobuf.",
        log="File path to save the benchmark result in binary proto format",
        role="output_file",
        about="result",
        refused_on_devices=_NOT_WRITTEN,
    ),
    Parameter(
        "perf_options_list",
        "Configurations to compare, separated by commas: cpu (1, 2 and 4 threads, each without and with XNNPACK), gpu "
        "(in fp16 and fp32), npu (Qualcomm's, unless npu_vendor is given), nnapi, coreml, dsp, or all of them. none: "
        "what the flags describe. The native tool's default is all.",
        default="none",
    ),
    Parameter(
        "option_benchmark_run_delay",
        "Seconds to wait before each of several configurations; 0 or less: none.",
        default=-1.0,
        given_counts=True,
        not_native=NotNative("every run is a process of its own; use --cool_down"),
    ),
    Parameter(
        "random_shuffle_benchmark_runs", "Let several configurations take their turns in random order.", default=True
    ),
)
_NUM_THREADS: Final = Parameter("num_threads", "", default=-1, log="Num threads")

PARAMETERS: Final = (*_MEASURING, *_RUNS)
"""The flags of the command, in the order of native logs. ``num_threads`` is one of the configuration's."""
BEYOND: Final = (
    Parameter(
        "output_file_path",
        "JSON file with the figures, every time and what the page shows.",
        role="output_file",
        about="result",
        short="output",
    ),
    Parameter(
        "rounds",
        "Measurements of each configuration, each from a cold start in a fresh process; configurations take turns. "
        "0: 1, or 3 where there are several configurations.",
        default=0,
    ),
    Parameter(
        "op_profiling_runs",
        "Runs whose operators are timed, after the others.",
        default=50,
        only_with=("enable_op_profiling=true",),
        not_native=NO_OPERATORS,
    ),
    Parameter(
        "trace",
        "File for a trace of everything, for ui.perfetto.dev or chrome://tracing.",
        role="output_file",
        about="result",
        not_native=NotNative("no single times are known"),
    ),
    Parameter(
        "accuracy",
        "Result file of evaltools imagenet or coco: its accuracy stands beside the latency. May be repeated.",
        repeatable=True,
        role="input_file",
        about="result",
        only_with=("dry_run=false",),
    ),
    Parameter(
        "plot",
        "PNG or SVG file: accuracy against latency and size, else latencies.",
        role="output_file",
        about="result",
    ),
    Parameter(
        "report",
        "One page to forward: FILE.html, or FILE.md for its first screen.",
        role="output_file",
        about="result",
        in_python="call .report(path) of the result",
    ),
    Parameter(
        "output_format",
        "Format of the result file, whatever its name ends in; records: all that was measured, round by round.",
        choices=("", "json", RECORDS),
        about="result",
        only_with=("output_file_path",),
        in_python="call .save() of the result",
    ),
    Parameter(
        "quiet",
        "Show the answer alone, no table and no progress.",
        default=False,
        about="result",
        in_python="nothing is printed anyway",
    ),
    Parameter(
        "compat",
        "native: the lines of benchmark_model on stdout also where there are several configurations or models.",
        choices=("", "native"),
        about="execution",
    ),
    Parameter(
        "native_lines",
        "File for the lines of benchmark_model, however many configurations there are; stdout then has none.",
        role="output_file",
        about="result",
        refused_on_devices="their lines go to stdout; --compat=native prints those of several configurations",
    ),
    Parameter(
        "example_timeout",
        "Seconds after which opening the model, or a run that goes on beyond --max_secs, counts as hanging.",
        default=300.0,
        not_native=NotNative("--device_timeout limits it"),
    ),
)
"""Those that the native tool does not have."""
LOGGED: Final = (*_MEASURING, _NUM_THREADS, *_RUNS)
"""What a native log names before the delegates' flags, in its order."""

_NO_BUFFER_SIZE: Final = "the size of the profiler's buffer cannot be set here; leave the flag out"
_NOT_OFFERED: Final = "the Python runtimes do not offer it; leave the flag out"
_NO_RUNTIME_INFO: Final = "runtime details are not written here; evaltools inspect shows operators and delegation"
_NO_STATE: Final = (
    "the Python runtimes do not show the interpreter's state; evaltools inspect shows the model's tensors"
)
_NAME_ONLY: Final = "the native tool only logs it; leave the flag out"

REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "use_caching": _NOT_OFFERED,
        "benchmark_name": _NAME_ONLY,
        "output_prefix": _NAME_ONLY,
        "allow_fp16": "the Python runtimes do not offer it; with --runtime=compiled, --use_xnnpack=true "
        "--xnnpack_force_fp16=true computes float models in fp16",
        "max_profiling_buffer_entries": _NO_BUFFER_SIZE,
        "allow_dynamic_profiling_buffer_increase": _NO_BUFFER_SIZE,
        "export_model_runtime_info": _NO_RUNTIME_INFO,
        "model_runtime_info_output_file": _NO_RUNTIME_INFO,
        "print_preinvoke_state": _NO_STATE,
        "print_postinvoke_state": _NO_STATE,
        "release_dynamic_tensors": _NOT_OFFERED,
        "optimize_memory_for_large_tensors": _NOT_OFFERED,
        "disable_delegate_clustering": "delegates are measured as the runtimes apply them; leave the flag out",
        "enable_builtin_cast_constant_cache": _NOT_OFFERED,
        "output_proto_filepath": "outputs are not written as tensorflow.Example; --output_filepath writes their bytes",
        "tensor_name_display_length": _NO_STATE,
        "tensor_type_display_length": _NO_STATE,
        "alloc_type_display_length": _NO_STATE,
        "list_signatures": "nothing is measured with it; evaltools inspect lists the signatures",
    }
)
"""Flags of the native tool that have no effect to offer here, each with the reason and, where there is one, a way."""


def refuse_native_flags(arguments: Sequence[str]) -> None:
    """Raise :class:`UsageError` for flags of the native tool that have no meaning here."""
    for word in arguments:
        name = word.removeprefix("--").partition("=")[0].replace("-", "_")
        if word.startswith("--") and name in REFUSED:
            raise UsageError(f"--{name} is not supported: {REFUSED[name]}")
