"""The command lines of TensorFlow's own evaluation binaries, from our configurations and flags.

The native tools take a flag that they do not know for a misspelt word, warn and go on without it; so none is printed
that they lack: what they cannot do is refused here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from evaltools.configuration import AUTO, CONFIGURATION_PARAMETERS, Configuration
from evaltools.delegates import PARAMETERS, parse_external_options
from evaltools.delegates.npu import NPU
from evaltools.errors import UsageError
from evaltools.native.logs.evaluation import NativeTask
from evaltools.parameter import Value
from evaltools.request import Options

_ELSEWHERE: Final = "leave it out, or take --device_program=evaltools"
_VENDOR: Final = "npu_vendor"
"""It says which flags there may be; the programs know vendors by their libraries."""
_OF_NPUS: Final = frozenset(parameter.name for parameter in NPU.parameters) - {"npu_soc"}


class NativePaths(Struct, frozen=True):
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


def configuration_flags(configuration: Configuration, files: Mapping[str, str], with_npu: bool = False) -> list[str]:
    """The flags of a configuration as the native tools read them; arguments and errors as :func:`native_command`.

    ``with_npu``: the program may be LiteRT's, which has NPUs; another one says that it does not know their flags.
    """
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
        refused = None if with_npu and name in _OF_NPUS else PARAMETERS[name].not_native
        if refused is not None:
            raise UsageError(f"{where}: --{name}: {refused.reason}; {_ELSEWHERE}")
        if PARAMETERS[name].repeatable and len(settings.values(name)) > 1:
            raise UsageError(
                f"{where}: --{name} is given {len(settings.values(name))} times; the native tools take the first and "
                "ignore the others. Give one"
            )
    words = [f"--num_interpreter_threads={configuration.num_threads}"]
    given = [(name, value) for name, value in settings.given if name != _VENDOR]
    words += [PARAMETERS[name].format(_value(where, name, value, files)) for name, value in given]
    if configuration.kernels == "builtin" and configuration.xnnpack is None:
        words.append("--use_xnnpack=false")
    return words


def _value(where: str, name: str, value: Value, files: Mapping[str, str]) -> Value:
    if PARAMETERS[name].is_path or name in _OF_NPUS:
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


def refuse_options(options: Options, program: str) -> None:
    """Raise :class:`UsageError` for the first option that has no effect on a native program.

    Flags of configurations are looked at by :func:`native_command`, when it prints them.
    """
    for name, value in options.stated.items():
        parameter = options.parameters[name]
        refused = parameter.not_native
        if refused is None or name in CONFIGURATION_PARAMETERS:
            continue
        first = value[0] if isinstance(value, tuple) else value
        if first not in refused.harmless and not parameter.is_as_left_out(first):
            raise UsageError(
                f"{parameter.format(first)} has no effect with --device_program={program}: {refused.reason}; "
                f"{_ELSEWHERE}"
            )
