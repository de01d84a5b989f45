"""The command lines of TensorFlow's own evaluation binaries, from our configurations and flags.

The native tools take a flag that they do not know for a misspelt word, warn and go on without it; so none is printed
that they lack: what they cannot do is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evaltools.cli.flags import GivenFlags
from evaltools.configuration import AUTO, Configuration
from evaltools.delegates import PARAMETERS, parse_external_options
from evaltools.delegates.npu import NPU
from evaltools.errors import UsageError
from evaltools.parameter import Value
from evaltools.report.native_eval_log import NativeTask

_ONLY_COMPILED: Final = "only ai-edge-litert's CompiledModel has it"
NOT_NATIVE: Final[Mapping[str, str]] = {
    "gpu_infinite_float_capping": _ONLY_COMPILED,
    "gpu_allow_src_quantized_fc_conv_ops": _ONLY_COMPILED,
    **{parameter.name: _ONLY_COMPILED for parameter in NPU.parameters},
    "external_delegate_per_worker": "a native tool has one worker",
}
"""Delegate flags of ours that the native tools lack, with the reason."""
_PATH_FLAGS: Final = frozenset(
    {
        "delegate_serialize_dir",
        "external_delegate_path",
        "hexagon_lib_path",
        "nnapi_support_library_path",
        "stable_delegate_settings_file",
        "xnnpack_weight_cache_file_path",
    }
)
_ELSEWHERE: Final = "leave it out, or take --device_program=evaltools"


@dataclass(frozen=True)
class NativePaths:
    """Where the files of a run are on the device; pictures, labels and ground truth only where the task has them."""

    binary: str
    model: str
    output: str
    images: str = ""
    ground_truth: str = ""
    labels: str = ""


def native_command(
    task: NativeTask,
    configuration: Configuration,
    paths: NativePaths,
    num_runs: int | None = None,
    files: Mapping[str, str] | None = None,
) -> list[str]:
    """The words of a run, not quoted for any shell; ``num_runs`` is that of inference_diff.

    ``files`` maps files that delegate flags name here to their paths on the device; others stay as they are. coco is
    run in debug mode, as its detections are what configurations are compared by. Raises :class:`UsageError` for a
    configuration that the native tools cannot have.

    >>> configuration = Configuration.from_text("gpu", "use_gpu=true kernels=builtin")
    >>> words = native_command("inference_diff", configuration, NativePaths("./run_eval", "a.tflite", "out.pb"), 5)
    >>> words[:3], words[3:]
    (['./run_eval', '--model_file=a.tflite', '--output_file_path=out.pb'],
     ['--num_runs=5', '--num_interpreter_threads=1', '--use_gpu=true', '--use_xnnpack=false'])
    """
    words = [paths.binary, f"--model_file={paths.model}", f"--output_file_path={paths.output}"]
    if task == "inference_diff":
        words += [] if num_runs is None else [f"--num_runs={num_runs}"]
    else:
        truth = "ground_truth_labels" if task == "imagenet" else "ground_truth_proto"
        words += [f"--ground_truth_images_path={paths.images}", f"--model_output_labels={paths.labels}"]
        words += [f"--{truth}={paths.ground_truth}"] if paths.ground_truth else []
        words += ["--debug_mode=true"] if task == "coco" else []
    return words + configuration_flags(configuration, files or {})


def configuration_flags(configuration: Configuration, files: Mapping[str, str]) -> list[str]:
    """The flags of a configuration as the native tools read them; arguments and errors as :func:`native_command`."""
    where = f"configuration {configuration.name!r}"
    if configuration.runtime != AUTO:
        raise UsageError(
            f"{where}: --runtime={configuration.runtime} is a runtime for Python, which a native tool is not; "
            f"{_ELSEWHERE}"
        )
    if configuration.kernels == "reference":
        raise UsageError(
            f"{where}: --kernels=reference: the native tools have no such kernels; use --kernels=builtin, or take "
            "--device_program=evaltools"
        )
    settings = configuration.delegates
    for name, _ in settings.given:
        if name in NOT_NATIVE:
            raise UsageError(f"{where}: --{name}: {NOT_NATIVE[name]}, the native tools do not; {_ELSEWHERE}")
        if PARAMETERS[name].repeatable and len(settings.values(name)) > 1:
            raise UsageError(
                f"{where}: --{name} is given {len(settings.values(name))} times; the native tools take the first and "
                "ignore the others. Give one"
            )
    words = [f"--num_interpreter_threads={configuration.num_threads}"]
    words += [PARAMETERS[name].format(_value(where, name, value, files)) for name, value in settings.given]
    if configuration.kernels == "builtin" and configuration.xnnpack is None:
        words.append("--use_xnnpack=false")
    return words


def _value(where: str, name: str, value: Value, files: Mapping[str, str]) -> Value:
    if name in _PATH_FLAGS:
        return files.get(str(value), value)
    if name != "external_delegate_options":
        return value
    options = parse_external_options(str(value))
    odd = [key for key, text in options.items() if ":" in text or ";" in text or not text]
    if odd:
        raise UsageError(
            f"{where}: --{name}: the value of {odd[0]!r} holds ':' or ';', or nothing; the native tools drop such an "
            "option without a word. Give it another value, or take --device_program=evaltools"
        )
    return ";".join(f"{key}:{text}" for key, text in options.items())


@dataclass(frozen=True)
class _Refused:
    """Why a flag has no effect on a native tool; with a ``harmless`` value it asks for what happens anyway."""

    reason: str
    harmless: tuple[str, ...] = ()


_NO_ANSWERS: Final = "the native tool tells no answers of single pictures"
_OWN_VALUES: Final = "the native tool feeds values of its own, -1..1 to float models"
_OWN_INPUTS: Final = "the native tool makes random inputs of its own"
_EXECUTOR: Final = "the devices are the executor"
_PARTS: Final = "the parts are made here; see --parts"
_COMMON: Final = {
    "workers": _Refused("a native tool has one worker", ("1", "auto")),
    "example_timeout": _Refused("a native run is bounded as a whole, by --part_timeout"),
    "max_crashes": _Refused("a native tool that dies ends its run"),
    "max_failed_examples": _Refused("the native tool ends at the first example that fails", ("0",)),
    "run_dir": _Refused("a native tool keeps no journal to go on from"),
    "shard_index": _Refused(_PARTS, ("0",)),
    "shard_count": _Refused(_PARTS, ("1",)),
    "executor": _Refused(_EXECUTOR, ("local",)),
    "ray_address": _Refused(_EXECUTOR),
    "ray_tasks": _Refused(_EXECUTOR, ("0",)),
    "latency_examples": _Refused("the native tool times every example"),
    "trace": _Refused("a native tool writes none"),
}
_REFUSED: Final[Mapping[NativeTask, Mapping[str, _Refused]]] = {
    "imagenet": _COMMON
    | {
        "normalization": _Refused(_OWN_VALUES),
        "label_offset": _Refused("line i of the labels is output i for the native tool", ("0",)),
        "label_check": _Refused("no picture is tried before a native tool runs", ("false", "0")),
        "margin": _Refused(f"{_NO_ANSWERS}, so that there is no verdict"),
        "record_examples": _Refused(_NO_ANSWERS, ("false", "0")),
    },
    "coco": _COMMON
    | {
        "normalization": _Refused(_OWN_VALUES),
        "resize": _Refused("the native tool stretches pictures", ("stretch",)),
        "letterbox_fill": _Refused("the native tool stretches pictures"),
        "output_map": _Refused("the native tool reads outputs by their order", ("boxes=0,classes=1,scores=2,count=3",)),
        "class_offset": _Refused("the native tool adds 1 to every class", ("1", "+1")),
        "score_threshold": _Refused("the native tool keeps every detection", ("0", "0.0")),
        "debug_mode": _Refused("detections are in the JSON result, with --record_examples", ("false", "0")),
        "detections_path": _Refused("detections are in the JSON result, with --record_examples"),
        "disagreements_path": _Refused("the boxes of native runs are compared in the result alone"),
    },
    "inference_diff": _COMMON
    | {
        "warmup_runs": _Refused("the native tool has no warm-up", ("0",)),
        "reference_model_file": _Refused("the native tool compares a model with itself"),
        "signature": _Refused("the native tool runs the main function"),
        "seed": _Refused("the native tool has a seed of its own", ("1",)),
        "input_range": _Refused(_OWN_INPUTS),
        "input_files": _Refused(_OWN_INPUTS),
        "input_images": _Refused(_OWN_INPUTS),
        "normalization": _Refused(_OWN_INPUTS),
        "input_shape": _Refused(_OWN_INPUTS),
        "noise_floor_runs": _Refused("the native tool compares the test with one reference alone", ("0",)),
        "max_quanta": _Refused("the native tool gives avg_error alone; --max_avg_error limits that"),
        "min_snr_db": _Refused("the native tool gives avg_error alone; --max_avg_error limits that"),
        "save_outputs": _Refused("the native tool keeps no outputs"),
        "load_reference": _Refused("the native tool runs its own reference"),
        "allow_model_mismatch": _Refused("the native tool runs its own reference", ("false", "0")),
    },
}


def refuse_flags(task: NativeTask, flags: GivenFlags) -> None:
    """Raise :class:`UsageError` for the first flag that has no effect on a native tool.

    Flags of configurations are looked at by :func:`native_command`, when it prints them.
    """
    for name, text in flags.given:
        refused = _REFUSED[task].get(name)
        if refused is not None and text not in refused.harmless:
            raise UsageError(
                f"--{name}={text} has no effect with --device_program=native: {refused.reason}; {_ELSEWHERE}"
            )
